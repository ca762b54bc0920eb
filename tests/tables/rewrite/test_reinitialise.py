"""Emptied tables: nothing but rows and, where wanted, the tree is gone, whoever writes or dies meanwhile."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import Refused
from deployer.live.reader import read_table
from deployer.specs.model import IndexSpec, KeyValue, TableSpec
from deployer.state.model.keys import decode_key
from deployer.tables.admin.tables import create_table, update_table
from deployer.tables.evolution.rewrite.cleanup import remove_old_datasets
from deployer.tables.evolution.rewrite.truncate import FormerContent, reinitialise_table
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.layout.partitions.split import split_leaves
from spark_jobs.ingest import run
from tests.tables.administered import start
from tests.tables.lakes import SPLITS, Lake, flights, sorted_rows


def table_id(lake: Lake) -> str:
    return lake.open().opened.entry.table_id


def spec_of(lake: Lake) -> TableSpec:
    return read_table(lake.store, lake.root, lake.open().opened.entry).spec


def empty(lake: Lake, **options: Any) -> FormerContent:
    return reinitialise_table(lake.store, lake.root, table_id(lake), allow_destroy=True, **options)


def leaves(lake: Lake) -> list[tuple[KeyValue, ...]]:
    opened = lake.open().opened
    return [decode_key(opened.kinds, leaf.lower) for leaf in opened.state.leaves()[1:]]


TREES: dict[str, tuple[dict[str, Any], int]] = {
    "the tree that it has": ({}, 6),
    "the declared tree": ({"delete_partitions": True}, 4),
    "another tree": ({"delete_partitions": True, "split_points": (("AA",),)}, 2),
    "one leaf": ({"delete_partitions": True, "split_points": ()}, 1),
}


@pytest.mark.parametrize("case", TREES)
def test_rows_go_and_the_tree_is_what_is_asked_for(case: str, lake: Lake) -> None:
    options, count = TREES[case]
    lake.table()
    lake.ingest(lake.file(flights(100)))
    split_leaves(lake.store, lake.root, table_id(lake), 20)
    before, spec = leaves(lake), spec_of(lake)
    assert len(before) + 1 == 6
    emptied = empty(lake, **options)
    assert (emptied.rows, emptied.leaves) == (100, count) and emptied.kept_until > 0
    table = lake.open()
    assert table.count() == 0 and table.opened.dataset().count_rows() == 0
    wanted = options.get("split_points", SPLITS if options else before)
    assert leaves(lake) == list(wanted)
    after = spec_of(lake)
    assert (after == spec) == ("split_points" not in options)
    lake.ingest(lake.file(flights(30)))
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(30))
    assert table.count_where(at="1:2") == 100


def test_a_job_can_be_run_again_once_the_table_is_emptied(lake: Lake) -> None:
    lake.table()
    request = IngestRequest((str(lake.file(flights(10))),), engine="driver", job_id="monday")
    for rows, again in ((10, False), (0, True)):
        result = run(lake.root, "flights", request)
        assert (result.rows, result.already_done) == (rows, again)
    empty(lake)
    result = run(lake.root, "flights", request)
    assert (result.rows, result.already_done, lake.open().count()) == (10, False, 10)


def test_settings_and_indexes_stay(lake: Lake) -> None:
    index = IndexSpec("by_delay", ("delay",), "btree")
    spec = TableSpec(
        "air", "flights", spec_of_columns(lake), ("carrier",), ("flight",), (("DL",),),
        description="Flights.", online=False, tags={"tier": "gold"}, indexes=(index,), max_rows_per_leaf=1000,
    )  # fmt: skip
    create_table(lake.store, lake.root, spec, "tests/dev")
    lake.ingest(lake.file(flights(50)))
    before = lake.open().opened
    empty(lake)
    after = lake.open().opened
    assert spec_of(lake) == spec and after.entry.table_id == before.entry.table_id
    assert [each.name for each in after.dataset().describe_indices()] == ["by_delay"]
    assert after.schema.equals(before.schema, check_metadata=True)
    version = after.state.version
    update_table(lake.store, lake.root, after.entry.table_id, spec)
    assert lake.open().opened.state.version == version


def spec_of_columns(lake: Lake) -> Any:
    from deployer.specs.types.arrow import columns_of
    from tests.tables.lakes import FLIGHTS

    return columns_of(FLIGHTS)


def test_a_protected_table_with_rows_is_refused_unless_allowed(lake: Lake) -> None:
    lake.table()
    reinitialise_table(lake.store, lake.root, table_id(lake))  # it holds nothing
    lake.ingest(lake.file(flights(10)))
    with pytest.raises(Refused, match="holds 10 rows and is protected"):
        reinitialise_table(lake.store, lake.root, table_id(lake))
    assert lake.open().count() == 10


@pytest.mark.parametrize("at", ["", "@2"], ids=["first", "second"])
@pytest.mark.parametrize(
    "point", ["tables.reinitialise.started", "tables.reinitialise.created", "tables.reinitialise.swapped"]
)
def test_a_killed_emptying_is_done_or_not_and_can_be_repeated(point: str, at: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(40)))
    worker = start(lake, table_id(lake), "empty", failpoint=f"{point}")
    assert worker.wait(300) == -signal.SIGKILL
    assert lake.open().count() == (0 if point.endswith("swapped") else 40)
    if at:
        remove_old_datasets(lake.store, lake.root)
    empty(lake)
    assert lake.open().count() == 0
    lake.ingest(lake.file(flights(5)))
    assert lake.open().count() == 5
    remove_old_datasets(lake.store, lake.root)
    statuses = [each.status for each in lake.open().opened.state.datasets]
    assert "writing" not in statuses and statuses.count("current") == 1


def test_a_load_that_was_under_way_is_told_that_its_rows_are_not_in_the_table(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(10)))
    late = start(lake, table_id(lake), "load", str(lake.file(flights(7))), failpoint="tables.commit.before-lance=stop")
    os.waitid(os.P_PID, late.pid, os.WSTOPPED | os.WNOWAIT)
    empty(lake)
    os.kill(late.pid, signal.SIGCONT)
    assert late.wait(300) == 7  # a conflict, in words
    assert lake.open().count() == 0
    assert lake.open().opened.dataset().count_rows() == 0


def test_loads_and_emptyings_at_once_keep_whole_loads_only(lake: Lake) -> None:
    lake.table()
    files = [str(lake.file(flights(10, 10 * i))) for i in range(8)]
    workers = [start(lake, table_id(lake), "load", file) for file in files[:3]]
    workers += [start(lake, table_id(lake), "empty"), start(lake, table_id(lake), "load", *files[3:])]
    codes = [worker.wait(300) for worker in workers]
    assert all(code in (0, 7) for code in codes) and codes[3] == 0
    table = lake.open()
    assert table.count() % 10 == 0 and table.count() == table.opened.dataset().count_rows()
    found = {row["at"] for row in table.scan().to_table().to_pylist()}
    assert len(found) == table.count()  # no row twice


def test_a_cut_off_rewrite_does_not_bring_rows_back(lake: Lake) -> None:
    from dataclasses import replace

    from tests.tables.rewrite.test_rewrite import ended
    from tests.tables.rewrite.test_rewrite import start as start_rewrite

    lake.table()
    lake.ingest(lake.file(flights(40)))
    wanted = replace(spec_of(lake), split_points=(("AA",),))
    assert ended(start_rewrite(lake, wanted, "tables.rewrite.copied")) == -signal.SIGKILL
    empty(lake)
    update_table(lake.store, lake.root, table_id(lake), wanted)
    assert lake.open().count() == 0 and leaves(lake) == [("AA",)]
    assert len(list((Path(lake.root) / "air").iterdir())) >= 2
