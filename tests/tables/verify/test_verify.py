"""`verify` names whatever the state says otherwise than the dataset; `repair` puts it right, or says why it cannot."""

from __future__ import annotations

import datetime as dt
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.services.savepoints.savepoints import take_savepoint
from deployer.state.log.updates import CommitStarted, FilesAdded, FilesRemoved, FilesReplaced, SetSchema, TableUpdate
from deployer.state.model.entities import File, TableEntry, TableState
from deployer.tables.maintenance.verify.audit_dataset import DatasetAudit, audit_dataset
from deployer.tables.maintenance.verify.verify import repair, verify
from deployer.tables.open_table import open_to_change
from tests.tables.importing.test_adoption import FOREIGN
from tests.tables.lakes import FLIGHTS, Lake, flights


@pytest.fixture
def loaded(lake: Lake) -> Lake:
    """A table of two loads over four leaves."""
    lake.table(sort_keys=("delay",))
    lake.ingest(lake.file(flights(60)), job_id="first")
    lake.ingest(lake.file(flights(40, 60)), job_id="second")
    return lake


def differences(lake: Lake, *, full: bool = True) -> list[str]:
    return [str(one) for each in verify(lake.store, lake.root, full=full) for one in each.differences]


def repaired(lake: Lake, *, dry_run: bool = False, grace: int = 0) -> list[tuple[bool, str]]:
    now = int(time.time() * 1000) + 1
    return [(s.left, str(s)) for s in repair(lake.store, lake.root, now=now, dry_run=dry_run, grace=grace)]


def states(lake: Lake) -> tuple[int, int]:
    [entry] = lake.store.instance().tables.values()
    return lake.store.instance().version, lake.store.table(entry.table_id).version


def test_a_lake_is_whole_as_it_is_loaded(loaded: Lake) -> None:
    found = list(verify(loaded.store, loaded.root, full=True))
    assert [each.name for each in found] == ["instance", "air.flights"]
    assert [each.differences for each in found] == [(), ()]
    assert [each.unfinished for each in found] == [(), ()]
    assert found[1].dataset.files_read == 8
    assert repaired(loaded) == []


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", FOREIGN)
def test_what_others_commit_is_named_and_recorded(name: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(60)))
    lake.ingest(lake.file(flights(40, 60)))
    dataset = lance.dataset(lake.open().opened.location)
    FOREIGN[name](dataset)
    before = states(lake)
    [said] = differences(lake)
    assert said.startswith("table/air.flights: Lance has ") and "that the log lacks (versions 4" in said
    [(left, planned)] = repaired(lake, dry_run=True)
    assert not left and planned.startswith("table/air.flights: record what Lance has, up to its version ")
    assert states(lake) == before
    [(left, done)] = repaired(lake)
    assert not left and done.partition(": recorded what Lance had: ")[2] == planned.split(": ", 2)[2]
    assert differences(lake) == []
    assert lake.open().opened.state.version == states(lake)[1] == before[1] + 1


def first(state: TableState, **changes: object) -> File:
    return replace(next(iter(state.files)), **changes)  # type: ignore[arg-type]


def replaced(state: TableState, **changes: object) -> FilesReplaced:
    return FilesReplaced((0,), (first(state, **changes),), state.lance_version)


OTHER_SCHEMA = FLIGHTS.append(pa.field("more", pa.int8())).serialize().to_pybytes()

