"""Sizes of changed columns in a preview, as a user reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.tables.evolution.schema import column_sizes
from tests.cli.conftest import Deployer, deployer
from tests.projects import INSTANCE, make_project, table

__all__ = ["deployer"]

ROWS, LETTERS = 10_000, 20


def spec(*columns: str) -> str:
    return table("t", *columns)


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deployer: Deployer) -> Path:
    """A project with air.t: 10,000 rows in two files, texts of 20 letters that do not compress."""
    project = make_project(
        tmp_path / "project", {"demo.yaml": INSTANCE, "t.yaml": spec("small: int8", "note: string", POINT)}
    )
    monkeypatch.chdir(project)
    assert deployer("up", "--yes").code == 0
    [location] = project.glob("lakes/demo/air/t-*.lance")
    schema = lance.dataset(str(location)).schema
    for start in (0, ROWS // 2):
        numbers = range(start, start + ROWS // 2)
        rows = [
            {"id": n, "small": n % 100, "note": text(n), "point": {"x": n * 0.1, "text": text(-n - 1)}} for n in numbers
        ]
        lance.write_dataset(pa.Table.from_pylist(rows, schema=schema), str(location), mode="append")
    return project


POINT = "point: struct<x: float64, text: string>"


def text(number: int) -> str:
    import hashlib

    return hashlib.sha256(str(number).encode()).hexdigest()[:LETTERS]


def changes(project: Path, deployer: Deployer, *columns: str) -> list[dict[str, Any]]:
    (project / "specs" / "t.yaml").write_text(spec(*columns), encoding="utf-8")
    return [change for each in deployer("preview", "--json").json["resources"] for change in each["changes"]]


@pytest.mark.parametrize(
    ("columns", "least", "most", "about"),
    [
        pytest.param(("note: string", POINT), 1, ROWS, False, id="dropped-bytes"),
        pytest.param(("small: int8", POINT), ROWS * LETTERS // 2, ROWS * (LETTERS + 9), False, id="dropped-text"),
        pytest.param(
            ("small: int8", "note: string", "point: struct<x: float64>"),
            ROWS * LETTERS // 2,
            ROWS * (LETTERS + 9),
            False,
            id="dropped-field",
        ),
        pytest.param(("small: int64", "note: string", POINT), ROWS * 8, ROWS * 8, False, id="widened"),
        pytest.param(
            ("small: int8", "note: large_string", POINT),
            ROWS * LETTERS // 2,
            ROWS * (LETTERS + 9),
            True,
            id="widened-text",
        ),
    ],
)
def test_a_changed_column_is_as_large_as_it_is(
    columns: tuple[str, ...], least: int, most: int, about: bool, filled: Path, deployer: Deployer
) -> None:
    [change] = changes(filled, deployer, *columns)
    assert change["rows"] == ROWS
    assert least <= change["bytes"] <= most
    assert change.get("bytes_about", False) is about


def test_many_files_are_not_asked(filled: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_sizes, "MOST_FILES", 1)
    [change] = changes(filled, deployer, "small: int8", POINT)
    assert change["bytes_about"]
    [resource] = deployer("preview", "--json").json["resources"]
    assert change["bytes"] == resource["bytes"] // 5
    assert "about" in deployer("preview").out
