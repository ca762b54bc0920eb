"""Measures a durable commit of the state on local disk, and compares it with commits of the peers and a SQLite insert.

    python -m benchmarks.state_commits [--n 1000] [--long 100000] [--engines lance deltalake pyiceberg]

In the first part, the ways take turns of ten commits. `state` records one file in a commit, and `row` inserts one row
into SQLite (the minimum of such a store); both are flushed by fsync. The peers append ten rows. In the second part, a
store with --long commits takes turns with a store with 100 commits. Its figures are the time of a commit, and the bytes
that this process writes for it, including the commit's share of snapshots.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers import ENGINES, batch, present, versions
from benchmarks.report import print_heading, print_ratio, print_table
from benchmarks.small_commits import TABLE, create_state, file_of
from deployer.state import open_store
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.updates import FilesAdded

TURN, WINDOW = 10, 100

Commit = Callable[[int], None]


def state_commits(folder: Path) -> Commit:
    create_state(folder)
    store = open_store(folder)

    def commit(number: int) -> None:
        job = f"job-{number}"
        store.commit(TABLE, [FilesAdded((file_of(number),), number + 2, job, 10)], [JobNotDone(job)])

    return commit


def row_commits(folder: Path) -> Commit:
    folder.mkdir()
    database = sqlite3.connect(folder / "rows.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body BLOB)")
    body = b"x" * 500

    def commit(number: int) -> None:
        database.execute("INSERT INTO rows VALUES (?, ?)", (number, body))

    return commit


def peer_commits(name: str, folder: Path) -> Commit:
    engine = ENGINES[name](str(folder))
    engine.create()
    return lambda number: engine.append(batch(number))


def _timed(commit: Commit, number: int) -> float:
    begun = time.perf_counter()
    commit(number)
    return 1000 * (time.perf_counter() - begun)


def beside_peers(folder: Path, count: int, names: list[str], budget: float) -> None:
    commits = {"state": state_commits(folder / "state"), "row": row_commits(folder / "row")}
    commits |= {name: peer_commits(name, folder / name) for name in names}
    taken: dict[str, list[float]] = {name: [] for name in commits}
    for start in range(0, count, TURN):
        for name, commit in commits.items():
            if sum(taken[name]) < 1000 * budget:
                taken[name] += [_timed(commit, number) for number in range(start, min(start + TURN, count))]
    rows = [
        [
            name,
            str(len(found)),
            f"{statistics.median(found[:WINDOW]):.2f}",
            f"{statistics.median(found[-WINDOW:]):.2f}",
            f"{min(found[-WINDOW:]):.2f}",
            f"{max(found):.0f}",
            f"{os.getloadavg()[0]:.1f}",
        ]
        for name, found in taken.items()
    ]
    print_table(("", "commits", f"ms, first {WINDOW}", f"ms, last {WINDOW}", "least ms", "most ms", "load"), rows)
    late = {name: statistics.median(found[-WINDOW:]) for name, found in taken.items()}
    whole = count >= 1000
    print_ratio("a state commit, of plain Lance's append", late, "state", "lance", most=1 / 2 if whole else None)
    print_ratio("a state commit, of deltalake's", late, "state", "deltalake", most=1 / 30 if whole else None)
    print_ratio("a state commit, of pyiceberg's", late, "state", "pyiceberg")


def _written() -> int:
    """Returns the bytes that this process has passed to write calls so far (on Linux)."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def early_and_late(folder: Path, count: int) -> None:
    """Commits to a log of 100 entries and to a log of `count` entries, in turn."""
    ages = {"after 100": 100, f"after {count:,}": count}
    commits = {name: state_commits(folder / str(age)) for name, age in ages.items()}
    bytes_each: dict[str, float] = {}
    for name, age in ages.items():
        before = _written()
        for number in range(age):
            commits[name](number)
        bytes_each[name] = (_written() - before) / age
    taken: dict[str, list[float]] = {name: [] for name in ages}
    sizes: dict[str, list[int]] = {name: [] for name in ages}
    for start in range(0, 200, TURN):
        for name, age in ages.items():
            for number in range(age + start, age + start + TURN):
                before = _written()
                taken[name].append(_timed(commits[name], number))
                sizes[name].append(_written() - before)
    rows = [
        [
            name,
            f"{statistics.median(found):.2f}",
            f"{min(found):.2f}",
            f"{statistics.median(sizes[name]) / 1024:.1f}",
            f"{bytes_each[name] / 1024:.1f}",
            f"{os.getloadavg()[0]:.1f}",
        ]
        for name, found in taken.items()
    ]
    print_table(("200 commits", "median ms", "least ms", "KiB, median", "KiB each until then", "load"), rows)
    young, old = ages
    aim = 1.2 if count >= 100_000 else None
    medians = {name: statistics.median(found) for name, found in taken.items()}
    print_ratio(f"a state commit after {count:,} commits, of one after 100", medians, old, young, most=aim)
    written = {name: statistics.median(found) for name, found in sizes.items()}
    print_ratio(f"bytes written after {count:,} commits, of those after 100", written, old, young, most=aim)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="commits beside the peers")
    parser.add_argument("--long", type=int, default=100_000, help="commits before the late ones; 0 leaves that out")
    parser.add_argument("--budget", type=float, default=120, help="seconds of committing after which a peer stops")
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=["lance", "deltalake", "pyiceberg"])
    given = parser.parse_args()
    names, absent = present(given.engines)
    print_heading("Commits of the state", *versions(names))
    with tempfile.TemporaryDirectory(prefix="deployer-bench-") as folder:
        beside_peers(Path(folder), given.n, names, given.budget)
        if given.long:
            print()
            early_and_late(Path(folder), given.long)
    print("\n".join(absent))


if __name__ == "__main__":
    main()
