"""Makes projects to measure: the repository's own program with generated specs, one file for each table."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SPECS = "specs"
INSTANCE = "kind: Instance\nname: bench\nroot: lakes/bench\nengine: embedded\n"
#: The types of the columns after the key, which are repeated: typical types of tables of events and orders.
TYPES = ("int32", "float64", "string", "timestamp[us, UTC]", "bool", "date32", "decimal128(18, 2)", "list<string>")
TABLES_A_DATABASE = 100


def make_project(folder: Path, tables: int, columns: int) -> Path:
    """Makes a project in the new `folder` that declares `tables` tables of `columns` columns; it is not applied yet."""
    specs = folder / SPECS
    specs.mkdir(parents=True)
    text = (REPOSITORY / "Pulumi.yaml").read_text(encoding="utf-8")
    text = text.replace("path: .venv/bin", f"path: {Path(sys.executable).parent}").replace("specs/nyc", SPECS)
    (folder / "Pulumi.yaml").write_text(text, encoding="utf-8")
    shutil.copytree(REPOSITORY / "stacks", folder / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    (specs / "instance.yaml").write_text(INSTANCE, encoding="utf-8")
    for number in range(tables):
        (specs / f"table_{number:05}.yaml").write_text(table_spec(number, columns), encoding="utf-8")
    return folder


def table_spec(number: int, columns: int) -> str:
    """Returns the spec of one table with a key, and with nullable columns that have descriptions."""
    lines = [
        "kind: Table",
        f"database: db{number // TABLES_A_DATABASE}",
        f"name: table_{number:05}",
        f"description: Table {number} of the benchmark.",
        "columns:",
        "  - {name: id, type: int64, nullable: false, description: What a row is found by.}",
    ]
    for column in range(1, columns):
        kind = TYPES[(column - 1) % len(TYPES)]
        lines.append(f"  - {{name: column_{column}, type: '{kind}', description: Value {column}.}}")
    lines += ["row_keys: [id]", "tags: {owner: bench}"]
    return "\n".join(lines) + "\n"


def datasets(project: Path) -> int:
    """Returns the number of Lance datasets that the applied project has on disk."""
    return sum(1 for _ in (project / "lakes" / "bench").glob("*/*.lance"))
