"""Measures the cost of an `up` for each table that it creates, including the table's Lance dataset.

    python -m benchmarks.up [--tables 1000] [--columns 20] [--repeat 3] [--terraform PATH]

Each run is a process that begins without any resources. The peers are Terraform's plan and apply of as many
`terraform_data` resources, and plain `lance.write_dataset` of as many empty datasets with the same columns, one after
the other. The runs take turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import terraform
from benchmarks.processes import Ran, deployer, run
from benchmarks.projects import REPOSITORY, SPECS, datasets, make_project
from benchmarks.report import RUN_COLUMNS, median_seconds, print_figure, print_heading, print_table, run_cells

MILLISECONDS_A_TABLE = {1000: 30.0}  # by tables


def create_tables(project: Path, tables: int) -> Ran:
    ran = deployer("up", "--yes", cwd=project)
    assert datasets(project) == tables
    return ran


def write_datasets(project: Path) -> None:
    """Writes an empty dataset for each declared table, in the format that `up` writes. This is one process of the
    peer."""
    import lance

    from deployer.specs import load_lake
    from deployer.specs.types.arrow import arrow_schema

    for table in load_lake(project, project / SPECS).tables:
        lance.write_dataset(
            arrow_schema(table.columns).empty_table(),
            str(project / "plain" / f"{table.full_name}.lance"),
            data_storage_version=table.storage.data_storage_version,
        )


def measure(tables: int, columns: int, repeat: int, peer: str | None, folder: Path) -> None:
    ours, plain, theirs = f"deployer up, {tables:,} tables", "plain lance.write_dataset", "terraform apply"
    runs: dict[str, list[Ran]] = {name: [] for name in ((ours, plain, theirs) if peer else (ours, plain))}
    for turn in range(repeat):
        project = make_project(folder / f"project-{turn}", tables, columns)
        runs[ours].append(create_tables(project, tables))
        runs[plain].append(run(sys.executable, "-m", __spec__.name, "--write", str(project), cwd=REPOSITORY))
        if peer:
            configuration = terraform.make_configuration(peer, folder / f"terraform-{turn}", tables)
            runs[theirs].append(terraform.apply(peer, configuration))
    milliseconds = {name: 1000 * median_seconds(taken) / tables for name, taken in runs.items()}
    rows = ([name, *run_cells(taken), f"{milliseconds[name]:.2f}"] for name, taken in runs.items())
    print_table((f"{tables:,} times", *RUN_COLUMNS, "ms each"), rows)
    print_figure("up, for each table", milliseconds[ours], "ms", MILLISECONDS_A_TABLE.get(tables))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    terraform.add_option(parser)
    given = parser.parse_args()
    if given.write:
        write_datasets(given.write)
        return
    peer = terraform.find(given.terraform)
    print_heading("An up that creates every table", *([terraform.version(peer)] if peer else []))
    with tempfile.TemporaryDirectory() as folder:
        measure(given.tables, given.columns, given.repeat, peer, Path(folder))


if __name__ == "__main__":
    main()
