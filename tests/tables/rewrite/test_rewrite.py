"""Changes of keys, split points and formats: every row once and in its place, whatever dies or writes in between."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.datasets.files.writer import write_sorted
from deployer.errors import Conflict, NotFound, Refused
from deployer.live.reader import read_table
from deployer.plan.diff.lakes import diff
from deployer.specs.model import TableSpec
from deployer.specs.serialized.specs import table_to_json
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.parser import parse_type
from deployer.state.log.updates import SetTableProperties
from deployer.state.model.keys import encode_key
from deployer.tables.admin.deletion import delete_table
from deployer.tables.admin.tables import update_table
from deployer.tables.evolution.rewrite.cleanup import remove_old_datasets
from deployer.tables.ingest.commit.append import commit_append
from deployer.tables.read.table import Table
from tests import forks
from tests.projects import REPOSITORY
from tests.tables.lakes import Lake, flights, sorted_rows

Change = Callable[[TableSpec], TableSpec]


def other_keys(spec: TableSpec) -> TableSpec:
    return replace(spec, row_keys=("flight", "carrier"), split_points=((300,), (600, "DL")))


def retyped(spec: TableSpec, name: str, kind: str, **more: Any) -> TableSpec:
    columns = (replace(c, type=parse_type(kind), **more) if c.name == name else c for c in spec.columns)
    return replace(spec, columns=tuple(columns))


CHANGES: dict[str, Change] = {
    "a wider row key": lambda spec: retyped(spec, "flight", "int64"),
    "a wider row key among others": lambda spec: retyped(other_keys(spec), "flight", "float64"),
    "row keys and split points": other_keys,
    "split points": lambda spec: replace(spec, split_points=(("AA", 5), ("UA",))),
    "no split points": lambda spec: replace(spec, split_points=()),
    "sort keys": lambda spec: replace(spec, sort_keys=("delay",)),
    "no row keys": lambda spec: replace(spec, row_keys=(), split_points=()),
    "sort keys alone": lambda spec: replace(spec, row_keys=(), split_points=(), sort_keys=("delay",)),
    "file format": lambda spec: replace(spec, storage=replace(spec.storage, data_storage_version="2.2")),
    "stable row ids": lambda spec: replace(spec, storage=replace(spec.storage, stable_row_ids=True)),
    "smaller files": lambda spec: replace(other_keys(spec), storage=replace(spec.storage, max_rows_per_file=50)),
}


def spec_of(lake: Lake) -> TableSpec:
    entry = lake.store.instance().by_name("air.flights")
    assert entry is not None
    return read_table(lake.store, lake.root, entry).spec


def apply(lake: Lake, change: Change) -> Table:
    table_id = lake.open().opened.entry.table_id
    update_table(lake.store, lake.root, table_id, change(spec_of(lake)))
    return lake.open()


def start(lake: Lake, spec: TableSpec, failpoint: str = "") -> subprocess.Popen[str]:
    process = forks.Popen(
        [sys.executable, "-m", "tests.tables.rewrite_worker", lake.root, lake.open().opened.entry.table_id],
        env=os.environ | ({"DEPLOYER_FAILPOINT": failpoint} if failpoint else {}),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(table_to_json(spec)))
    process.stdin.close()
    process.stdin = None
    return process


def ended(process: subprocess.Popen[str]) -> int:
    _, said = process.communicate(timeout=300)
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode


def check_places(table: Table) -> None:
    """Every file is sorted, and every row is in the leaf that holds its key and inside its file's range."""
    state, keys = table.opened.state, table.row_keys
    dataset = table.opened.dataset()
    assert {f.fragment_id for f in state.files} == {f.fragment_id for f in dataset.get_fragments()}
    assert table.count() == dataset.count_rows()
    order = (*keys, *(key for key in state.properties.sort_keys if key not in keys))
    for file in state.files:
        fragment = dataset.get_fragment(file.fragment_id)
        rows = fragment.to_table(columns=list(order) or None).to_pylist()
        if keys:
            leaf = state.partitions[file.partition or ""]
            encoded = [encode_key(table.opened.kinds, [row[key] for key in keys]) for row in rows]
            assert encoded == sorted(encoded) and all(leaf.holds(key) for key in encoded)
            assert (file.min_key, file.max_key) == (encoded[0], encoded[-1])
        assert file.sorted == bool(order)


