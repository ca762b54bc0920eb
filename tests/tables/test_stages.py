"""A table's changes are executed in the stages that its plan shows, with one rewrite for all changes that need one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployer.live.model import LiveLake
from deployer.live.reader import read_table
from deployer.plan import make_plan
from deployer.plan.changes import Change
from deployer.plan.stages import RewriteTable, Stage
from deployer.specs.model import IndexSpec, Storage, TableSpec
from deployer.specs.types.types import Column, Scalar
from deployer.state.log.updates import TableRewritten
from deployer.tables.admin import tables as admin
from tests.plan.lakes import INSTANCE, graph
from tests.tables.lakes import Lake, flights


def test_a_plan_is_executed_in_the_order_that_it_shows(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table_id = lake.table(sort_keys=("delay",)).opened.entry.table_id
    lake.ingest(lake.file(flights(50)))
    live = read_table(lake.store, lake.root, lake.store.instance().tables[table_id])
    with_index = replace(live.spec, indexes=(IndexSpec("by_at", ("at",), "btree"),))
    admin.update_table(lake.store, lake.root, table_id, with_index)
    live = read_table(lake.store, lake.root, lake.store.instance().tables[table_id])
    desired = with_everything_changed(live.spec)
    plan = make_plan("demo", graph(desired), LiveLake(INSTANCE, {live.spec.address: live}), owner="tests/dev")
    executed: list[Change] = []
    rewrites = 0
    real = admin._execute

    def execute(stage: Stage, *more: object) -> None:
        nonlocal rewrites
        executed.extend(stage.changes)
        rewrites += isinstance(stage, RewriteTable)
        real(stage, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(admin, "_execute", execute)
    admin.update_table(lake.store, lake.root, table_id, desired)
    assert executed == [each.change for each in plan.changes]
    log = [update for entry in lake.store.log(table_id) for update in entry.updates]
    assert rewrites == sum(isinstance(update, TableRewritten) for update in log) == 1
    assert read_table(lake.store, lake.root, lake.store.instance().tables[table_id]).spec == replace(
        desired, renamed_from=None
    )


def with_everything_changed(spec: TableSpec) -> TableSpec:
    """The table with a change for each stage but those of constraints that are dropped and of services."""
    wider = {"flight": Scalar("int64"), "delay": Scalar("int32")}
    columns = [replace(each, type=wider.get(each.name, each.type)) for each in spec.columns if each.name != "price"]
    return replace(
        spec,
        name="departures",
        renamed_from="flights",
        columns=(*columns, Column("remark", Scalar("string"))),
        row_keys=("flight", "carrier"),
        sort_keys=(),
        split_points=((300,), (600, "DL")),
        max_rows_per_leaf=1000,
        storage=Storage(data_storage_version="2.2"),
        indexes=(IndexSpec("by_carrier", ("carrier",), "bitmap"),),
        online=False,
        tags={"tier": "gold"},
    )
