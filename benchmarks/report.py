"""Prints the results of benchmarks: the machine, and Markdown tables with aligned columns."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.processes import Ran
from deployer import DISTRIBUTION

PACKAGES = (DISTRIBUTION, "pulumi", "pylance", "pyarrow")
RUN_COLUMNS = ("runs", "median s", "least s", "most s", "CPU s", "peak MiB", "load")


def print_heading(title: str, *peers: str) -> None:
    """Prints the name of the figure, and below it the machine and the versions of deployer, its packages and the
    peers."""
    cores = f"{os.cpu_count()} cores{_processor()}"
    packages = (f"{name} {version(name)}" for name in PACKAGES)
    print(f"\n{title}")
    print(", ".join([cores, platform.platform(), f"Python {platform.python_version()}", *packages, *peers]) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a Markdown table. The first column has left-aligned text, and the others have right-aligned numbers."""
    lines = [columns, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    for line in (lines[0], rule, *lines[1:]):
        cells = [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        print(f"| {' | '.join(cells)} |")
    print()


def run_cells(runs: Sequence[Ran]) -> list[str]:
    """Returns the cells of RUN_COLUMNS for the runs of one command: medians, and the highest load at the start of a
    run."""
    seconds = [ran.seconds for ran in runs]
    return [
        str(len(runs)),
        f"{statistics.median(seconds):.2f}",
        f"{min(seconds):.2f}",
        f"{max(seconds):.2f}",
        f"{statistics.median(ran.cpu for ran in runs):.2f}",
        f"{median_peak(runs):.0f}",
        f"{max(ran.load for ran in runs):.1f}",
    ]


def median_seconds(runs: Sequence[Ran]) -> float:
    return statistics.median(ran.seconds for ran in runs)


def median_peak(runs: Sequence[Ran]) -> float:
    """Returns the median of the runs' peak memory, in MiB."""
    return statistics.median(ran.peak for ran in runs)


def print_figure(name: str, value: float, unit: str, target: float | None) -> None:
    """Prints a figure and its target. `target` is None where the target is for another size."""
    aim = f" (to reach: at most {target:g} {unit})" if target is not None else ""
    print(f"{name}: {value:.3g} {unit}{aim}")


def print_ratio(
    name: str,
    values: Mapping[str, float],
    ours: str,
    peer: str,
    *,
    most: float | None = None,
    least: float | None = None,
) -> None:
    """Prints the ratio of our value to the peer's value of the same run, if both were measured, and its target."""
    if ours in values and peer in values:
        aim = f" (to reach: at most {most:.3g})" if most is not None else ""
        aim = f" (to reach: at least {least:.3g})" if least is not None else aim
        print(f"{name}: {values[ours] / values[peer]:.3g} times{aim}")


def _processor() -> str:
    """Returns the name of the processor, where Linux has it."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            return next((f" of {line.split(':', 1)[1].strip()}" for line in file if line.startswith("model name")), "")
    except OSError:
        return ""
