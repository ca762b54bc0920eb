"""A view is a table in its own right: partitions, keys, indexes, search, services, savepoints and a change feed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployer.cli.main import run
from tests.projects import INSTANCE, make_project

NOTES = """kind: Table
database: air
name: notes
columns:
  - { name: id, type: int64, nullable: false }
  - { name: city, type: string, nullable: false }
  - { name: text, type: string }
row_keys: [id]
"""
WORDS = """kind: View
database: air
name: words
query: SELECT city, id, text, character_length(text) AS size FROM air.notes WHERE text IS NOT NULL
row_keys: [city, id]
sort_keys: [size]
partitions: { split_points: [[DL, 0], [MQ, 0]] }
indexes:
  - { kind: btree, columns: [size] }
  - { kind: inverted, columns: [text] }
services:
  refresh: { trigger: { rows: 5 } }
  compact: { trigger: { small_files: 100 } }
tags: { owner: geo }
retain_changes: 3d
"""
CITIES = ("AA", "BX", "DL", "MM", "MQ", "ZZ")
TEXTS = ("late by snow", "on time", "storm and rain", "late crew")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    specs = {"demo.yaml": INSTANCE, "notes.yaml": NOTES, "words.yaml": WORDS}
    monkeypatch.chdir(make_project(tmp_path / "project", specs))

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    assert call("up", "--yes")[0] == 0
    return call


def load(command: Run, start: int, stop: int, prefix: str = "") -> None:
    lines = [f"{each},{CITIES[each % 6]},{prefix}{TEXTS[each % 4]}" for each in range(start, stop)]
    Path("rows.csv").write_text("\n".join(["id,city,text", *lines]), encoding="utf-8")
    assert command("ingest", "notes", "rows.csv")[0] == 0


def found(command: Run, *arguments: str) -> Any:
    code, out, notes = command(*arguments, "--json")
    assert code == 0, notes
    return json.loads(out)


def test_a_view_is_partitioned_indexed_searched_served_saved_and_followed(command: Run) -> None:
    load(command, 0, 60)
    assert command("service", "run", "--all")[0] == 0  # the trigger of REFRESH
    about = found(command, "describe", "words")
    assert [leaf["rows"] for leaf in about["leaves"]] == [20, 20, 20]
    assert [(each["name"], each["status"]) for each in about["indexes"]] == [
        ("size_btree", "ready"),
        ("text_inverted", "ready"),
    ]
    assert len(found(command, "query", "words", "--where", "city = 'DL'")["rows"]) == 10
    assert command("savepoint", "create", "before", "--table", "words")[0] == 0
    version = about["lance_version"]

    load(command, 60, 70, "avalanche ")
    assert "10 rows written to its sources" in command("service", "run", "--all", "--dry-run")[1]
    assert command("service", "run", "--all")[0] == 0
    hits = found(command, "search", "words", "avalanche", "--limit", "20")["rows"]
    assert sorted(row["id"] for row in hits) == list(range(60, 70))
    changes = found(command, "changes", "words", "--since", str(version))
    assert len(changes["rows"]) == 10

    assert command("restore", "before", "--yes")[0] == 0
    assert len(found(command, "query", "words", "--limit", "0")["rows"]) == 60
    assert command("service", "run", "words", "compact")[0] == 0
    done = found(command, "view", "refresh", "words")
    assert (done["mode"], done["rows_inserted"]) == ("incremental", 10)
    assert len(found(command, "query", "words", "--limit", "0")["rows"]) == 70
    assert sum(leaf["rows"] for leaf in found(command, "describe", "words")["leaves"]) == 70
