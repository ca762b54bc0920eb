"""Locations that somebody else wrote into the state: nothing is read, written or removed there."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deployer.datasets.storage.places import erase_dataset
from deployer.datasets.storage.removal import remove_dataset
from deployer.errors import Corrupt, DeployerError, Refused
from deployer.platform.storage.envelope import digest, seal, unseal
from deployer.platform.text.visible import shortened
from deployer.state import open_store
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.model.location import Location, new_location, rewrite_location

from . import forge
from .conftest import Deployer

COMMANDS = (
    ("preview",),
    ("up", "--yes"),
    ("table", "gc"),
    ("table", "gc", "planes"),
    ("service", "run", "planes", "CLEAN"),
    ("service", "run", "flights", "CLEAN"),
    ("table", "reinitialise", "planes", "--force"),
    ("table", "delete", "planes", "--force"),
    ("destroy", "--yes"),
)

BAD = {
    "absolute": "{outside}",
    "up": "../../../{outside.name}",
    "up in between": "air/../../../../{outside.name}",
    "the root": ".",
    "nothing": "",
    "the state": "_state",
    "in the state": "_state/snapshots/x-0a1b2c3d.lance",
    "code of jobs": "_jobs/x-0a1b2c3d.lance",
    "another folder of ours": "_anything/x.lance",
    "an empty part": "air//flights.lance",
    "a part that is the folder": "air/./flights.lance",
    "a folder that ends": "air/flights.lance/",
    "a backslash": "air\\..\\flights.lance",
    "a drive": "C:/x.lance",
    "a scheme": "s3://bucket/x.lance",
    "a file's scheme": "file:/x.lance",
    "an escaped dot": "air/%2e%2e/x.lance",
    "an escaped letter": "air/%66lights.lance",
    "a query": "air/flights.lance?x",
    "a fragment": "air/flights.lance#x",
    "a line feed": "air/flights\n.lance",
    "an escape": "air/\x1b[2Jflights.lance",
    "a format character": "air/\u202eflights.lance",
    "a blank at its end": "air/flights.lance ",
    "a hidden folder": ".pulumi/x.lance",
    "within a dataset": "air/x.lance/y.lance",
    "a dataset's versions": "air/x.lance/_versions",
    "too long": "air/" + "x" * 1000 + ".lance",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_path_that_may_lead_elsewhere_is_no_location(bad: str, tmp_path: Path) -> None:
    """F2: the one constructor refuses every form of path that is not a dataset's below the root."""
    with pytest.raises(ValueError, match=r"."):
        Location(bad.format(outside=tmp_path / "outside"))


@pytest.mark.parametrize(
    "good",
    [
        "air/flights-0a1b2c3d.lance",
        "_mine/flights-0a1b2c3d-g12.lance",
        "trips.lance",
        "My data/Übersicht 2.lance",
        "plain",
        "a/b/c/100%.lance",
    ],
)
def test_what_deployer_makes_and_imports_is_a_location(good: str) -> None:
    """F2: what is stored today stays readable."""
    assert Location(good) == good and json.dumps(Location(good)) == json.dumps(good)


def test_a_rewrite_goes_to_a_place_with_the_tables_own_id() -> None:
    """F2: also where the table was imported under a name of its own."""
    id = "0a1b2c3d" * 4
    made = new_location("air", "flights", id)
    assert rewrite_location(made, id, 2) == "air/flights-0a1b2c3d-g2.lance"
    assert rewrite_location(rewrite_location(made, id, 2), id, 3) == "air/flights-0a1b2c3d-g3.lance"
    assert rewrite_location(Location("trips.lance"), id, 2) == "trips-0a1b2c3d-g2.lance"
    assert rewrite_location(Location("trips-g2.lance"), id, 3) == "trips-0a1b2c3d-g3.lance"


def started(location: str, number: int = 9) -> dict[str, Any]:
    return {"type": "rewrite-started", "number": number, "location": location, "target": "x"}


