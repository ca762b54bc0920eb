"""`drift`: what somebody changed by other means, by whom, and taken over into the specs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project

FLIGHTS = """\
# Who may change this: the night shift.
kind: Table
database: air
name: flights   # as in the source
description: 'Flights of a day.'

x-minutes: &minutes { type: int32 } # shared
columns:
  # the key
  - { name: id,  type: int64, nullable: false }
  - name: origin
    type: "string"   # FAA code
  - { name: delay, <<: *minutes }
  - { name: gate, type: string }

row_keys: [ id ]   # never null
tags:
  owner: ops  # by chat
  team: "blue"
---
kind: Schema
name: place
columns:
  - { name: city, type: string }
---
kind: Table
database: air
name: planes
schemas: [place]
columns:
- {name: id, type: int64, nullable: false}
description: ${about}
row_keys: [id]
---
kind: Variables
variables: { about: { default: Planes. } }
"""


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two tables, applied; the current folder."""
    folder = applied_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": FLIGHTS})
    monkeypatch.chdir(folder)
    return folder


def dataset(folder: Path, table: str) -> Any:
    return lance.dataset(str(next((folder / "lakes" / "demo" / "air").glob(f"{table}-*.lance"))))


def set_properties(folder: Path, table: str, author: str = "ann@night", **changes: Any) -> None:
    with closing(open_store(str(folder / "lakes" / "demo"))) as store:
        entry = store.instance().by_name(f"air.{table}")
        assert entry is not None
        store.commit(entry.table_id, [SetTableProperties(changes)], author=author)


def summaries(deployer: Deployer) -> list[str]:
    return [each["summary"] for each in deployer("drift", "--json").json["drift"]]


def edited(folder: Path, deployer: Deployer, *changes: tuple[str, str]) -> None:
    """`--write-spec` makes exactly these changes to the text, and nothing is left to do afterwards."""
    ran = deployer("drift", "--write-spec")
    assert ran.code == 0, ran.out + ran.err
    expected = FLIGHTS
    for before, after in changes:
        assert before in expected
        expected = expected.replace(before, after, 1)
    assert (folder / "specs" / "flights.yaml").read_text(encoding="utf-8") == expected
    assert deployer("drift").code == 0
    assert deployer("preview", "--exit-code").code == 0


def test_nothing_changed_is_no_drift(deployer: Deployer, applied: Path) -> None:
    (applied / "rows.csv").write_text("id,origin,delay,gate\n1,JFK,5,A\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0
    lance.write_dataset(dataset(applied, "flights").to_table(), dataset(applied, "flights").uri, mode="append")
    ran = deployer("drift")
    assert (ran.code, ran.out) == (0, "no drift: live state is what stack dev last applied\n")


def test_an_edited_spec_is_no_drift(deployer: Deployer, applied: Path) -> None:
    spec = applied / "specs" / "flights.yaml"
    spec.write_text(FLIGHTS.replace("Flights of a day", "All flights"), encoding="utf-8")
    assert deployer("drift").code == 0
    assert deployer("preview", "--exit-code").code == 2


def test_it_looks_where_the_lake_was_applied(deployer: Deployer, applied: Path) -> None:
    spec = applied / "specs" / "demo.yaml"
    spec.write_text(INSTANCE.replace("lakes/demo", "lakes/moved"), encoding="utf-8")
    assert deployer("drift").code == 0


def test_it_says_what_by_whom_and_when(deployer: Deployer, applied: Path) -> None:
    dataset(applied, "flights").add_columns(pa.schema([pa.field("tail", pa.string())]))
    set_properties(applied, "flights", tags={"owner": "night"})
    ran = deployer("drift", "--json")
    assert ran.code == 2
    column, tags = ran.json["drift"]
    assert (column["summary"], column["who"], column["version"]) == ("add column tail: string", "plain Lance", 2)
    assert (tags["summary"], tags["who"]) == ("tags owner=ops, team=blue → owner=night", "ann@night")
    assert column["at"].startswith("20")
    assert column["at"].endswith("+00:00")
    shown = deployer("drift")
    assert shown.code == 2
    assert "table/air.flights\n  add column tail: string  plain Lance, 20" in shown.out


def test_tables_that_nobody_declared_are_listed(deployer: Deployer, applied: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), str(applied / "lakes" / "demo" / "own.lance"), data_storage_version="2.1")
    ran = deployer("drift", "--json")
    assert ran.code == 2
    assert [each["what"] for each in ran.json["undeclared"]] == ["own.lance"]
    assert deployer("import", "air.own").code == 0
    assert deployer("drift").code == 0


def test_tables_of_a_lake_that_is_gone_are_not_reported_as_deleted(deployer: Deployer, applied: Path) -> None:
    """Its disk may not be mounted: no table was examined."""
    import shutil

    shutil.rmtree(applied / "lakes")
    ran = deployer("drift")
    assert ran.code == 3 and "the state store is missing" in ran.err and "delete" not in ran.out