#: What somebody recorded wrongly, by what is said of it.
WRONG: dict[str, tuple[Callable[[TableState], TableUpdate], str]] = {
    "a file too few": (lambda s: FilesRemoved((0,), s.lance_version), "fragment 0 is in the dataset, and not recorded"),
    "files too many": (
        lambda s: FilesAdded(tuple(first(s, fragment_id=i) for i in range(90, 95)), s.lance_version),
        "fragments 90, 91, 92 and 2 more are recorded, and not in the dataset",
    ),
    "rows": (lambda s: replaced(s, rows=7), "fragment 0 has 24 rows; recorded are 7"),
    "bytes": (lambda s: replaced(s, bytes=7), "bytes; recorded are 7"),
    "a range that is too narrow": (
        lambda s: replaced(s, max_key=first(s).min_key),
        "fragment 0 has keys outside of the range that is recorded of it",
    ),
    "a column's range that is too narrow": (
        lambda s: replaced(s, column_max=first(s).column_min),
        "fragment 0 has keys outside of the range that is recorded of it",
    ),
    "another partition": (
        lambda s: replaced(s, partition=s.leaves()[3].partition_id, min_key=None, max_key=None),
        "fragment 0 has keys outside of its partition",
    ),
    "columns": (lambda s: SetSchema(OTHER_SCHEMA, s.lance_version), "recorded are carrier, flight, delay, at, "),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_recorded_wrongly_is_named_and_put_right(name: str, loaded: Lake) -> None:
    make, words = WRONG[name]
    state = loaded.open().opened.state
    loaded.store.commit(state.table_id, [make(state)])
    assert any(words in each for each in differences(loaded)), differences(loaded)
    assert [left for left, _ in repaired(loaded, dry_run=True)] == [False]
    assert differences(loaded)
    [(left, done)] = repaired(loaded)
    assert not left and "recorded what the dataset has: " in done
    assert differences(loaded) == []
    assert repaired(loaded) == []
    assert loaded.open().count() == loaded.open().opened.state.files.rows == 100


def test_rows_that_are_not_in_order_are_named(loaded: Lake) -> None:
    dataset = lance.dataset(loaded.open().opened.location)
    dataset.insert(flights(30, 200))
    state = open_to_change(loaded.root, "flights").state
    foreign = max(state.files, key=lambda each: each.fragment_id)
    wrong = FilesReplaced((foreign.fragment_id,), (replace(foreign, sorted=True),), state.lance_version)
    loaded.store.commit(state.table_id, [wrong])
    assert differences(loaded) == [
        f"table/air.flights: fragment {foreign.fragment_id} is recorded as sorted, and is not"
    ]
    repaired(loaded)
    assert differences(loaded) == []


def cut_short(location: Path) -> None:
    file = min((location / "data").iterdir())
    file.write_bytes(file.read_bytes()[:-10])


def remove_a_file(location: Path) -> None:
    min((location / "data").iterdir()).unlink()


def remove_all(location: Path) -> None:
    shutil.rmtree(location)


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "a file cut short": (cut_short, "were written"),
    "a file removed": (remove_a_file, "is missing"),
    "the dataset removed": (remove_all, "there is no Lance dataset"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_data_is_named_and_left_as_it_is(name: str, loaded: Lake) -> None:
    damage, words = DAMAGE[name]
    damage(Path(loaded.open().opened.location))
    before = states(loaded)
    assert any(words in each for each in differences(loaded, full=False)), differences(loaded)
    steps = repaired(loaded)
    assert steps and all(left for left, _ in steps)
    assert any(words in said and "copy the file back from a backup" in said for _, said in steps)
    assert states(loaded) == before


def test_a_savepoint_whose_version_others_removed_is_named(loaded: Lake) -> None:
    take_savepoint(loaded.store, [loaded.open().opened.entry.table_id], "kept")
    loaded.ingest(loaded.file(flights(10, 100)), job_id="third")
    assert differences(loaded) == []
    lance.dataset(loaded.open().opened.location).cleanup_old_versions(older_than=dt.timedelta())
    words = "savepoint kept is of version 3 of dataset 1, which does not exist any more"
    assert differences(loaded) == [f"table/air.flights: {words}"]
    assert [left for left, _ in repaired(loaded)] == [True]


def test_an_older_copy_of_the_dataset_is_named(lake: Lake) -> None:
    location = lake.table().opened.location
    shutil.copytree(location, lake.folder / "copy")
    lake.ingest(lake.file(flights(10)))
    shutil.rmtree(location)
    shutil.copytree(lake.folder / "copy", location)
    [said] = differences(lake)
    assert "version 1, but version 2 was recorded: an older copy replaced it" in said
    assert [left for left, _ in repaired(lake)] == [True]


def test_a_commit_that_died_is_given_up_once_it_is_old(loaded: Lake) -> None:
    state = loaded.open().opened.state
    loaded.store.commit(state.table_id, [CommitStarted("dead", "ingest", state.lance_version)])
    assert differences(loaded) == []
    [_, table] = verify(loaded.store, loaded.root)
    assert "job dead (ingest) began to commit at" in table.unfinished[0]
    assert repaired(loaded, grace=60_000) == []
    assert [said for _, said in repaired(loaded, dry_run=True)] == [
        "table/air.flights: gave up the commit of job dead (ingest), which never reached Lance"
    ]
    assert "dead" in loaded.store.table(state.table_id).intents
    repaired(loaded)
    assert not loaded.store.table(state.table_id).intents
    # whoever was only slow goes on: its commit is recorded by its mark
    assert loaded.ingest(loaded.file(flights(5, 300)), job_id="dead").rows == 5


def test_a_log_without_a_table_is_named(loaded: Lake) -> None:
    [entry] = loaded.store.instance().tables.values()
    created = loaded.store.log(entry.table_id, limit=1)[0].updates
    loaded.store.commit("f" * 32, created)  # type: ignore[arg-type]
    assert differences(loaded) == [f"log {'f' * 32}: it belongs to no table of the instance"]


def test_tables_are_verified_by_name_and_id_alone(loaded: Lake) -> None:
    [entry] = loaded.store.instance().tables.values()
    for name in ("flights", "air.flights", entry.table_id):
        assert [each.name for each in verify(loaded.store, loaded.root, [name])] == ["air.flights"]


def test_only_a_sample_of_files_is_read_unless_all_are_asked_for(lake: Lake) -> None:
    lake.table()
    dataset = lance.dataset(lake.open().opened.location)
    lance.write_dataset(flights(60), dataset.uri, mode="append", max_rows_per_file=2)
    open_to_change(lake.root, "flights")
    read = [list(verify(lake.store, lake.root, full=full))[1].dataset.files_read for full in (False, True)]
    assert read == [20, 30]


def test_a_writer_between_lance_and_the_log_is_no_difference(loaded: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has committed to Lance when the log is read, and recorded it when the dataset is."""
    dataset = lance.dataset(loaded.open().opened.location)
    whole = audit_dataset
    looked: list[int] = []

    def overtaken(root: str, entry: TableEntry, state: TableState, *, full: bool) -> DatasetAudit:
        if not looked:
            dataset.delete("flight < 100")
        found = whole(root, entry, state, full=full)
        if not looked:
            open_to_change(loaded.root, "flights")
        looked.append(found.newest)
        return found

    monkeypatch.setattr("deployer.tables.maintenance.verify.verify.audit_dataset", overtaken)
    assert differences(loaded) == []
    assert looked == [4, 4]