def places(lake: Lake) -> set[str]:
    return {path.name.split("-", 2)[-1] for path in (Path(lake.root) / "air").iterdir()}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_moves_every_row_and_is_no_difference_afterwards(change: Change, lake: Lake) -> None:
    before = lake.table()
    lake.ingest(lake.file(flights(400)))
    lake.ingest(lake.file(flights(100, 400)))
    wanted = change(spec_of(lake))
    table = apply(lake, change)
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(500))
    check_places(table)
    assert diff(spec_of(lake), wanted) == ()
    assert table.opened.entry.location.endswith("-g2.lance") and table.opened.state.dataset == 2
    assert sorted_rows(before.scan().to_table()) == []  # who had it open goes on with the version of then
    before.refresh()
    assert before.count() == 500
    dataset = table.opened.dataset()
    assert dataset.data_storage_version == wanted.storage.data_storage_version
    stable = wanted.storage.stable_row_ids
    assert dataset.has_stable_row_ids == (not wanted.row_keys if stable is None else stable)
    lake.ingest(lake.file(flights(50, 500)))
    after = lake.open()
    assert sorted_rows(after.scan().to_table()) == sorted_rows(flights(550))
    check_places(after)


TYPES_AND_KEYS: dict[str, Change] = {
    "widened, a row key no more": lambda spec: retyped(
        replace(spec, row_keys=("carrier",), split_points=(("DL",),)), "flight", "int64"
    ),
    "converted, a row key no more": lambda spec: retyped(
        replace(spec, row_keys=("carrier",), split_points=()), "flight", "string", using="CAST(flight AS VARCHAR)"
    ),
    "may be null, a row key no more": lambda spec: retyped(
        replace(spec, row_keys=("carrier",), split_points=()), "flight", "int32", nullable=True
    ),
    "widened, a sort key now": lambda spec: retyped(
        replace(spec, row_keys=("carrier",), split_points=(), sort_keys=("flight",)), "flight", "int64"
    ),
    "converted, a row key now": lambda spec: retyped(
        replace(spec, row_keys=("delay",), split_points=((5,),)),
        "delay",
        "int32",
        nullable=False,
        using="coalesce(delay, 0)",
    ),
    "dropped, a row key no more": lambda spec: replace(
        spec, row_keys=("carrier",), split_points=(), columns=tuple(c for c in spec.columns if c.name != "flight")
    ),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("change", TYPES_AND_KEYS.values(), ids=TYPES_AND_KEYS.keys())
def test_a_column_changes_with_the_keys_that_it_is_in(change: Change, lake: Lake) -> None:
    lake.table(splits=(("DL",),))
    lake.ingest(lake.file(flights(200).set_column(2, "delay", pa.array(range(200), pa.int16()))))
    wanted = change(spec_of(lake))
    before = lake.open().scan().to_table()
    table = apply(lake, change)
    assert diff(spec_of(lake), wanted) == ()
    check_places(table)
    found = table.scan().to_table()
    kept = [column.name for column in wanted.columns]
    casted = pa.table(
        {name: before[name].cast(found.schema.field(name).type) for name in kept}, schema=arrow_schema(wanted.columns)
    )
    assert sorted_rows(found) == sorted_rows(casted)


def test_a_killed_widening_of_a_row_key_goes_on(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(300)))
    wanted = retyped(spec_of(lake), "flight", "int64")
    assert ended(start(lake, wanted, "tables.rewrite.range-written@2")) == -signal.SIGKILL
    assert ended(start(lake, wanted)) == 0
    table = lake.open()
    assert table.opened.entry.location.endswith("-g2.lance") and table.schema.field("flight").type == pa.int64()
    assert table.keys(["UA", 0]).to_table().num_rows > 0
    check_places(table)


