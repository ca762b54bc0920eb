"""Measures a whole append of ten rows on local disk, early and late in a table's life, and compares it with peers.

    python -m benchmarks.appends [--n 1000] [--turn 10] [--engines deployer lance deltalake pyiceberg]

A whole append writes a data file, Lance's commit and two durable commits of the state. When it returns, the rows are
checked and sorted by key, and the state has their key range. The tables of all engines stay open. deployer waits until
its commits are on the disk; the peers do not. Engines take turns of --turn appends, so that all run under the same
load. An engine stops after --budget seconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence

from benchmarks.peers import ENGINES, Engine, batch, present, versions
from benchmarks.report import print_heading, print_ratio, print_table

WINDOW = 100  #: number of appends in a median


def measure(engines: dict[str, Engine], count: int, turn: int, budget: float) -> dict[str, list[float]]:
    """Returns the milliseconds of each append, by engine."""
    taken: dict[str, list[float]] = {name: [] for name in engines}
    for start in range(0, count, turn):
        for name, engine in engines.items():
            if sum(taken[name]) > 1000 * budget:
                continue
            for number in range(start, min(start + turn, count)):
                rows = batch(number)
                begun = time.perf_counter()
                engine.append(rows)
                taken[name].append(1000 * (time.perf_counter() - begun))
    return taken


def cells(name: str, taken: Sequence[float], held: int, load: float) -> list[str]:
    """Returns a row of the printed table. `held` is the number of rows that the table has afterwards."""
    early, late = taken[:WINDOW], taken[-WINDOW:]
    return [
        name,
        str(len(taken)),
        f"{statistics.median(early):.2f}",
        f"{statistics.median(late):.2f}",
        f"{min(late):.2f}",
        f"{max(taken):.0f}",
        str(held),
        f"{load:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="appends")
    parser.add_argument("--turn", type=int, default=10, help="appends before the next engine's turn")
    parser.add_argument("--budget", type=float, default=120, help="seconds of appending after which an engine stops")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    given = parser.parse_args()
    names, absent = present(given.engines)
    print_heading(f"{given.n} appends of ten rows, one after another", *versions(names))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="deployer-bench-") as folder:
        engines = {name: ENGINES[name](f"{folder}/{name.replace(', ', '-').replace(' ', '-')}") for name in names}
        for engine in engines.values():
            engine.create()
        taken = measure(engines, given.n, given.turn, given.budget)
        held = {name: len(engine.ids()) for name, engine in engines.items()}
    load = max(load, os.getloadavg()[0])
    print_table(
        ("", "appends", f"ms, first {WINDOW}", f"ms, last {WINDOW}", "least ms", "most ms", "rows after", "load"),
        [cells(name, found, held[name], load) for name, found in taken.items()],
    )
    late = {name: statistics.median(found[-WINDOW:]) for name, found in taken.items()}
    whole = given.n >= 1000
    print_ratio("a whole append, of plain Lance's", late, "deployer", "lance", most=1.75 if whole else None)
    print_ratio("a whole append, of deltalake's", late, "deployer", "deltalake", most=1 / 8 if whole else None)
    print_ratio("a whole append, of pyiceberg's", late, "deployer", "pyiceberg")
    print("\n".join(absent))


if __name__ == "__main__":
    main()
