"""Measures a preview that finds no changes, and the growth of its time with the size of the lake.

    python -m benchmarks.preview [--tables 10 100 1000 5000] [--columns 20] [--repeat 5] [--terraform PATH]

The benchmark first applies a project of each size, including Lance datasets. Then `deployer preview` of each project,
including startup and the refresh from live state, takes turns with Terraform's plan of `terraform_data` resources.
Their number is the size nearest to 1,000. Each run is a process. The first turn is not counted.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks import terraform
from benchmarks.processes import Ran, deployer
from benchmarks.projects import datasets, make_project
from benchmarks.report import (
    RUN_COLUMNS,
    median_peak,
    median_seconds,
    print_figure,
    print_heading,
    print_table,
    run_cells,
)

PEER_SIZE = 1000
TIMES_THE_PEERS_SECONDS, TIMES_THE_PEERS_MEMORY = 1.0, 2.0


def applied_project(folder: Path, tables: int, columns: int) -> Path:
    project = make_project(folder, tables, columns)
    deployer("up", "--yes", cwd=project)
    assert datasets(project) == tables
    return project


def preview(project: Path) -> Ran:
    """Runs a preview. Ends the benchmark if the preview finds changes."""
    return deployer("preview", "--exit-code", cwd=project)


def measure(sizes: Sequence[int], columns: int, repeat: int, peer: str | None, folder: Path) -> None:
    commands: dict[str, Callable[[], Ran]] = {}
    for size in sizes:
        project = applied_project(folder / f"project-{size}", size, columns)
        commands[_name(size)] = lambda project=project: preview(project)  # type: ignore[misc]
    nearest = min(sizes, key=lambda size: abs(size - PEER_SIZE))
    peer_name = f"terraform plan, {nearest:,} terraform_data"
    if peer:
        configuration = terraform.make_configuration(peer, folder / "terraform", nearest)
        terraform.apply(peer, configuration)
        commands[peer_name] = lambda: terraform.plan(peer, configuration)
    runs: dict[str, list[Ran]] = {name: [] for name in commands}
    for turn in range(repeat + 1):
        for name, command in commands.items():
            ran = command()
            if turn:
                runs[name].append(ran)
    print_table(("nothing to do", *RUN_COLUMNS), ([name, *run_cells(taken)] for name, taken in runs.items()))
    _print_growth(sizes, runs)
    if peer:
        ours, theirs = runs[_name(nearest)], runs[peer_name]
        times = median_seconds(ours) / median_seconds(theirs)
        aims = (TIMES_THE_PEERS_SECONDS, TIMES_THE_PEERS_MEMORY) if nearest == PEER_SIZE else (None, None)
        print_figure(f"preview of {nearest:,} tables, of Terraform's time", times, "times", aims[0])
        memory = median_peak(ours) / median_peak(theirs)
        print_figure(f"preview of {nearest:,} tables, of Terraform's memory", memory, "times", aims[1])


def _print_growth(sizes: Sequence[int], runs: Mapping[str, Sequence[Ran]]) -> None:
    """Prints the cost of each further table between one size and the next. It is the same everywhere if the time is
    linear."""
    rows = []
    for smaller, larger in pairwise(sizes):
        further = larger - smaller
        seconds = median_seconds(runs[_name(larger)]) - median_seconds(runs[_name(smaller)])
        mebibytes = median_peak(runs[_name(larger)]) - median_peak(runs[_name(smaller)])
        growth = [f"{1000 * seconds / further:.2f}", f"{1024 * mebibytes / further:.0f}"]
        rows.append([f"from {smaller:,} to {larger:,} tables", *growth])
    if rows:
        print_table(("a further table", "ms", "KiB"), rows)


def _name(tables: int) -> str:
    return f"deployer preview, {tables:,} tables"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, nargs="+", default=[10, 100, 1000, 5000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    terraform.add_option(parser)
    given = parser.parse_args()
    peer = terraform.find(given.terraform)
    print_heading("A preview with nothing to do", *([terraform.version(peer)] if peer else []))
    with tempfile.TemporaryDirectory() as folder:
        measure(sorted(set(given.tables)), given.columns, given.repeat, peer, Path(folder))


if __name__ == "__main__":
    main()
