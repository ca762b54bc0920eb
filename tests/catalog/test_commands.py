"""`deployer catalog entries` and `tables`, which need no client."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.cli.main import run
from tests.catalog.clients import APPEND, Client, hex_of
from tests.tables.lakes import FLIGHTS, Lake

KEYED = pa.schema([pa.field("k", pa.int64(), metadata={"rerun:is_table_index": "true"}), pa.field("v", pa.utf8())])


@pytest.fixture
def outside(client: Client, tmp_path: Path) -> Path:
    """The folder of an external table with one row."""
    client.create("notes", KEYED, (tmp_path / "notes").as_uri())
    client.write("notes", APPEND, pa.table({"k": [1], "v": ["a"]}))
    return tmp_path / "notes"


def test_entries_are_listed(client: Client, lake: Lake, outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["catalog", "entries", "--root", lake.root, "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["entries"]
    assert [(each["name"], each["kind"]) for each in entries] == [
        ("air.flights", "table"),
        ("air.empty", "table"),
        ("notes", "table"),
    ]
    assert entries[2]["id"] == hex_of(client.entry("notes").id) and entries[2]["url"] == outside.as_uri()
    assert run(["catalog", "entries", "--root", lake.root]) == 0
    assert "notes" in capsys.readouterr().out


def test_tables_are_listed_with_columns_and_rows(lake: Lake, outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["catalog", "tables", "--root", lake.root, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = {each["name"]: each for each in shown["tables"]}
    assert shown["unreadable"] == []
    assert [(name, each["of"], each["rows"], each["index"]) for name, each in found.items()] == [
        ("air.flights", "instance", 40, ["carrier", "flight"]),
        ("air.empty", "instance", 0, []),
        ("notes", "external", 1, ["k"]),
    ]
    assert [each["name"] for each in found["air.flights"]["columns"]] == FLIGHTS.names
    assert found["notes"]["columns"][0] == {"name": "k", "type": "int64", "nullable": True}
    assert run(["catalog", "tables", "--root", lake.root]) == 0
    assert "carrier, flight" in capsys.readouterr().out


def test_a_table_that_cannot_be_read_is_named(lake: Lake, outside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside.rename(outside.with_name("moved"))
    assert run(["catalog", "tables", "--root", lake.root, "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in shown["tables"]] == ["air.flights", "air.empty"]
    assert [(each["error"]["kind"], each["error"]["where"]) for each in shown["unreadable"]] == [("NotFound", "notes")]
    assert run(["catalog", "tables", "--root", lake.root]) == 1
    captured = capsys.readouterr()
    assert "notes: there is no Lance table at" in captured.out + captured.err


def test_where_there_is_no_instance_the_command_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["catalog", "tables", "--root", str(tmp_path / "none")]) == 1
    assert "there is no state store" in capsys.readouterr().err
