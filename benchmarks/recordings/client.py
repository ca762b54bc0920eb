"""Makes the calls of Rerun's client for the benchmark: `client.py PART URL FOLDER JSON`.

It prints a JSON object for each figure. `ours` and `theirs` are milliseconds: the best of the repeats, in which the two
servers take turns.
"""

# mypy: ignore-errors
from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from datafusion import col
from rerun.catalog import CatalogClient, IndexColumnSelector
from rerun.server import Server
from written import CLUSTERS, DIMENSION

KINDS = ("blobs", "scalars", "long", "small")
TABLES = {
    "segment_ids": lambda each: each.segment_ids(),
    "segment_table": lambda each: each.segment_table().collect(),
    "manifest": lambda each: each.manifest().collect(),
}


def all_rows(dataset) -> None:
    dataset.reader(index="tick").collect()


READS = {
    "all rows of blobs": ("blobs", all_rows),
    "all rows of scalars": ("scalars", all_rows),
    "20 ticks": (
        "long",
        lambda each: each.reader(index="tick").filter((col("tick") >= 9000) & (col("tick") < 9020)).collect(),
    ),
    **{f"{name}, warm": ("small", call) for name, call in TABLES.items()},
    "one segment": ("small", lambda each: each.filter_segments("small_000007").reader(index="tick").collect()),
    "all rows of segments": ("small", all_rows),
}


def timed(call) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def processor_time(process: int) -> float:
    """Returns the CPU time of a process in milliseconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(name: str, ours: float, theirs: float | None = None) -> None:
    print(json.dumps({"name": name, "ours": ours, "theirs": theirs}), flush=True)


def compared(url: str, folder: Path, options) -> None:
    """Registers recordings with both servers, and reads them. Rerun's server runs in this process; therefore the CPU
    time of this process is that of the client and the server."""
    with Server() as server:
        clients = CatalogClient(url), server.client()
        sets = {}
        for kind in KINDS:
            prefix = (folder / kind).as_uri()
            sets[kind] = [each.create_dataset(kind) for each in clients]
            registers = [lambda d=each, prefix=prefix: d.register_prefix(prefix).wait() for each in sets[kind]]
            before = processor_time(options["process"])
            ours = timed(registers[0])
            between, own = processor_time(options["process"]), time.process_time()
            theirs = timed(registers[1])
            show(f"register {kind}", ours, theirs)
            show(f"processor of registering {kind}", between - before, 1000 * (time.process_time() - own))
        for name, (kind, read) in READS.items():
            reads = [lambda d=each, read=read: read(d) for each in sets[kind]]
            turns = [[timed(each) for each in reads] for _ in range(options["repeat"])]
            show(name, *map(min, zip(*turns, strict=True)))


def cold(url: str, folder: Path, options) -> None:
    """Makes one call of a server that has not yet answered a call about this dataset. The client has made the same call
    to another server before."""
    call = TABLES[options["call"]]
    with Server() as server:
        call(server.client().create_dataset("none"))
    dataset = CatalogClient(url).get_dataset("small")
    show(f"{options['call']}, cold server", timed(lambda: call(dataset)))


def everything(url: str, folder: Path, options) -> None:
    """Registers the segments and makes all calls about them, so that the server's memory can be measured."""
    dataset = CatalogClient(url).create_dataset("small")
    dataset.register_prefix((folder / "small").as_uri()).wait()
    for kind, call in READS.values():
        if kind == "small":
            call(dataset)


def empty(url: str, folder: Path, options) -> None:
    """Creates and requests an empty dataset, so that the server loads the modules that its calls need."""
    client = CatalogClient(url)
    dataset = client.create_dataset("none")
    for call in TABLES.values():
        call(dataset)
    dataset.delete()
    time.sleep(3)


def many(url: str, folder: Path, options) -> None:
    """Registers recordings only with deployer's server."""
    dataset = CatalogClient(url).create_dataset("small")
    show("register many", timed(lambda: dataset.register_prefix((folder / "many").as_uri()).wait()))


def search(url: str, folder: Path, options) -> None:
    """Builds search indexes, and searches them."""
    client, random = CatalogClient(url), np.random.default_rng(5)
    tick = IndexColumnSelector("tick")
    texts, vectors = (client.create_dataset(kind) for kind in ("texts", "vectors"))
    for dataset in (texts, vectors):
        dataset.register_prefix((folder / dataset.name).as_uri()).wait()
    text, vector = "/log:TextLog:text", "/embedding:vector"
    show("full-text index", timed(lambda: texts.create_fts_search_index(column=text, time_index=tick)))
    show(
        "vector index",
        timed(lambda: vectors.create_vector_search_index(column=vector, time_index=tick, distance_metric="L2")),
    )
    centers = np.random.default_rng(0).normal(size=(CLUSTERS, DIMENSION)) * 2

    def of_text() -> None:
        words = " ".join(f"w{each}" for each in random.integers(500, 5000, size=2))
        texts.search_fts(words, text).collect()

    def of_vector() -> None:
        wanted = centers[random.integers(CLUSTERS)] + random.normal(size=DIMENSION)
        vectors.search_vector(wanted.astype(np.float32), vector, 10).collect()

    for name, call in (("search of texts", of_text), ("search of vectors", of_vector)):
        times = [timed(call) for _ in range(options["searches"] + 5)]
        show(f"{name}, first", times[0])
        show(f"{name}, median", statistics.median(times[5:]))


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4]))
