"""Compares warm searches of deployer, plain Lance and LanceDB in the same dataset, in turn. Times are in milliseconds.

    python -m benchmarks.search [--rows 1000000] [--size 128] [--n 100]

The vectors are clustered and have an IVF_PQ index. The texts have eight words each, out of 20,000 words by Zipf's law,
and a full-text index. Recall is the share of the ten nearest rows, which a comparison of all vectors finds. LanceDB is
measured where it is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.report import print_heading, print_table
from deployer.search import RRFReranker
from deployer.specs.model import IndexSpec, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.table import Table, connect
from deployer.tables.admin.tables import create_table, update_table

BATCH = 100_000  #: rows of a batch
WORDS, CLUSTERS = 20_000, 2_000
TOP, NPROBES, REFINE = 10, 10, 20
WARM_UP = 5  #: searches that are not counted


@dataclass(frozen=True)
class Query:
    vector: Any
    text: str
    nearest: frozenset[int]


Search = Callable[[Query], pa.Table]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--n", type=int, default=100)
    given = parser.parse_args()
    os.environ.setdefault("LANCE_LOG", "error")  # without Lance's warnings
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        measure(folder, given.rows, given.size, given.n)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, rows: int, size: int, count: int) -> None:
    root = str(folder / "lake")
    with_lancedb = find_spec("lancedb") is not None
    peers = [f"lancedb {version('lancedb')}"] if with_lancedb else ["lancedb was not measured: it is not installed"]
    print_heading(f"Search of {rows:,} rows with vectors of {size} and texts of 8 words, {count} each", *peers)
    queries = fill(root, rows, size, count + WARM_UP)
    with connect(root) as lake:
        table = lake.open_table("bench.texts")
        location = Path(table._opened.location)
        dataset = table._opened.dataset()
        searches = {"deployer": ours(table), "lance": plain(dataset)}
        if with_lancedb:
            searches["lancedb"] = of_lancedb(location)
        report(searches, queries)
        print(f"vector and text: the builder alone: {building(table, queries):.2f} ms")


def fill(root: str, rows: int, size: int, count: int) -> list[Query]:
    """Creates and indexes the table; returns queries, each with its nearest rows."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(CLUSTERS, size)).astype(np.float32) * 2
    words = np.array([f"w{number}" for number in range(WORDS)])
    odds = 1 / np.arange(1, WORDS + 1)
    odds /= odds.sum()

    def vectors(number: int) -> Any:
        return centers[random.integers(CLUSTERS, size=number)] + random.normal(size=(number, size)).astype(np.float32)

    targets = vectors(count)
    schema = pa.schema([("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), size))])
    spec = TableSpec("bench", "texts", columns_of(schema))
    store = create_store(root)
    table_id = create_table(store, root, spec, "bench")
    best: list[list[tuple[float, int]]] = [[] for _ in targets]
    with connect(root) as lake:
        table = lake.open_table("bench.texts")
        for start in range(0, rows, BATCH):
            number = min(BATCH, rows - start)
            made = vectors(number)
            texts = [" ".join(each) for each in words[random.choice(WORDS, (number, 8), p=odds)]]
            flat = pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), size)
            table.add(pa.table([pa.array(range(start, start + number)), pa.array(texts), flat], schema=schema))
            norms = (made**2).sum(1)
            for place, target in enumerate(targets):
                exact = norms - 2 * made @ target
                nearest = np.argsort(exact)[:TOP]
                best[place] = sorted(
                    [*best[place], *zip(exact[nearest].tolist(), (nearest + start).tolist(), strict=True)]
                )[:TOP]
    partitions = max(int(rows**0.5) // 4, 1)
    parameters = {"num_partitions": partitions, "num_sub_vectors": size // 4}
    indexes = (IndexSpec("near", ("vector",), "ivf_pq", parameters), IndexSpec("words", ("text",), "inverted"))
    update_table(store, root, table_id, replace(spec, indexes=indexes))
    asked = [" ".join(words[random.integers(2_000, size=3)]) for _ in targets]
    return [
        Query(target, text, frozenset(row for _, row in found))
        for target, text, found in zip(targets, asked, best, strict=True)
    ]


def ours(table: Table) -> Mapping[str, Search]:
    return {
        "vector": lambda query: (
            table.search(query.vector).nprobes(NPROBES).refine_factor(REFINE).select(["id"]).limit(TOP).to_arrow()
        ),
        "text": lambda query: table.search(query.text).select(["id"]).limit(TOP).to_arrow(),
        "hybrid": lambda query: (
            table.search(query_type="hybrid")
            .vector(query.vector)
            .text(query.text)
            .nprobes(NPROBES)
            .refine_factor(REFINE)
            .select(["id"])
            .limit(TOP)
            .to_arrow()
        ),
    }


def building(table: Table, queries: list[Query]) -> float:
    """Returns the median milliseconds of building a search without running it: the search for a newer version, and all
    checks."""
    times = []
    for query in queries:
        started = time.perf_counter()
        table.search(query.vector).nprobes(NPROBES).refine_factor(REFINE).select(["id"]).limit(TOP)
        table.search(query.text).select(["id"]).limit(TOP)
        times.append((time.perf_counter() - started) * 500)
    return statistics.median(times)


def plain(dataset: Any) -> Mapping[str, Search]:
    """Returns the searches by Lance's scanner. A hybrid search runs both searches, one after the other, and deployer's
    fusion."""

    def near(query: Query, *, row_id: bool = False) -> pa.Table:
        nearest = {"column": "vector", "q": query.vector, "k": TOP, "nprobes": NPROBES, "refine_factor": REFINE}
        return dataset.scanner(
            columns=["id", "_distance"], nearest=nearest, with_row_id=row_id, disable_scoring_autoprojection=True
        ).to_table()

    def text(query: Query, *, row_id: bool = False) -> pa.Table:
        words = {"query": query.text, "columns": ["text"]}
        return dataset.scanner(
            columns=["id", "_score"],
            full_text_query=words,
            limit=TOP,
            with_row_id=row_id,
            disable_scoring_autoprojection=True,
        ).to_table()

    def hybrid(query: Query) -> pa.Table:
        return RRFReranker().rerank_hybrid("", near(query, row_id=True), text(query, row_id=True)).slice(0, TOP)

    return {"vector": near, "text": text, "hybrid": hybrid}


def of_lancedb(location: Path) -> Mapping[str, Search]:
    import lancedb

    table: Any = lancedb.connect(location.parent).open_table(location.stem)
    return {
        "vector": lambda query: (
            table.search(query.vector)
            .nprobes(NPROBES)
            .refine_factor(REFINE)
            .select(["id", "_distance"])
            .limit(TOP)
            .to_arrow()
        ),
        "text": lambda query: table.search(query.text, query_type="fts").select(["id", "_score"]).limit(TOP).to_arrow(),
        "hybrid": lambda query: (
            table.search(query_type="hybrid")
            .vector(query.vector)
            .text(query.text)
            .nprobes(NPROBES)
            .refine_factor(REFINE)
            .select(["id"])
            .limit(TOP)
            .to_arrow()
        ),
    }


def report(searches: Mapping[str, Mapping[str, Search]], queries: list[Query]) -> None:
    lines: list[list[str]] = []
    over: dict[
        str, float
    ] = {}  # of ours over plain Lance: the median over all queries, since each pair ran at one time
    for kind in ("vector", "text", "hybrid"):
        times: dict[str, list[float]] = {name: [] for name in searches}
        hits = dict.fromkeys(searches, 0)
        for number, query in enumerate(queries):
            order = [*searches][number % len(searches) :] + [*searches][: number % len(searches)]  # each follows each
            for name in order:
                of = searches[name]
                started = time.perf_counter()
                found = of[kind](query)
                if number >= WARM_UP:
                    times[name].append((time.perf_counter() - started) * 1000)
                    hits[name] += len(query.nearest & {*found["id"].to_pylist()})
        for name, each in times.items():
            recall = f"{hits[name] / TOP / len(each):.3f}" if kind == "vector" else ""
            median, slow = statistics.median(each), sorted(each)[int(len(each) * 0.95)]
            lines.append([f"{kind}, {name}", f"{median:.2f}", f"{slow:.2f}", recall])
        over[kind] = statistics.median(a - b for a, b in zip(times["deployer"], times["lance"], strict=True))
    print_table(["search", "median ms", "95% ms", "recall@10"], lines)
    for kind in ("vector", "text"):
        print(f"{kind}: over plain Lance: {over[kind]:.2f} ms")


if __name__ == "__main__":
    main()