def test_an_empty_table_changes_its_keys(lake: Lake) -> None:
    lake.table()
    table = apply(lake, other_keys)
    assert table.count() == 0 and table.row_keys == ("flight", "carrier") and len(table.opened.state.leaves()) == 3
    lake.ingest(lake.file(flights(60)))
    check_places(lake.open())


def test_sizes_of_files_apply_without_a_rewrite(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(60)))
    table = apply(lake, lambda spec: replace(spec, storage=replace(spec.storage, max_rows_per_file=7)))
    assert table.opened.state.dataset == 1 and places(lake) == {table.opened.entry.location.split("-")[-1]}
    assert spec_of(lake).storage.max_rows_per_file == 7


def test_descriptions_settings_and_jobs_carry_over(lake: Lake) -> None:
    lake.table()
    done = lake.ingest(lake.file(flights(20)), job_id="first")
    location = lake.open().opened.location
    lance.dataset(location).update_field_metadata({"delay": {"description": "minutes", "unit": "min"}})
    lance.dataset(location).update_schema_metadata({"source": "nycflights13"})
    lance.dataset(location).update_config({"team": "air"})
    table = apply(lake, other_keys)
    dataset = table.opened.dataset()
    assert dataset.schema.field("delay").metadata == {b"description": b"minutes", b"unit": b"min"}
    assert dataset.schema.metadata[b"source"] == b"nycflights13" and dataset.config()["team"] == "air"
    assert "first" in table.opened.state.jobs and done.rows == 20
    assert lake.ingest(lake.file(flights(20)), job_id="first").already_done


def test_null_in_a_new_row_key_is_refused_before_anything_is_written(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(70)))
    version = lake.open().opened.state.version
    with pytest.raises(Refused, match="of 70 rows 'delay' is null in 10 rows"):
        apply(lake, lambda spec: replace(spec, row_keys=("delay",), split_points=()))
    assert lake.open().opened.state.version == version and len(places(lake)) == 1


KILLS = [
    "tables.rewrite.started",
    "tables.rewrite.created",
    "tables.rewrite.planned",
    "tables.rewrite.range-written",
    "tables.rewrite.range-written@2",
    "tables.rewrite.copied",
    "tables.rewrite.committed",
    "tables.rewrite.before-swap",
    "tables.rewrite.swapped",
]


@pytest.mark.parametrize("point", KILLS)
def test_a_killed_rewrite_goes_on(point: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(300)))
    wanted = other_keys(spec_of(lake))
    assert ended(start(lake, wanted, point)) == -signal.SIGKILL
    killed = lake.open()
    assert sorted_rows(killed.scan().to_table()) == sorted_rows(flights(300))
    assert killed.opened.state.dataset == (2 if point.endswith("swapped") else 1)
    lake.ingest(lake.file(flights(30, 300)))  # between the two runs of `up`
    location = Path(lake.root) / killed.opened.state.datasets[-1].location
    written = {path: path.stat().st_mtime_ns for path in location.glob("data/*.lance")}
    noted = [*location.glob("_rewrite/round-1/[0-9].json")]
    kept = {
        file["path"] for note in noted for each in json.loads(note.read_text()) for file in each["metadata"]["files"]
    }
    update_table(lake.store, lake.root, killed.opened.entry.table_id, wanted)
    table = lake.open()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(330))
    check_places(table)
    assert table.opened.entry.location.endswith("-g2.lance")  # it went on and did not begin anew
    assert {path.name for path in written if path.name in kept} == kept  # finished ranges were there, …
    assert all((location / "data" / name).stat().st_mtime_ns == written[location / "data" / name] for name in kept)
    referenced = {f.path for each in table.opened.dataset().get_fragments() for f in each.metadata.files}
    assert {path.name for path in location.glob("data/*.lance")} == referenced  # … and nothing else is left
    assert not (location / "_rewrite").exists() or point.endswith("swapped")


