"""CLUSTER leaves a table unchanged where nothing can improve: no file is written, it is foreseen and not due again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from deployer.datasets.ordering.clustering import bounds_of, clustering_of, key_bounds
from deployer.platform.files.json_values import JSON
from deployer.runs.rewriting.tasks import Sizes, Task
from deployer.services.api.attachments import create_service
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.cluster.layout import Arrangement
from deployer.services.kinds.cluster.planning import outlook
from deployer.services.kinds.cluster.results import ClusterResult
from deployer.services.kinds.compact import compact_table
from deployer.services.registry import forecast
from deployer.services.triggers.due import due_services
from deployer.state.model.entities import File
from deployer.state.model.services import Service
from tests.projects import folder_of_example
from tests.services.compact.test_compact import append
from tests.tables.indexed import TREE, Indexed
from tests.tables.lakes import Lake, flights

KEYS = ("carrier", "flight")
Cluster = dict[str, Any]


class Watched:
    """The folders and files of a lake without its state. A file that was written and removed again shows in the time
    of its folder."""

    def __init__(self, lake: Lake) -> None:
        self._root = Path(lake.root)
        for folder in self._folders():
            os.utime(folder, ns=(0, 0))
        self._before = self._now()

    def _folders(self) -> Iterator[Path]:
        found = (path for path in [self._root, *self._root.rglob("*")] if path.is_dir())
        return (path for path in found if "_state" not in path.parts and path != self._root)

    def _now(self) -> dict[str, int]:
        files = (path for folder in self._folders() for path in folder.iterdir() if path.is_file())
        times = {str(path): path.stat().st_mtime_ns for path in files}
        return times | {str(folder): folder.stat().st_mtime_ns for folder in self._folders()}

    def check(self) -> None:
        assert self._now() == self._before


def attached(lake: Lake, options: Cluster, trigger: Mapping[str, JSON] | None = None) -> Service:
    service = Service("CLUSTER", "AUTOMATIC", trigger or {"rows": 10**9}, options)
    create_service(lake.store, lake.open().opened.entry.table_id, service)
    return service


def run(lake: Lake) -> ClusterResult:
    return cluster_table(lake.root, "flights")


#: Rows, in how many files they come, row keys, options: nothing can improve, and the state alone says it or not.
LEFT: dict[str, tuple[pa.Table, int, tuple[str, ...], Cluster, bool]] = {
    "one file": (flights(300), 1, (), {"columns": ["flight", "delay"], "curve": "zorder"}, True),
    "one file of a table with keys": (flights(300), 1, KEYS, {}, True),
    "in order": (flights(300).sort_by("flight"), 3, (), {"columns": ["flight"]}, False),
    "in order by several columns": (flights(300).sort_by("flight"), 3, (), {"columns": ["flight", "delay"]}, False),
    "in the order of the keys": (flights(300).sort_by("carrier"), 5, KEYS, {}, True),
    "one point": (pa.concat_tables([flights(1)] * 900), 3, (), {"columns": ["flight"], "curve": "hilbert"}, False),
}


@pytest.mark.thinned(5, to="full")
@pytest.mark.parametrize("name", LEFT)
@pytest.mark.parametrize("incremental", [True, False], ids=["incremental", "all"])
def test_nothing_is_written_where_nothing_can_improve(lake: Lake, name: str, *, incremental: bool) -> None:
    rows, parts, keys, options, is_known = LEFT[name]
    lake.table(row_keys=keys, splits=())
    append(lake, rows, parts)
    size = lake.open().opened.state.files.bytes // parts + 200
    service = attached(lake, {**options, "target_file_bytes": size, "incremental": incremental})
    version = lake.open().opened.state.lance_version
    found = forecast(lake.open().opened, service.kind)
    assert found.startswith("nothing: all files") if is_known else "a run that finds the files in that order" in found
    for _ in range(2):
        watched = Watched(lake)
        done = run(lake)
        watched.check()
        assert (done.status, done.work.portions) == ("SKIPPED", 0) and "as well as possible" in done.why
        state = lake.open().opened.state
        assert (state.lance_version, state.files.count) == (version, parts)
        assert all(file.clustering for file in state.files)
        assert forecast(lake.open().opened, service.kind).startswith("nothing: all files")


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("keys", [(), KEYS], ids=["keyless", "keyed"])
@pytest.mark.parametrize("curve", ["zorder", "hilbert", "sort"])
def test_what_a_run_arranged_is_left_by_the_next_one_that_arranges_everything(
    lake: Lake, curve: str, keys: tuple[str, ...]
) -> None:
    lake.table(row_keys=keys)
    append(lake, flights(3000), 6)
    options = {"columns": ["flight", "delay"], "curve": curve, "target_file_bytes": 10_000, "incremental": False}
    service = attached(lake, options)
    assert forecast(lake.open().opened, service.kind).startswith("arranges by ")
    assert run(lake).status == "SUCCEEDED"
    for _ in range(2):
        assert forecast(lake.open().opened, service.kind).startswith("nothing: all files")
        watched = Watched(lake)
        assert run(lake).status == "SKIPPED"
        watched.check()
    append(lake, flights(60, 3000), 1)
    assert forecast(lake.open().opened, service.kind).startswith("arranges by ")
    assert run(lake).status == "SUCCEEDED"
    lance.dataset(lake.open().opened.location).delete("flight < 100")
    assert forecast(lake.open().opened, service.kind).startswith("arranges by ")
    assert run(lake).status == "SUCCEEDED"
    assert forecast(lake.open().opened, service.kind).startswith("nothing: all files")


def test_files_of_several_runs_are_arranged_again_although_all_are_marked(lake: Lake) -> None:
    lake.table(row_keys=())
    options = {"columns": ["flight", "delay"], "curve": "zorder", "target_file_bytes": 4_000}
    for start in (0, 1000):
        append(lake, flights(1000, start), 1)
        assert cluster_table(lake.root, "flights", options).status == "SUCCEEDED"
    service = attached(lake, {**options, "incremental": False})
    assert forecast(lake.open().opened, service.kind).startswith("arranges by ")
    done = run(lake)
    assert done.status == "SUCCEEDED" and done.work.rows == 2000
    assert done.depth_after.of_all.average < done.depth_before.of_all.average


def test_indexes_are_not_joined_for_nothing(lake: Lake) -> None:
    table = Indexed(lake, [TREE], keyed=False)
    table.add(200, 0)
    table.add(200, 200, indexes=False)
    size = lake.open().opened.state.files.bytes // 2 + 200
    attached(lake, {"columns": ["id"], "target_file_bytes": size})
    version = lake.open().opened.state.lance_version
    for _ in range(2):
        assert run(lake).status == "SKIPPED" and lake.open().opened.state.lance_version == version
    assert {info.unindexed_rows for info in table.infos().values()} == {200}


@pytest.mark.parametrize(
    "trigger",
    [{"commits": 1}, {"rows": 1}, {"bytes": 1}, {"small_files": 2}, {"deleted_share": 0.01}],
    ids=lambda each: next(iter(each)),
)
def test_a_run_that_changes_nothing_is_not_asked_for_again(lake: Lake, trigger: dict[str, JSON]) -> None:
    lake.table(row_keys=(), splits=())
    append(lake, flights(900).sort_by("flight"), 3)
    size = lake.open().opened.state.files.bytes // 3 + 200
    attached(lake, {"columns": ["flight"], "target_file_bytes": size}, trigger)
    if "deleted_share" in trigger:
        lance.dataset(lake.open().opened.location).delete("delay < 30")
    assert [each.service for each in due_services(lake.open().opened)] == ["CLUSTER"]
    first = run(lake)
    assert first.status == ("SUCCEEDED" if "deleted_share" in trigger else "SKIPPED")
    assert due_services(lake.open().opened) == []
    assert run(lake).status == "SKIPPED"
    assert due_services(lake.open().opened) == []
    append(lake, flights(100, 900), 1)
    asks = trigger.keys() & {"commits", "rows", "bytes"}
    assert [each.service for each in due_services(lake.open().opened)] == (["CLUSTER"] if asks else [])


def test_deleted_rows_and_other_columns_are_work(lake: Lake) -> None:
    lake.table(row_keys=(), splits=())
    append(lake, flights(300), 1)
    assert cluster_table(lake.root, "flights", {"columns": ["flight"]}).status == "SKIPPED"
    assert cluster_table(lake.root, "flights", {"columns": ["delay"]}).status == "SKIPPED"  # of one file
    lance.dataset(lake.open().opened.location).delete("delay < 30")
    service = attached(lake, {"columns": ["delay"], "incremental": False})
    assert forecast(lake.open().opened, service.kind).startswith("arranges by ")
    assert cluster_table(lake.root, "flights").status == "SUCCEEDED"


def test_files_that_are_not_in_the_order_of_the_keys_are_sorted(lake: Lake) -> None:
    lake.table(splits=())
    rows = flights(300)
    lance.write_dataset(rows, lake.open().opened.location, mode="append")  # others do not sort
    service = attached(lake, {})
    assert forecast(lake.open().opened, service.kind).startswith("arranges by ")
    assert cluster_table(lake.root, "flights").status == "SUCCEEDED"
    assert all(file.sorted for file in lake.open().opened.state.files)
    assert compact_table(lake.root, "flights").status == "SKIPPED"


loads = st.lists(st.tuples(st.sampled_from([40, 100]), st.booleans()), min_size=1, max_size=4)
choices = st.fixed_dictionaries(
    {
        "columns": st.sampled_from([["flight"], ["flight", "delay"], ["carrier", "flight"]]),
        "curve": st.sampled_from(["sort", "zorder"]),
        "incremental": st.booleans(),
        "target_file_bytes": st.sampled_from([2_000, 6_000, 1_000_000]),
    }
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(st.booleans(), loads, choices, st.booleans(), st.booleans())
def test_a_run_does_what_was_foreseen(
    keyed: bool, loads: list[tuple[int, bool]], options: Cluster, deletes: bool, again: bool
) -> None:
    with folder_of_example() as folder:
        lake = Lake(Path(folder))
        lake.table(row_keys=KEYS if keyed else (), splits=())
        service = attached(lake, options)
        start = 0
        for rows, in_order in loads:
            found = flights(rows, start)
            append(lake, found.sort_by("flight") if in_order else found, 1)
            start += rows
        if again:
            run(lake)
        if deletes:
            lance.dataset(lake.open().opened.location).delete("flight < 100")
        for _ in range(2):
            found = forecast(lake.open().opened, service.kind)
            done = run(lake)
            event(f"{found.split()[0]} {'unknown' if 'a run that finds' in found else 'known'}: {done.status}")
            if found.startswith("nothing"):
                assert done.status == "SKIPPED"
            elif "a run that finds" not in found:
                assert done.status == "SUCCEEDED"
        lake.store.close()


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=8), min_size=1, max_size=5), st.integers(1, 8))
def test_what_is_called_the_same_cannot_overlap_less(files: list[list[int]], file_rows: int) -> None:
    """Of files that are left, each value of the column is in one file alone, or all values are one."""
    kind = ["int64"]
    own = [bounds_of([pa.array(values)], kind) for values in files]
    found = [File(number, "root", len(values), len(values)) for number, values in enumerate(files)]
    arrangement = Arrangement("sort", ("a",), ("int64",), (), (), clustering_of("sort", [1]))
    task = Task(tuple(range(len(files))), ("root",), sum(map(len, files)), 1, 0, "")
    expected = outlook(task, found, own, arrangement, Sizes(10**9, file_rows))
    values = [set(each) for each in files]
    apart = sum(map(len, values)) == len(set().union(*values))
    if expected == "same":
        assert apart or len(set().union(*values)) == 1
        assert len(files) == -(-task.rows // file_rows)
    assert outlook(task, found, [None] * len(found), arrangement, Sizes(10**9, file_rows)) in (expected, "unknown")


def test_the_bounds_of_keys_are_those_that_a_run_would_find(lake: Lake) -> None:
    lake.table(splits=())
    append(lake, flights(200), 3)
    opened = lake.open().opened
    for file in opened.state.files:
        rows = opened.dataset().scanner(fragments=[opened.dataset().get_fragment(file.fragment_id)]).to_table()
        for columns in (["flight"], ["flight", "carrier"]):
            kinds = ["int32" if name == "flight" else "string" for name in columns]
            assert key_bounds(file, KEYS, columns) == bounds_of([rows[name] for name in columns], kinds)
        assert key_bounds(file, KEYS, ["delay"]) is None
