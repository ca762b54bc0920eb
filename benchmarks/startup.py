"""Measures the start of `deployer`, and its check of the specs of a large lake.

    python -m benchmarks.startup [--tables 1000] [--columns 20] [--repeat 11] [--terraform PATH]

Each run is a process, including the interpreter. The peers are the bare interpreter, and Terraform's help and its check
of as many `terraform_data` resources. The runs take turns; the first run of each is not counted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import terraform
from benchmarks.processes import Ran, deployer, run
from benchmarks.projects import make_project
from benchmarks.report import RUN_COLUMNS, median_seconds, print_figure, print_heading, print_table, run_cells

HELP_SECONDS = 0.3
VALIDATE_SECONDS = {1000: 2.0}  # by tables


def measure(tables: int, columns: int, repeat: int, peer: str | None, folder: Path) -> None:
    project = make_project(folder / "project", tables, columns)
    check = f"deployer validate, {tables:,} tables of {columns} columns"
    commands: dict[str, Callable[[], Ran]] = {
        "python -c pass": lambda: run(sys.executable, "-c", "pass", cwd=folder),
        "deployer --help": lambda: deployer("--help", cwd=folder),
        check: lambda: deployer("validate", cwd=project),
    }
    if peer:
        configuration = terraform.make_configuration(peer, folder / "terraform", tables)
        commands["terraform -help"] = lambda: run(peer, "-help", cwd=folder)
        commands[f"terraform validate, {tables:,} terraform_data"] = lambda: terraform.validate(peer, configuration)
    runs: dict[str, list[Ran]] = {name: [] for name in commands}
    for turn in range(repeat + 1):
        for name, command in commands.items():
            ran = command()
            if turn:
                runs[name].append(ran)
    print_table(("command", *RUN_COLUMNS), ([name, *run_cells(taken)] for name, taken in runs.items()))
    print_figure("deployer --help", median_seconds(runs["deployer --help"]), "s", HELP_SECONDS)
    print_figure(check, median_seconds(runs[check]), "s", VALIDATE_SECONDS.get(tables))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=11)
    terraform.add_option(parser)
    given = parser.parse_args()
    peer = terraform.find(given.terraform)
    print_heading("Start-up", *([terraform.version(peer)] if peer else []))
    with tempfile.TemporaryDirectory() as folder:
        measure(given.tables, given.columns, given.repeat, peer, Path(folder))


if __name__ == "__main__":
    main()