def test_a_rewrite_that_is_not_wanted_any_more_is_removed(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(100)))
    ended(start(lake, other_keys(spec_of(lake)), "tables.rewrite.copied"))
    assert len(places(lake)) == 2
    assert [(old.why, old.given_up) for old in remove_old_datasets(lake.store, lake.root)] == [("", True)]
    assert len(places(lake)) == 1
    assert [each.status for each in lake.open().opened.state.datasets] == ["removed"]
    table = apply(lake, other_keys)
    assert table.opened.entry.location.endswith("-g3.lance")  # no place is used twice


def test_another_target_takes_the_place_of_a_killed_rewrite(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(100)))
    ended(start(lake, other_keys(spec_of(lake)), "tables.rewrite.copied"))
    table = apply(lake, lambda spec: replace(spec, sort_keys=("delay",)))
    assert [each.status for each in table.opened.state.datasets] == ["retired", "removed", "current"]
    check_places(table)
    assert len(places(lake)) == 2


def stopped(process: subprocess.Popen[str]) -> None:
    os.waitpid(process.pid, os.WUNTRACED)


@pytest.mark.parametrize("point", ["tables.rewrite.planned", "tables.rewrite.copied", "tables.rewrite.before-swap"])
def test_rows_appended_meanwhile_are_not_lost(point: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(200)))
    rewriting = start(lake, other_keys(spec_of(lake)), f"{point}=stop")
    stopped(rewriting)
    lake.ingest(lake.file(flights(50, 200)))
    foreign = lance.dataset(lake.open().opened.location)
    lance.write_dataset(flights(10, 250), foreign, mode="append")
    os.kill(rewriting.pid, signal.SIGCONT)
    assert ended(rewriting) == 0
    table = lake.open()
    assert table.opened.state.dataset == 2
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(260))
    check_places(table)


@pytest.mark.parametrize("point", ["tables.rewrite.copied", "tables.rewrite.before-swap"])
def test_rows_deleted_meanwhile_stay_deleted(point: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(200)))
    rewriting = start(lake, other_keys(spec_of(lake)), f"{point}=stop")
    stopped(rewriting)
    lance.dataset(lake.open().opened.location).delete("carrier = 'AA'")
    os.kill(rewriting.pid, signal.SIGCONT)
    assert ended(rewriting) == 0
    rows = flights(200).filter(pa.compute.not_equal(flights(200)["carrier"], "AA"))
    table = lake.open()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(rows)
    check_places(table)
    assert [each.status for each in table.opened.state.datasets] == ["retired", "removed", "current"]


def test_settings_changed_meanwhile_are_kept(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(50)))
    wanted = other_keys(spec_of(lake))
    rewriting = start(lake, wanted, "tables.rewrite.before-swap=stop")
    stopped(rewriting)
    lake.store.commit(lake.open().opened.entry.table_id, [SetTableProperties({"tags": {"tier": "gold"}})])
    os.kill(rewriting.pid, signal.SIGCONT)
    assert ended(rewriting) == 0
    state = lake.open().opened.state
    assert state.dataset == 2 and state.properties.tags == {"tier": "gold"}