def test_a_stack_that_applied_nothing_has_none(deployer: Deployer, project: Path) -> None:
    ran = deployer("drift")
    assert ran.code == 1
    assert "never applied anything" in ran.err


@pytest.mark.parametrize(
    ("properties", "changes"),
    [
        pytest.param({"online": False}, [('team: "blue"\n', 'team: "blue"\nonline: false\n')], id="new-property"),
        pytest.param({"description": "New."}, [("'Flights of a day.'", "'New.'")], id="quotes"),
        pytest.param({"description": ""}, [("description: 'Flights of a day.'\n", "")], id="removed"),
        pytest.param(
            {"tags": {"owner": "night", "team": "blue"}}, [("owner: ops  # ", "owner: night # ")], id="comment"
        ),
        pytest.param(
            {"tags": {"owner": "ops", "team": "blue", "x": "1"}}, [('"blue"\n', "\"blue\"\n  x: '1'\n")], id="tag"
        ),
    ],
)
def test_properties_become_edits(
    deployer: Deployer, applied: Path, properties: dict[str, Any], changes: list[tuple[str, str]]
) -> None:
    set_properties(applied, "flights", **properties)
    edited(applied, deployer, *changes)


GATE = "  - { name: gate, type: string }\n"


def test_a_new_column_becomes_an_edit(deployer: Deployer, applied: Path) -> None:
    dataset(applied, "flights").add_columns(pa.schema([pa.field("tail", pa.int16())]))
    edited(applied, deployer, (GATE, GATE + "  - { name: tail, type: int16 }\n"))


def test_a_dropped_column_becomes_an_edit(deployer: Deployer, applied: Path) -> None:
    dataset(applied, "flights").drop_columns(["gate"])
    edited(applied, deployer, (GATE, ""))


def test_a_dropped_column_in_the_block_style(deployer: Deployer, applied: Path) -> None:
    dataset(applied, "flights").drop_columns(["origin"])
    edited(applied, deployer, ('  - name: origin\n    type: "string"   # FAA code\n', ""))


def test_a_wider_type_becomes_an_edit(deployer: Deployer, applied: Path) -> None:
    dataset(applied, "flights").alter_columns({"path": "origin", "data_type": pa.large_string()})
    edited(applied, deployer, ('"string"   # FAA', '"large_string" # FAA'))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            lambda folder: dataset(folder, "flights").alter_columns({"path": "delay", "data_type": pa.int64()}),
            "flights.yaml:7:23: column delay is shared by an anchor or alias",
            id="merge",
        ),
        pytest.param(
            lambda folder: dataset(folder, "planes").drop_columns(["city"]),
            "it is declared in schema place",
            id="schema",
        ),
        pytest.param(
            lambda folder: set_properties(folder, "planes", description="Other."),
            "`description` comes from a variable: ${about}",
            id="variable",
        ),
    ],
)
def test_what_is_declared_elsewhere_is_refused_with_its_place(
    deployer: Deployer, applied: Path, change: Any, said: str
) -> None:
    change(applied)
    set_properties(applied, "flights", online=False)
    ran = deployer("drift", "--write-spec")
    assert ran.code == 3
    assert said in ran.err
    assert "specs/flights.yaml:" in ran.err
    assert (applied / "specs" / "flights.yaml").read_text(encoding="utf-8") == FLIGHTS


def overlaid(folder: Path, deployer: Deployer, properties: str) -> Path:
    file = folder / "specs" / "overlay.yaml"
    file.write_text(f"kind: Overlay\nstack: dev\ntarget: table/air.flights\nset:\n{properties}", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    return file


def test_a_value_of_an_overlay_is_edited_there(deployer: Deployer, applied: Path) -> None:
    file = overlaid(applied, deployer, "  description: Dev. # for now\n")
    set_properties(applied, "flights", description="Live.")
    assert deployer("drift", "--write-spec", "--json").json["written"] == ["specs/overlay.yaml"]
    assert "  description: Live. # for now\n" in file.read_text(encoding="utf-8")
    assert (applied / "specs" / "flights.yaml").read_text(encoding="utf-8") == FLIGHTS
    assert deployer("preview", "--exit-code").code == 0


def test_a_value_of_two_places_is_refused(deployer: Deployer, applied: Path) -> None:
    overlaid(applied, deployer, "  tags: { owner: dev }\n")
    set_properties(applied, "flights", tags={"owner": "night", "team": "blue"})
    ran = deployer("drift", "--write-spec")
    assert ran.code == 3
    assert "declared in several places" in ran.err
    assert (applied / "specs" / "flights.yaml").read_text(encoding="utf-8") == FLIGHTS