def run_all(deployer: Deployer, commands: Sequence[Sequence[str]] = COMMANDS) -> list[str]:
    """What they printed; each ends with an exit code of its own and without a traceback."""
    said = []
    for command in commands:
        ran = deployer(*command)
        assert ran.code in (0, 1, 2, 3), (command, ran)
        assert "Traceback" not in ran.out + ran.err, (command, ran)
        said.append(ran.out + ran.err)
    return said


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_rewrite_that_was_never_begun_removes_nothing_outside(
    bad: str, root: Path, outside: Path, deployer: Deployer
) -> None:
    """F2: an entry `rewrite-started` with a location of somebody's choice, appended to a table's log."""
    planes, flights = forge.table(root, "planes"), forge.table(root, "flights")
    before = forge.tree(root / flights.location)
    forge.append(root, planes.table_id, started(bad.format(outside=outside)), aged=forge.LONG_AGO)
    ran = deployer("preview")
    assert ran.code == 0 and f"log {planes.table_id}" in ran.out and "location" in ran.out
    assert shortened(bad.format(outside=outside))[:30] in ran.out and "deployer state verify" in ran.out
    run_all(deployer)
    assert forge.tree(root / flights.location) == before and (root / "_state" / "state.db").exists()


ELSEWHERE: dict[str, Callable[[Any, Any], str]] = {
    "another table": lambda planes, flights: str(flights.location),
    "another table's next": lambda planes, flights: str(rewrite_location(flights.location, flights.table_id, 9)),
    "its own current": lambda planes, flights: str(planes.location),
    "its own of another number": lambda planes, flights: str(rewrite_location(planes.location, planes.table_id, 8)),
    "a database": lambda planes, flights: "air",
    "a plain dataset": lambda planes, flights: "air/plain-g9.lance",
}