@pytest.mark.parametrize("point", ["before-lance", "after-lance"])
def test_a_stalled_writer_is_told_and_its_rows_are_in_the_table_once_when_it_runs_again(point: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(100)))
    path = lake.file(flights(20, 100))
    arguments = ["--root", lake.root, "--table", "air.flights", "--engine", "driver", "--job-id", "late", str(path)]
    command = [sys.executable, "-m", "spark_jobs.ingest", *arguments]
    slow = forks.Popen(
        command,
        env=os.environ | {"DEPLOYER_FAILPOINT": f"tables.commit.{point}=stop"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.waitpid(slow.pid, os.WUNTRACED)
    apply(lake, other_keys)
    os.kill(slow.pid, signal.SIGCONT)
    out, said = slow.communicate(timeout=300)
    if point == "before-lance":
        assert slow.returncode == 1 and "the table was rewritten while rows were being written" in said, out
    again = forks.run(command, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["already_done"] == (point == "after-lance")
    table = lake.open()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(120))
    check_places(table)


def test_fragments_written_for_the_old_dataset_are_refused(lake: Lake) -> None:
    opened = lake.table().opened
    written = write_sorted(opened.layout(), flights(5), opened.state.leaves()[0].partition_id)
    apply(lake, other_keys)
    with pytest.raises(Conflict, match="the table was rewritten while rows were being written"):
        commit_append(lake.store, lake.root, opened.entry, "job-1", "ingest", written, opened.state.schema)
    assert lance.dataset(opened.location).version == 1


def test_two_rewrites_at_once_are_one(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(100)))
    slow = start(lake, other_keys(spec_of(lake)), "tables.rewrite.copied=stop")
    stopped(slow)
    with pytest.raises(Conflict, match="another process rewrites the table"):
        apply(lake, other_keys)
    assert remove_old_datasets(lake.store, lake.root) == []
    os.kill(slow.pid, signal.SIGCONT)
    assert ended(slow) == 0
    check_places(lake.open())


NEVER = 2**62  #: a time when nothing has to be kept any more


def days(count: float) -> int:
    return int(count * 86_400_000)


def test_a_retired_dataset_is_kept_for_its_time(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(10)))
    state = apply(lake, other_keys).opened.state
    retired = state.datasets[0]
    assert remove_old_datasets(lake.store, lake.root, now_ms=retired.since + days(6.9)) == []
    (removed,) = remove_old_datasets(lake.store, lake.root, now_ms=retired.since + days(7))
    assert (removed.location, removed.why) == (retired.location, "") and len(places(lake)) == 1
    assert remove_old_datasets(lake.store, lake.root, now_ms=retired.since + days(8)) == []
    assert lake.open().count() == 10


@pytest.mark.parametrize(("declared", "kept_days"), [("0h", 0), ("36h", 1.5), ("30d", 30)])
def test_a_table_declares_how_long_what_was_replaced_is_kept(declared: str, kept_days: float, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(10)))
    location = apply(lake, other_keys).opened.entry.location
    storage = replace(spec_of(lake).storage, keep_replaced_for=declared)
    state = apply(lake, lambda spec: replace(spec, storage=storage)).opened
    assert state.entry.location == location  # nothing is rewritten for it
    assert spec_of(lake).storage == storage
    since = state.state.datasets[0].since
    assert remove_old_datasets(lake.store, lake.root, now_ms=since + days(kept_days) - 1) == []
    assert len(remove_old_datasets(lake.store, lake.root, now_ms=since + days(kept_days))) == 1


def test_a_rewrite_goes_on_whatever_its_table_is_to_keep(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(100)))
    ended(start(lake, other_keys(spec_of(lake)), "tables.rewrite.copied"))
    spec = other_keys(spec_of(lake))
    apply(lake, lambda _: replace(spec, storage=replace(spec.storage, keep_replaced_for="1d")))
    assert [each.number for each in lake.open().opened.state.datasets] == [1, 2]


def test_a_retired_dataset_with_rows_of_others_is_kept(lake: Lake) -> None:
    old = lake.table().opened.location
    apply(lake, other_keys)
    lance.write_dataset(flights(3), old, mode="append")
    (kept,) = remove_old_datasets(lake.store, lake.root, now_ms=NEVER)
    assert "programs other than deployer committed 1 version to it after version 1" in kept.why and Path(old).exists()


