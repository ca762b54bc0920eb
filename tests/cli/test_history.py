"""`history`: which versions are deployer's own and which are not, schemas, settings and indexes included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.cli.conftest import TWO_TABLES, Deployer
from tests.projects import applied_project, run, table

INDEXES = "indexes: [{kind: btree, columns: [delay]}]\n"


def change() -> None:
    for number in (1, 2):
        Path("rows.csv").write_text(f"id,delay\n{number},5\n", encoding="utf-8")
        run("ingest", "flights", "rows.csv")
    for more in (INDEXES, INDEXES + "sort_keys: [delay]\n"):
        Path("specs/flights.yaml").write_text(table("flights", "delay: int32", "gate: string", more=more))
        run("up", "--yes")


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """flights was created with an index, loaded twice, given a column, and rewritten for a sort key."""
    folder = applied_project(
        tmp_path / "project", {**TWO_TABLES, "flights.yaml": table("flights", "delay: int32", more=INDEXES)}, change
    )
    monkeypatch.chdir(folder)
    return folder


def foreign(deployer: Deployer) -> list[bool]:
    return [each["foreign"] for each in deployer("history", "flights", "--limit", "0", "--json").json["versions"]]


def test_nothing_of_deployers_is_called_foreign(deployer: Deployer, changed: Path) -> None:
    found = foreign(deployer)
    assert len(found) >= 8
    assert not any(found)


def test_a_rewrite_says_what_it_changed(deployer: Deployer, changed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "rewrite: sort keys none → delay" in deployer("history", "flights").out
    spec = changed / "specs" / "flights.yaml"
    text = spec.read_text(encoding="utf-8").replace("sort_keys: [delay]", "sort_keys: [gate]")
    spec.write_text(text + "partitions: {split_points: [10]}\n", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    told = [each["changes"] for each in deployer("history", "flights", "--json").json["versions"] if each["changes"]]
    assert told == [["sort keys delay → gate", "partitions 1 → 2 leaves, new at 10"], ["sort keys none → delay"]]


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.add_columns(pa.schema([pa.field("tail", pa.string())])),
        lambda dataset: dataset.add_columns({"twice": "delay * 2"}),
        lambda dataset: dataset.drop_columns(["gate"]),
        lambda dataset: dataset.alter_columns({"path": "gate", "name": "door"}),
        lambda dataset: dataset.alter_columns({"path": "gate", "data_type": pa.large_string()}),
        lambda dataset: dataset.create_scalar_index("gate", "BITMAP", name="own"),
        lambda dataset: dataset.update_config({"lance.auto_cleanup.interval": "20"}),
        lambda dataset: dataset.delete("id = 1"),
    ],
    ids=["add", "compute", "drop", "rename", "widen", "index", "config", "delete"],
)
def test_what_plain_lance_did_is(deployer: Deployer, changed: Path, change: Callable[[Any], None]) -> None:
    before = len(foreign(deployer))
    newest = max((changed / "lakes" / "demo" / "air").glob("flights-*.lance"), key=lambda path: "-g" in path.name)
    change(lance.dataset(str(newest)))
    found = foreign(deployer)
    assert found == [True] * (len(found) - before) + [False] * before
    assert len(found) > before
