"""What one whole append of ten rows takes on local disk, early and late, beside the peers.

    python -m benchmarks.appends [--n 1000] [--turn 10] [--engines deployer lance deltalake pyiceberg]

A whole append is a data file, Lance's commit and two durable commits of the state: the rows are checked, sorted by key
and known by their range when it returns. The peers' handles stay open as ours does; they never wait for the disk, we
do. Engines take turns of --turn appends, so that all see the same machine; one that has taken --budget seconds stops.
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

WINDOW = 100  #: appends whose median is taken


def measure(engines: dict[str, Engine], count: int, turn: int, budget: float) -> dict[str, list[float]]:
    """The ms of each append of each engine."""
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
    """A row of the table; `held` are the rows that are there afterwards."""
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