def test_rows_that_came_too_late_are_named_at_once_and_loaded_as_the_document_says(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = lake.table().opened.location
    lake.ingest(lake.file(flights(10)))
    table = apply(lake, other_keys)
    lance.write_dataset(flights(3), old, mode="append")
    (kept,) = remove_old_datasets(lake.store, lake.root)
    version = table.opened.state.datasets[0].lance_version
    assert f"after version {version}, " in kept.why
    assert table.opened.location in kept.why and kept.why.endswith(f"and delete {old}")
    page = (REPOSITORY / "docs" / "changes.md").read_text(encoding="utf-8")
    _, _, section = page.partition("### Writes to a replaced dataset")
    code = section.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    code = code.replace("lakes/nyc/nyc/flights-0a1b2c3d.lance", old).replace("version=12", f"version={version}")
    exec(code, {})  # noqa: S102 -- our own
    lake.ingest(tmp_path / "late.lance")
    shutil.rmtree(old)
    (gone,) = remove_old_datasets(lake.store, lake.root, now_ms=NEVER)
    assert gone.why == ""
    expected = pa.concat_tables([flights(10), flights(3)])
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(expected)


def test_deleting_a_table_removes_all_its_datasets(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(30)))
    table = apply(lake, other_keys)
    ended(start(lake, replace(spec_of(lake), sort_keys=("delay",)), "tables.rewrite.copied"))
    assert len(places(lake)) == 3
    delete_table(lake.store, lake.root, table.opened.entry.table_id, allow_destroy=True)
    assert list((Path(lake.root) / "air").iterdir()) == []


def test_history_and_time_travel_go_back_before_a_rewrite(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(10)))
    lake.ingest(lake.file(flights(10, 10)))
    before = lake.open().history()
    apply(lake, other_keys)
    lake.ingest(lake.file(flights(10, 20)))
    table = lake.open()
    listed = [(each.dataset, each.version, each.kind) for each in table.history()]
    assert listed == [(2, 3, "ingest"), (2, 2, "rewrite"), (1, 3, "ingest"), (1, 2, "ingest"), (1, 1, "create")]
    counts = {str(at): table.scan(at=at).to_table().num_rows for at in (3, "2", "2:3", "1:2", "1:3", before[1].at)}
    assert counts == {"3": 30, "2": 20, "2:3": 30, "1:2": 10, "1:3": 20, str(before[1].at): 10}
    assert table.count_where(at=before[0].at) == 20
    with pytest.raises(NotFound, match="there is no version 9"):
        table.scan(at="1:9")
    with pytest.raises(NotFound, match=r"no version 9; .*kept: 1 to 3; before it was rewritten: 1:1 to 1:3"):
        table.scan(at=9)
    with pytest.raises(NotFound, match=r"rows of 2000-01-01.* are not kept; it was created at"):
        table.scan(at="2000-01-01")
    remove_old_datasets(lake.store, lake.root, now_ms=NEVER)
    assert [(each.dataset, each.version) for each in lake.open().history()] == [(2, 3), (2, 2)]
    with pytest.raises(NotFound, match="dataset 1 of the table is not kept"):
        lake.open().scan(at="1:2")
    with pytest.raises(NotFound, match=r"rows of .* are not kept.*it was rewritten since"):
        lake.open().scan(at=before[0].at)


def test_snapshots_keep_the_datasets(lake: Lake) -> None:
    lake.table()
    table_id: Any = apply(lake, other_keys).opened.entry.table_id
    before = lake.store.table(table_id), lake.store.instance()
    lake.store.snapshot(table_id)
    lake.store.snapshot("instance")
    fresh = Table(lake.open().opened)
    assert (fresh.opened.store.table(table_id).datasets, fresh.opened.store.instance().tables[table_id]) == (
        before[0].datasets,
        before[1].tables[table_id],
    )
