"""Erasure: an erased value is in no file below the root, by its bytes and by reading every version that is left."""

from __future__ import annotations

import datetime as dt
import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from deployer.errors import Interrupted, InvalidInput, Refused
from deployer.live.reader import read_table
from deployer.platform.system.progress import Progress
from deployer.runs.rewriting.row_tasks import run_with_spark
from deployer.services.erasure.erase import erase
from deployer.services.erasure.planning import plan_erasure
from deployer.services.erasure.results import ErasureResult
from deployer.services.kinds.compact import compact_table
from deployer.services.savepoints.read_lease import leased
from deployer.services.savepoints.savepoints import delete_savepoint, make_savepoint
from deployer.specs.model import IndexSpec
from deployer.specs.types.types import Scalar
from deployer.state.log.updates import CommitAbandoned, CommitStarted
from deployer.tables.admin.tables import update_table
from deployer.tables.layout.indexes.build import build_index
from deployer.tables.open_table import open_to_change
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.tasks import run_here
from tests import forks
from tests.tables.lakes import Lake

ROWS, SIZE = 400, 8
INDEXES = (
    IndexSpec("by_mail", ("mail",), "btree"),
    IndexSpec("words", ("note",), "inverted"),
    IndexSpec("near", ("vector",), "ivf_flat", {"num_partitions": 2}),
)


class People:
    """A lake with a table of people, two of whom have random marks in a key and in a text, in several versions."""

    def __init__(self, folder: Path, *, compressed: bool = False, keyed: bool = True) -> None:
        self.lake = Lake(folder)
        self.mark, self.word = f"m{secrets.token_hex(12)}@example.com", secrets.token_hex(12)
        meta = {"lance-encoding:compression": "zstd" if compressed else "none"}
        self.schema = pa.schema(
            [
                pa.field("mail", pa.string(), nullable=False, metadata=meta),
                pa.field("id", pa.int64(), nullable=False),
                pa.field("note", pa.string(), metadata=meta),
                pa.field("vector", pa.list_(pa.float32(), SIZE)),
            ]
        )
        self.lake.table(self.schema, ("mail",) if keyed else (), splits=(("k",),), name="people")
        self.load(0)
        self.load(ROWS)

    def load(self, first: int, *, marked: bool = True) -> None:
        mails = [f"{'az'[i % 2]}{i:06}@example.com" for i in range(first, first + ROWS)]
        notes = [f"note of person {i}" for i in range(first, first + ROWS)]
        if marked:
            mails[7], notes[7] = self.mark if first == 0 else f"second-{self.mark}", f"about {self.word} only"
        vectors = np.random.default_rng(first).random((ROWS, SIZE), np.float32)
        rows = pa.table(
            [mails, range(first, first + ROWS), notes, pa.FixedSizeListArray.from_arrays(vectors.ravel(), SIZE)],
            schema=self.schema,
        )
        self.lake.ingest(self.lake.file_arrow(rows), table="people")

    @property
    def where(self) -> str:
        return f"mail LIKE '%{self.mark}'"

    @property
    def root(self) -> Path:
        return Path(self.lake.root)

    def table_id(self) -> str:
        return self.lake.open("people").opened.entry.table_id

    def savepoint(self, name: str) -> None:
        make_savepoint(self.lake.store, self.lake.root, [self.lake.store.instance().tables[self.table_id()]], name)

    def index(self) -> None:
        for each in INDEXES:
            build_index(self.lake.store, self.lake.root, self.table_id(), each)

    def rekey(self) -> None:
        entry = self.lake.store.instance().tables[self.table_id()]
        live = read_table(self.lake.store, self.lake.root, entry)
        wanted = replace(live.spec, row_keys=("id",), split_points=((ROWS,),))
        update_table(self.lake.store, self.lake.root, self.table_id(), wanted)

    def erase(self, where: str = "", **options: Any) -> ErasureResult:
        opened = open_to_change(self.lake.root, "people")
        try:
            return erase(opened, where or self.where, **options)
        finally:
            opened.store.close()

    def delete(self) -> None:
        opened = open_to_change(self.lake.root, "people")
        delete_rows(opened, self.where)
        opened.store.close()

    def files_with(self, *texts: str) -> list[str]:
        """Files below the root that have one of the texts as it is."""
        self.lake.store.close()  # which empties SQLite's write-ahead log
        found = [path for path in self.root.rglob("*") if path.is_file()]
        sought = [each.encode() for each in texts]
        return [str(path.relative_to(self.root)) for path in found if any(each in path.read_bytes() for each in sought)]

    def versions_with(self) -> list[tuple[str, int]]:
        """Versions of any dataset below the root that have a marked row, deleted ones included."""
        found = []
        for folder in self.root.glob("air/*.lance"):
            dataset = lance.dataset(folder)
            for version in dataset.versions():
                scanner = dataset.checkout_version(version["version"]).scanner(
                    columns=["mail", "note"], with_row_id=True, include_deleted_rows=True
                )
                rows = scanner.to_table().to_pylist()
                if any(self.mark in (row["mail"] or "") or self.word in (row["note"] or "") for row in rows):
                    found.append((folder.name, int(version["version"])))
        return found


