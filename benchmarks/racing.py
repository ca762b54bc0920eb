"""Compares whole appends, and commits of the state alone, by several processes at the same time on one table.

    python -m benchmarks.racing [--procs 8] [--each 50] [--repeat 3] [--engines deployer lance deltalake pyiceberg]

Each process opens the table before all start together. An error that reaches the caller is counted, and its append is
not repeated. Afterwards all rows are checked: no row may be lost (acknowledged but missing) or doubled. Engines take
turns, and each begins after the writes of the engine before it are on the disk. `state commits` are the commits of the
state store without data.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import BATCH, ENGINES, batch, present, versions
from benchmarks.report import print_heading, print_ratio, print_table
from benchmarks.small_commits import TABLE, create_state, file_of
from deployer.state import open_store
from deployer.state.log.updates import FilesAdded

STATE = "state commits"


@dataclass(frozen=True, slots=True)
class Race:
    """The result of one race: commits per second, the slowest and median milliseconds, and the callers' errors."""

    rate: float
    median: float
    slowest: float
    load: float
    errors: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0


def _appender(name: str, where: str, writer: int, count: int) -> tuple[Callable[[int], None], Callable[[], None]]:
    """Returns a function that makes the writer's nth commit, and a function for the time after an error. Everything is
    open and was used once before."""
    if name == STATE:
        store = open_store(where)
        store.table(TABLE)

        def commit(number: int) -> None:
            fragment = writer * count + number
            store.commit(TABLE, [FilesAdded((file_of(fragment),), fragment, f"job-{fragment}", 10)])

        return commit, lambda: None
    engine = ENGINES[name](where)
    engine.append(batch(10**6 + writer))
    batches = [batch(writer * count + number) for number in range(count)]
    return lambda number: engine.append(batches[number]), engine.reopen


def _writer(name: str, where: str, writer: int, count: int, start: Any, results: Any) -> None:
    first_try = 0.0
    while True:  # opening can fail in a race too; it is not measured
        try:
            commit, reopen = _appender(name, where, writer, count)
            break
        except Exception:
            first_try += 1
            if first_try > 50:
                raise
    start.wait()
    done, taken, errors = [], [], Counter[str]()
    for number in range(count):
        begun = time.perf_counter()
        try:
            commit(number)
        except Exception as error:
            errors[f"{type(error).__name__}: {str(error).splitlines()[0][:80]}"] += 1
            reopen()
        else:
            done.append(writer * count + number)
            taken.append(1000 * (time.perf_counter() - begun))
    results.put((time.time(), done, taken, errors))


def race(name: str, folder: Path, processes: int, count: int) -> Race:
    where = str(folder / "table")
    if name == STATE:
        create_state(Path(where))
    else:
        ENGINES[name](where).create()
    context = multiprocessing.get_context("spawn")  # Lance is not fork-safe
    start, results = context.Barrier(processes + 1), context.Queue()
    load = os.getloadavg()[0]
    writers = [
        context.Process(target=_writer, args=(name, where, writer, count, start, results))
        for writer in range(processes)
    ]
    for each in writers:
        each.start()
    os.sync()  # so that this engine does not wait for the writes of the engine before it
    start.wait(timeout=300)
    begun = time.time()
    ended = [results.get(timeout=600) for _ in writers]
    for each in writers:
        each.join()
    wall = max(at for at, *_ in ended) - begun
    done = [number for _, numbers, _, _ in ended for number in numbers]
    taken = sorted(ms for _, _, times, _ in ended for ms in times)
    errors = sum((found for *_, found in ended), Counter[str]())
    lost, doubled = _looked_for(name, where, done)
    return Race(len(done) / wall, statistics.median(taken), taken[-1], load, errors, lost, doubled)


def _looked_for(name: str, where: str, done: list[int]) -> tuple[int, int]:
    """Returns the number of acknowledged commits that are missing, and the number that exist twice."""
    if name == STATE:
        held = {file.fragment_id for file in open_store(where).table(TABLE).files}
        return len(set(done) - held), 0
    rows = Counter(ENGINES[name](where).ids())
    found = Counter(number // BATCH for number in rows)
    return sum(found[number] < BATCH for number in done), sum(count > 1 for count in rows.values()) // BATCH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--procs", type=int, default=8, help="processes at once")
    parser.add_argument("--each", type=int, default=50, help="commits of each process")
    parser.add_argument("--repeat", type=int, default=3, help="races of each engine")
    parser.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=["deployer", "lance", "deltalake", "pyiceberg"]
    )
    given = parser.parse_args()
    engines, absent = present(given.engines)
    print_heading(f"{given.procs} processes x {given.each} commits to one table", *versions(engines))
    names = [STATE, *engines]
    races: dict[str, list[Race]] = {name: [] for name in names}
    for _ in range(given.repeat):
        for name in names:
            folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
            try:
                races[name].append(race(name, folder, given.procs, given.each))
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    columns = ("", "races", "a second", "least", "most", "median ms", "slowest ms", "errors", "lost", "doubled", "load")
    print_table(columns, [_cells(name, found) for name, found in races.items()])
    for name, found in races.items():
        for error, times in sum((each.errors for each in found), Counter[str]()).most_common(3):
            print(f"{name}: {times} times {error}")
    rates = {name: statistics.median(each.rate for each in found) for name, found in races.items()}
    whole = (given.procs, given.each) == (8, 50)
    if "deployer" in rates:
        print_ratio("whole appends a second, of plain Lance's", rates, "deployer", "lance", least=1 if whole else None)
    print_ratio("state commits a second, of plain Lance's appends", rates, STATE, "lance", least=3 if whole else None)
    print("\n".join(absent))


def _cells(name: str, found: list[Race]) -> list[str]:
    rates = [each.rate for each in found]
    return [
        name,
        str(len(found)),
        f"{statistics.median(rates):.0f}",
        f"{min(rates):.0f}",
        f"{max(rates):.0f}",
        f"{statistics.median(each.median for each in found):.1f}",
        f"{max(each.slowest for each in found):.0f}",
        str(sum(each.errors.total() for each in found)),
        str(sum(each.lost for each in found)),
        str(sum(each.doubled for each in found)),
        f"{max(each.load for each in found):.1f}",
    ]


if __name__ == "__main__":
    main()