@pytest.mark.parametrize("place", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_rewrite_cannot_be_at_anothers_place(
    place: Callable[[Any, Any], str], root: Path, deployer: Deployer
) -> None:
    """F2: a well-formed location that is another table's, or no table's, is none of this table's either."""
    planes, flights = forge.table(root, "planes"), forge.table(root, "flights")
    shutil.copytree(root / flights.location, root / "air" / "plain-g9.lance")
    before = forge.tree(root)
    forge.append(root, planes.table_id, started(place(planes, flights)), aged=forge.LONG_AGO)
    run_all(deployer, COMMANDS[:-2])
    assert forge.tree(root) == before


def test_the_current_data_of_a_table_cannot_be_registered_again(root: Path, deployer: Deployer) -> None:
    """F2: two entries of the instance with one location, or one inside the other: the later one is refused."""
    flights = forge.table(root, "flights")
    entry = {
        "table_id": "ee" * 16,
        "database": "air",
        "name": "copy",
        "location": flights.location,
        "status": "active",
        "created_at": 1,
        "dataset": 1,
    }
    for location in (flights.location, f"{flights.location}/x", "air"):
        before = forge.tree(root)
        version = forge.to_instance(root, {"type": "register-table", "entry": {**entry, "location": location}})
        ran = deployer("preview")
        assert ran.code == 1 and f"entry {version} of log instance" in ran.err
        run_all(deployer)
        assert forge.tree(root) == before
        with closing(sqlite3.connect(forge.database_of(root))) as database, database:
            database.execute("DELETE FROM entries WHERE log = 'instance' AND version = ?", (version,))


def test_anothers_lake_cannot_be_registered(root: Path, copied: Callable[[str], Path], deployer: Deployer) -> None:
    """F2: `register-table` with a location in another lake, which `query` read and `table delete --force` deleted."""
    other = copied("other") / "lakes" / "demo"
    before = forge.tree(other)
    copied("third")
    third = Path.cwd() / "lakes" / "demo"
    location = f"../../../other/lakes/demo/{forge.table(other, 'flights').location}"
    entry = {"table_id": "ee" * 16, "database": "air", "name": "theirs", "location": location, "status": "active"}
    forge.to_instance(third, {"type": "register-table", "entry": {**entry, "created_at": 1, "dataset": 1}})
    for command in (("query", "theirs"), ("table", "delete", "theirs", "--force"), ("up", "--yes")):
        ran = deployer(*command)
        assert ran.code == 1 and "of log instance" in ran.err
    assert forge.tree(other) == before


def test_a_tables_data_cannot_be_moved_to_anothers(root: Path, deployer: Deployer) -> None:
    """F2: `set-table-dataset` to data that is not the table's."""
    planes, flights = forge.table(root, "planes"), forge.table(root, "flights")
    before = forge.tree(root)
    for location in (str(flights.location), "air/plain.lance", str(new_location("air", "planes", "ff" * 16))):
        update = {"type": "set-table-dataset", "table_id": planes.table_id, "location": location, "dataset": 1}
        version = forge.to_instance(root, update)
        ran = deployer("table", "delete", "planes", "--force")
        assert ran.code == 1 and f"entry {version} of log instance" in ran.err
        with closing(sqlite3.connect(forge.database_of(root))) as database, database:
            database.execute("DELETE FROM entries WHERE log = 'instance' AND version = ?", (version,))
    assert forge.tree(root) == before


@pytest.mark.parametrize("kind", ["entry", "snapshot"])
def test_an_export_with_a_foreign_location_is_not_acted_on(
    kind: str, root: Path, outside: Path, project: Path, deployer: Deployer
) -> None:
    """F2: an edited export with recomputed digests, imported as a lake's state."""
    planes = forge.table(root, "planes")
    if kind == "snapshot":
        with closing(open_store(root)) as store:
            store.snapshot(INSTANCE_LOG)
    assert deployer("state", "export", "exported.zip").code == 0
    edit_export(project / "exported.zip", planes.table_id, planes.location, str(outside), kind)
    shutil.rmtree(root / "_state")
    ran = deployer("state", "import", "exported.zip", "--yes")
    before = forge.tree(root)
    if ran.code == 0:
        said = run_all(deployer, (("preview",), ("up", "--yes"), ("table", "delete", "planes", "--force")))
        assert all("state verify" in each or "backup" in each for each in said)
    assert forge.tree(root) == before


def edit_export(path: Path, table_id: str, location: str, other: str, kind: str) -> None:
    """Puts another location into an export's instance log, or into its snapshot, with the digests that fit."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    if kind == "entry":
        name = f"{table_id}/entries.jsonl"
        lines = [json.loads(line) for line in members[name].splitlines()]
        lines.append({**lines[-1], "version": lines[-1]["version"] + 1, "txn_id": "cd" * 16, "requirements": []})
        lines[-1] |= {"updates": [started(other)]}
        lines = [{**line, "at": forge.LONG_AGO} for line in lines]
        members[name] = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        manifest["logs"][table_id]["version"] += 1
    else:
        (name,) = (each for each in members if each.startswith("instance/") and each.endswith("tables.parquet"))
        table = pq.read_table(pa.BufferReader(members[name]))
        changed = [other if each == location else each for each in table["location"].to_pylist()]
        table = table.set_column(table.schema.get_field_index("location"), "location", pa.array(changed, pa.string()))
        file = io.BytesIO()
        pq.write_table(table, file)
        members[name] = file.getvalue()
        (snapshot,) = manifest["logs"]["instance"]["snapshots"]
        snapshot["parts"]["tables"]["digest"] = digest(members[name]).hex()
        beside = f"{snapshot['location']}/manifest.json"
        members[beside] = json.dumps(snapshot).encode()
        manifest["digests"][beside] = digest(members[beside]).hex()
    manifest["digests"][name] = digest(members[name]).hex()
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in {**members, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(member, data)


def test_a_snapshot_is_checked_as_entries_are(root: Path, outside: Path, deployer: Deployer) -> None:
    """F2: a snapshot's pointer whose files are elsewhere, and one that names another log's."""
    with closing(open_store(root)) as store:
        store.snapshot(INSTANCE_LOG)
    with closing(sqlite3.connect(forge.database_of(root))) as database, database:
        (body,) = database.execute("SELECT body FROM snapshots").fetchone()
        manifest = json.loads(unseal(body, ""))
        change: dict[str, Any]
        for change in (
            {"location": f"instance/../../../../{outside.name}"},
            {"location": str(outside)},
            {"parts": {"../x": {"rows": 1, "bytes": 1, "digest": ""}}},
            {"parts": []},
            {"location": 7},
            {"format": "x"},
        ):
            database.execute("UPDATE snapshots SET body = ?", (seal(json.dumps({**manifest, **change}).encode()),))
            database.commit()
            with closing(open_store(root)) as store:
                assert store.instance().tables  # from the log, which is whole
            assert deployer("state", "verify").code == 2
            assert deployer("state", "repair", "--dry-run").code == 2


def test_a_link_is_never_followed_when_data_is_removed(root: Path, outside: Path, deployer: Deployer) -> None:
    """F2: a database's folder, a dataset or a folder in it that is a link, whether or not it leads out of the root."""
    planes = forge.table(root, "planes")
    whole = root / planes.location
    aside = root.parent / "aside"
    whole.rename(aside)
    whole.symlink_to(aside)
    before = forge.tree(aside)
    ran = deployer("table", "delete", "planes", "--force")
    assert ran.code == 3 and "is a link" in ran.err
    assert forge.tree(aside) == before
    whole.unlink()
    aside.rename(whole)
    (root / "air").rename(root / "real")
    (root / "air").symlink_to(root / "real")
    before = forge.tree(root / "real")
    ran = deployer("table", "delete", "planes", "--force")
    assert ran.code == 3 and "is a link" in ran.err and forge.tree(root / "real") == before


def test_garbage_is_not_looked_for_behind_a_link(root: Path, outside: Path, deployer: Deployer) -> None:
    """F2: `data` of a dataset is a link, so files that no version has lie outside."""
    import os

    planes = forge.table(root, "planes")
    folder = root / planes.location / "_indices"
    folder.symlink_to(outside)
    for path in outside.rglob("*"):
        os.utime(path, (1, 1))
    for command in (("table", "gc", "planes"), ("service", "run", "planes", "CLEAN")):
        ran = deployer(*command)
        assert ran.code == 3 and "is a link" in ran.err, ran


def test_a_folder_that_holds_more_than_a_dataset_is_not_removed(tmp_path: Path) -> None:
    """F2: even where a location passes every other check."""
    folder = tmp_path / "air" / "x-0a1b2c3d.lance"
    for name in ("data", "_versions", "letters"):
        (folder / name).mkdir(parents=True)
    with pytest.raises(Refused, match="it holds 'letters', which no dataset has"):
        erase_dataset(str(tmp_path), Location("air/x-0a1b2c3d.lance"))
    assert (folder / "data").is_dir()
    (folder / "letters").rmdir()
    erase_dataset(str(tmp_path), Location("air/x-0a1b2c3d.lance"))
    assert not folder.exists()


def test_removal_asks_the_whole_instance_again(root: Path) -> None:
    """F2: whatever its caller believes of a location, the one function that removes data checks it."""
    planes, flights = forge.table(root, "planes"), forge.table(root, "flights")
    before = forge.tree(root)
    with closing(open_store(root)) as store:
        for location in (planes.location, flights.location, Location("air/planes.lance"), Location("air")):
            with pytest.raises(DeployerError, match="not removed"):
                remove_dataset(store, str(root), planes.table_id, location)
        own = rewrite_location(planes.location, planes.table_id, 2)
        shutil.copytree(root / planes.location, root / own)
        remove_dataset(store, str(root), planes.table_id, own)
    assert forge.tree(root) == before


def test_a_dataset_that_another_table_keeps_is_not_removed(root: Path) -> None:
    """F2: ids may share their first digits, and then names of datasets could meet."""
    planes, flights = forge.table(root, "planes"), forge.table(root, "flights")
    id = flights.table_id[:8] + "0" * 24
    with closing(open_store(root)) as store:
        from deployer.tables.evolution.rewrite.truncate import reinitialise_table

        reinitialise_table(store, str(root), flights.table_id, allow_destroy=True)
        now = store.instance().tables[flights.table_id]
    assert now.location != flights.location
    entry = {
        **named(replace(now, table_id=id, name="other")),
        "location": f"air/flights-{id[:8]}-g7.lance",
        "dataset": 1,
    }
    forge.to_instance(root, {"type": "register-table", "entry": entry})
    before = forge.tree(root)
    with closing(open_store(root)) as store, pytest.raises(Corrupt, match=r"dataset 1 of table air\.flights is there"):
        remove_dataset(store, str(root), id, flights.location)
    assert forge.tree(root) == before and planes


def named(entry: Any) -> dict[str, Any]:
    from deployer.state.log.codec import encode

    return encode(entry)
