"""Forged records of tables: `state rebuild` leaves their datasets out, in words, and writes nothing elsewhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Deployer
from tests.security.foreign.photograph import differences, photograph

Forge = Callable[[dict[str, Any]], object]


def entry(**changed: Any) -> Forge:
    return lambda record: record["entry"].update(changed)


def top(**changed: Any) -> Forge:
    return lambda record: record.update(changed)


def properties(**changed: Any) -> Forge:
    return lambda record: record["properties"].update(changed)


#: By name, what is forged in the record of air.flights. All of these are left out.
REFUSED: Mapping[str, Forge] = {
    "id_leads_out": entry(table_id="../../../evil"),
    "id_is_the_instance": entry(table_id="instance"),
    "id_of_another_table": entry(table_id="0" * 32, dataset=3),
    "name_is_a_path": entry(name="../flights"),
    "database_is_a_path": entry(database="/etc"),
    "name_with_control_characters": entry(name="flights\x1b[2J"),
    "location_leads_out": entry(location="../../elsewhere/flights-00000000.lance"),
    "location_is_absolute": entry(location="/etc/passwd"),
    "location_is_the_state": entry(location="_state/snapshots"),
    "location_of_another": entry(location="air/other-00000000.lance"),
    "status_is_unknown": entry(status="evil"),
    "number_is_negative": entry(dataset=-1),
    "number_is_huge": entry(dataset=2**70),
    "another_instance": top(instance="theirs"),
    "time_is_negative": top(at=-5),
    "time_is_huge": top(at=10**18),
    "newer_format": top(format=99),
    "another_kind": top(kind="evil"),
    "no_partitions": top(partitions=[]),
    "partitions_are_a_cycle": top(
        partitions={
            "partition_id": ["a", "b", "c"],
            "parent": [None, "a", "a"],
            "lower": ["", "", ""],
            "upper": [None, None, None],
            "children": [["b", "c"], ["a", "c"], []],
            "split_point": ["eA==", "eA==", None],
        }
    ),
    "datasets_elsewhere": top(
        datasets={
            "number": [1, 2],
            "location": ["air/flights-00000000.lance", "../x-g2.lance"],
            "status": ["retired", "current"],
            "since": [1, 1],
            "lance_version": [1, 1],
            "target": ["", ""],
        }
    ),
    "unknown_member": top(evil=1),
    "generation_is_a_text": properties(generation="x"),
    "storage_is_not_one": properties(storage={"max_rows_per_file": "evil"}),
    "savepoint_is_a_path": top(
        savepoints={
            "name": ["../../evil"],
            "lance_version": [1],
            "dataset": [1],
            "state_version": [1],
            "at": [1],
            "expires_at": [None],
            "author": ["x"],
            "note": [""],
        }
    ),
}


@pytest.fixture
def record(root: Path) -> Path:
    """The record of air.flights; the state store is gone."""
    shutil.rmtree(root / "_state")
    [found] = (root / "air").glob("flights-*.lance/_deployer/table.json")
    return found


def check_left_out(root: Path, deployer: Deployer, project: Path) -> None:
    [dataset] = (root / "air").glob("flights-*.lance")
    looked_at = (dataset, project / "specs", project / ".pulumi" / "stacks")
    before, beside = photograph(*looked_at), sorted(root.parent.parent.iterdir())
    ran = deployer("state", "rebuild", "--yes", "--json")
    assert ran.code == 2 and "Traceback" not in ran.err, ran
    assert [each["table"] for each in ran.json["tables"]] == ["air.notes", "air.planes"]
    assert len(ran.json["left_out"]) == 1 and "\x1b" not in deployer("state", "show", "--instance").out
    assert differences(before, photograph(*looked_at)) == []
    assert sorted(root.parent.parent.iterdir()) == beside
    assert [each["name"] for each in deployer("tables", "--json").json["tables"]] == ["air.notes", "air.planes"]


@pytest.mark.parametrize("forged", REFUSED)
def test_a_forged_record_is_left_out(record: Path, root: Path, project: Path, deployer: Deployer, forged: str) -> None:
    document = json.loads(record.read_text())
    REFUSED[forged](document)
    record.write_text(json.dumps(document))
    check_left_out(root, deployer, project)


#: What is in the place of the record.
CONTENT: Mapping[str, Callable[[Path], Any]] = {
    "not_json": lambda file: file.write_text("{"),
    "nested": lambda file: file.write_text("[" * 100_000),
    "not_text": lambda file: file.write_bytes(b"\xff\xfe\x00"),
    "a_list": lambda file: file.write_text("[1, 2]"),
    "nan": lambda file: file.write_text('{"kind": "deployer-table", "format": 1, "at": NaN}'),
    "a_folder": lambda file: file.rename(file.with_name("moved")).with_name("table.json").mkdir(),
    "a_pipe": lambda file: os.mkfifo(str(file.rename(file.with_name("moved")).with_name("table.json"))),
    "a_link": lambda file: file.rename(file.with_name("moved")).with_name("table.json").symlink_to("moved"),
}


@pytest.mark.parametrize("content", CONTENT)
def test_what_is_not_a_record_is_left_out(
    record: Path, root: Path, project: Path, deployer: Deployer, content: str
) -> None:
    CONTENT[content](record)
    check_left_out(root, deployer, project)


def test_a_copy_of_a_dataset_does_not_count(record: Path, root: Path, deployer: Deployer) -> None:
    dataset = record.parent.parent
    shutil.copytree(dataset, root / "air" / "copy.lance")
    ran = deployer("state", "rebuild", "--yes", "--json")
    assert ran.code == 2 and [each["where"] for each in ran.json["left_out"]] == ["air/copy.lance"]
    assert "it is a copy, or was moved" in ran.json["left_out"][0]["what"]
    assert [each["table"] for each in ran.json["tables"]] == ["air.flights", "air.notes", "air.planes"]
    assert [each["rows"] for each in deployer("tables", "--json").json["tables"]] == [3, 3, 3]


@pytest.mark.parametrize("taken", ["id", "name"])
def test_of_two_that_claim_to_be_one_table_neither_counts(
    record: Path, root: Path, deployer: Deployer, taken: str
) -> None:
    [other] = (root / "air").glob("planes-*.lance/_deployer/table.json")
    theirs, own = json.loads(other.read_text()), json.loads(record.read_text())
    if taken == "id":
        theirs["entry"]["table_id"] = own["entry"]["table_id"]
    else:
        theirs["entry"]["name"] = "flights"
    other.write_text(json.dumps(theirs))
    ran = deployer("state", "rebuild", "--yes", "--json")
    assert ran.code == 2 and "Traceback" not in ran.err
    assert [each["table"] for each in ran.json["tables"]] == ["air.notes"]
    assert {"air/planes", "air/flights"} == {each["where"].partition("-")[0] for each in ran.json["left_out"]}


def test_records_are_not_written_through_links(project: Path, root: Path, deployer: Deployer) -> None:
    [folder] = (root / "air").glob("flights-*.lance/_deployer")
    elsewhere = project / "elsewhere"
    shutil.move(folder, elsewhere)
    (elsewhere / "table.json").unlink()
    folder.symlink_to(elsewhere)
    assert deployer("table", "offline", "flights").code == 0
    assert not (elsewhere / "table.json").exists()