def require_erased(people: People, rows: int) -> None:
    assert people.lake.open("people").count() == rows
    assert people.versions_with() == []
    assert people.files_with(people.mark, people.word) == []


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "without keys"])
def test_an_erased_value_is_in_no_file_below_the_root(tmp_path: Path, keyed: bool, compressed: bool) -> None:
    people = People(tmp_path, keyed=keyed, compressed=compressed)
    people.index()
    people.savepoint("before")
    people.load(2 * ROWS, marked=False)
    assert people.versions_with()
    done = people.erase(delete_savepoints=True)
    assert (done.rows, done.savepoints, done.unreached, done.is_proven) == (2, ("before",), (), True)
    assert done.history == keyed  # the mark is the least key of a file
    assert done.indexes == ("by_mail", "near", "words") and done.rows_left == 0 and done.versions_read >= 1
    require_erased(people, 3 * ROWS - 2)


def test_the_mark_is_in_files_before(tmp_path: Path) -> None:
    """The test of the others: the bytes that they search for are there."""
    people = People(tmp_path)
    people.index()
    folders = {each.split("/")[-2] if "_indices" not in each else "_indices" for each in people.files_with(people.mark)}
    assert {"data", "_indices"} <= folders


def test_replaced_datasets_go(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.savepoint("before")
    people.index()
    people.rekey()
    done = people.erase(delete_savepoints=True)
    assert len(done.datasets) == 1 and done.savepoints == ("before",) and done.unreached == () and done.is_proven
    require_erased(people, 2 * ROWS - 2)


def test_values_that_a_change_of_their_column_hid_are_erased(tmp_path: Path) -> None:
    """A column's new values are in one more file beside each of the old ones, which keep the former values."""
    people = People(tmp_path, keyed=False)
    entry = people.lake.store.instance().tables[people.table_id()]
    live = read_table(people.lake.store, people.lake.root, entry)
    hidden: dict[str, Any] = {"type": Scalar("large_string"), "using": "'hidden'"}
    columns = (replace(each, **hidden) if each.name == "note" else each for each in live.spec.columns)
    update_table(people.lake.store, people.lake.root, people.table_id(), replace(live.spec, columns=tuple(columns)))
    assert people.lake.open("people").count() == 2 * ROWS
    assert people.erase(f"note LIKE '%{people.word}%'").is_proven
    assert people.files_with(people.word) == []


def test_rows_that_were_deleted_before_are_erased(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.index()
    people.delete()
    compact_table(people.lake.root, "people")
    done = people.erase()
    assert done.rows == 0 and done.versions > 0 and done.unreached == () and done.is_proven
    require_erased(people, 2 * ROWS - 2)


def test_versions_that_never_had_the_rows_stay(tmp_path: Path) -> None:
    people = People(tmp_path)
    before = [each.version for each in people.lake.open("people").history()]
    done = people.erase("mail = 'nobody@example.com'")
    assert (done.rows, done.versions, done.unreached, done.is_proven) == (0, 0, (), True)
    assert {*before} <= {each.version for each in people.lake.open("people").history()}
    done = people.erase(f"mail = 'second-{people.mark}'")
    left = {each.version for each in people.lake.open("people").history()}
    assert done.rows == 1 and done.is_proven and min(before) in left and max(before) not in left


def test_a_savepoint_is_removed_only_where_that_is_allowed(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.savepoint("before")
    with pytest.raises(Refused, match="savepoint before holds rows to be erased, and nothing was changed"):
        people.erase()
    assert people.lake.open("people").count() == 2 * ROWS
    delete_savepoint(people.lake.store, people.lake.root, people.lake.store.instance().tables.values(), "before")
    assert people.erase().is_proven
    require_erased(people, 2 * ROWS - 2)


def test_what_a_reader_or_a_commit_needs_is_reported_and_a_second_run_finishes(tmp_path: Path) -> None:
    people = People(tmp_path)
    with leased(people.lake.root, "people", dt.timedelta(hours=1)) as reader:
        done = people.erase()
        assert not done.is_proven and done.rows == 2 and done.rows_left == 2
        assert any("a reader has version" in each for each in done.unreached)
        assert reader.count() == 2 * ROWS
    version = people.lake.open("people").opened.state.lance_version
    people.lake.store.commit(people.table_id(), [CommitStarted("slow", "ingest", min(version, 3))])
    again = people.erase()
    assert not again.is_proven and any("running work needs versions" in each for each in again.unreached)
    people.lake.store.commit(people.table_id(), [CommitAbandoned("slow")])
    assert people.erase().is_proven
    require_erased(people, 2 * ROWS - 2)


@pytest.mark.parametrize("where", ["id = 7 OR id = 407", "note LIKE 'about %'", "id % 400 = 7 AND mail IS NOT NULL"])
def test_any_condition_finds_the_rows(tmp_path: Path, where: str) -> None:
    people = People(tmp_path)
    assert people.erase(where).is_proven
    require_erased(people, 2 * ROWS - 2)


def test_all_rows_of_a_protected_table_go_only_where_that_is_allowed(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.index()
    with pytest.raises(Refused, match="would remove all 800 rows of the table, which is protected from deletion"):
        people.erase("true")
    assert people.erase("true", allow_destroy=True).is_proven
    require_erased(people, 0)


def test_a_tag_of_another_program_goes_with_savepoints(tmp_path: Path) -> None:
    people = People(tmp_path)
    dataset = lance.dataset(people.lake.open("people").opened.location)
    dataset.tags.create("mine", dataset.version)
    with pytest.raises(Refused, match="tag mine of another program holds rows"):
        people.erase()
    assert people.erase(delete_savepoints=True).tags == ("mine",)
    require_erased(people, 2 * ROWS - 2)


@pytest.mark.parametrize(
    "hold",
    [{"name": "audit", "reason": "case 12"}, {"name": "audit", "where": "id < 100"}],
    ids=["every row", "some rows"],
)
def test_a_legal_hold_prevents_erasure(tmp_path: Path, hold: dict[str, str]) -> None:
    people = People(tmp_path)
    people.lake.store.declare(people.table_id(), {"holds": [{**hold}]})
    with pytest.raises(Refused, match="under legal hold audit"):
        people.erase()
    assert people.versions_with()


def test_a_hold_is_of_earlier_versions_too(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.delete()
    people.lake.store.declare(people.table_id(), {"holds": [{"name": "audit", "where": "id = 7"}]})
    with pytest.raises(Refused, match="earlier versions have rows to be erased under legal hold audit"):
        people.erase()


@pytest.mark.parametrize("where", ["mail = 'a') OR (true", "no_such = 1", "mail ="])
def test_a_condition_that_cannot_be_used_changes_nothing(tmp_path: Path, where: str) -> None:
    people = People(tmp_path)
    with pytest.raises(InvalidInput):
        people.erase(where)
    assert people.lake.open("people").count() == 2 * ROWS


def test_a_plan_says_what_holds_the_rows_and_changes_nothing(tmp_path: Path) -> None:
    people = People(tmp_path)
    people.savepoint("before")
    people.rekey()
    opened = open_to_change(people.lake.root, "people")
    version = opened.state.version
    plan = plan_erasure(opened, people.where)
    assert (plan.rows, plan.stored_rows, plan.savepoints) == (2, 2, ("before",))
    assert len(plan.datasets) == 1 and not plan.unreached and not plan.is_clean
    assert opened.refreshed().state.version == version
    opened.store.close()


def test_other_files_below_the_root_that_have_a_value_are_reported(tmp_path: Path) -> None:
    people = People(tmp_path)
    log = people.root / "_job-logs" / "load.txt"
    log.parent.mkdir()
    log.write_text(f"a bad row: {people.mark}", encoding="utf-8")
    stray = Path(people.lake.open("people").opened.location) / "data" / "stray.lance"
    stray.write_bytes(b"of a load that was killed: " + people.mark.encode())
    done = people.erase()
    assert not done.is_proven and {each.rpartition("/")[2] for each in done.files_with_values} == {
        "load.txt",
        "stray.lance",
    }
    assert any("`deployer table gc` removes it" in each for each in done.unreached)
    log.unlink()
    stray.unlink()
    require_erased(people, 2 * ROWS - 2)


POINTS = (
    "services.erasure.deleted",
    "services.erasure.rewritten",
    "services.erasure.index",
    "services.erasure.indexed",
    "services.erasure.released",
    "services.erasure.forgotten",
    "services.erasure.versions",
    "services.erasure.datasets",
    "services.erasure.jobs",
    "services.erasure.dataset",
)


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("point", POINTS)
def test_an_erasure_that_was_killed_is_finished_by_the_next(tmp_path: Path, point: str) -> None:
    people = People(tmp_path)
    people.index()
    people.savepoint("before")
    people.rekey()
    command = [sys.executable, "-m", "tests.services.erase_worker", people.lake.root, people.where]
    environment = {**os.environ, "DEPLOYER_FAILPOINT": point}
    assert forks.run(command, env=environment).returncode < 0
    assert people.erase(delete_savepoints=True).is_proven
    require_erased(people, 2 * ROWS - 2)


@pytest.mark.spark
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "keyless"])
def test_tasks_of_spark_erase_the_same(tmp_path: Path, spark: Any, keyed: bool) -> None:
    people = People(tmp_path, keyed=keyed)
    people.index()
    people.savepoint("before")
    opened = open_to_change(people.lake.root, "people")

    def tasks(_: Any, tasks: Any, /) -> Any:
        return run_with_spark(spark, tasks)

    here, there = (plan_erasure(opened, people.where, None, by) for by in (run_here, tasks))
    assert here == there and here.versions
    done = erase(opened, people.where, delete_savepoints=True, engine="spark", session=lambda: spark)
    assert done.is_proven and done.rows == 2
    require_erased(people, 2 * ROWS - 2)


def test_an_erasure_that_is_stopped_while_it_reads_changes_nothing(tmp_path: Path) -> None:
    people = People(tmp_path)
    opened = open_to_change(people.lake.root, "people")

    def stop(now: Progress) -> None:
        if now.doing == "reading files":
            raise Interrupted("stopped")

    with pytest.raises(Interrupted, match="stopped"):
        erase(opened, people.where, on_progress=stop)
    assert people.lake.open("people").opened.state == opened.state
    assert people.erase().is_proven
