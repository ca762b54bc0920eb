"""The planner's comparison: each kind of change is found, with its risk and refusal; else nothing is."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from deployer.plan import diff, make_plan
from deployer.plan.changes import (
    Change,
    ChangeMaxStaleness,
    ChangeViewQuery,
    CreateDataset,
    CreateIndex,
    DatasetAlteration,
    DeleteDataset,
    DropIndex,
    RebuildIndex,
    RenameIndex,
)
from deployer.plan.render.changes import describe
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.render.terminal import plan_as_tree
from deployer.specs.model import (
    Cluster,
    Embedding,
    Hold,
    InstanceSpec,
    Retention,
    ServiceSpec,
    StateBackend,
    Storage,
    TableSpec,
    Trigger,
)
from deployer.specs.types.computed import ComputedByUdf
from deployer.specs.types.types import Column, FixedSizeList, ListOf, MapOf, Scalar, Struct
from tests.plan.lakes import EMPTY, FLIGHTS, INSTANCE, LIVE, OWNER, graph, with_column, without_column

GOLDEN = Path(__file__).parent / "golden"
INT16, INT32, INT64, TEXT = Scalar("int16"), Scalar("int32"), Scalar("int64"), Scalar("string")

[CLEAN] = FLIGHTS.services


def serviced(*services: ServiceSpec) -> TableSpec:
    return replace(FLIGHTS, services=services)


DATED = replace(FLIGHTS, columns=(*FLIGHTS.columns, Column("day", Scalar("date32"))))

TABLES: dict[str, TableSpec] = {
    "nothing": FLIGHTS,
    "add_column": replace(FLIGHTS, columns=(*FLIGHTS.columns, Column("remark", TEXT))),
    "add_column_first": replace(FLIGHTS, columns=(Column("remark", TEXT), *FLIGHTS.columns)),
    "add_column_not_null": replace(FLIGHTS, columns=(*FLIGHTS.columns, Column("remark", TEXT, nullable=False))),
    "add_field": with_column(
        "gate", Column("gate", Struct((Column("hall", TEXT), Column("number", INT16), Column("floor", INT16))))
    ),
    "drop_column": without_column("stops"),
    "drop_field": with_column("gate", Column("gate", Struct((Column("hall", TEXT),)))),
    "rename_column": replace(with_column("delay", Column("late", INT32, renamed_from="delay")), sort_keys=("late",)),
    "add_column_default": replace(
        FLIGHTS, columns=(*FLIGHTS.columns, Column("remark", TEXT, nullable=False, default="'none'"))
    ),
    "column_default": with_column("delay", Column("delay", INT32, default="0")),
    "column_source": with_column("delay", Column("delay", INT32, source="Delay")),
    "column_computed": with_column(
        "stops", replace(FLIGHTS.columns[4], computed=ComputedByUdf("air:stops", "", ("flight",), "2"))
    ),
    "rename_row_key": replace(
        with_column("carrier", Column("airline", TEXT, False, "Two letters.", renamed_from="carrier")),
        row_keys=("airline", "flight"),
    ),
    "rename_field": with_column(
        "gate", Column("gate", Struct((Column("hall", TEXT), Column("no", INT16, renamed_from="number"))))
    ),
    "reorder_fields": with_column("gate", Column("gate", Struct((Column("number", INT16), Column("hall", TEXT))))),
    "widen_row_key": with_column("flight", Column("flight", INT64, nullable=False)),
    "convert_using": with_column("stops", Column("stops", TEXT, using="array_to_string(stops, ' ')")),
    "widen_column": with_column("delay", Column("delay", INT64)),
    "widen_field": with_column("gate", Column("gate", Struct((Column("hall", TEXT), Column("number", INT32))))),
    "narrow_column": with_column("delay", Column("delay", INT16)),
    "convert_column": with_column("delay", Column("delay", TEXT)),
    "convert_item": with_column("stops", Column("stops", ListOf(Column("item", INT32)))),
    "convert_list": with_column("stops", Column("stops", FixedSizeList(Column("item", TEXT), 2))),
    "convert_value": with_column(
        "notes", Column("notes", MapOf(Column("key", TEXT, nullable=False), Column("value", INT32)))
    ),
    "relax_nullability": with_column("flight", Column("flight", INT32)),
    "tighten_nullability": with_column("delay", Column("delay", INT32, nullable=False)),
    "reorder_columns": replace(FLIGHTS, columns=(*FLIGHTS.columns[1:], FLIGHTS.columns[0])),
    "sensitive_column": with_column("delay", Column("delay", INT32, sensitive=True)),
    "describe_column": with_column("delay", Column("delay", INT32, description="Minutes.")),
    "row_keys": replace(FLIGHTS, row_keys=("carrier",)),
    "row_keys_become_unique": replace(FLIGHTS, unique=True),
    "sort_keys": replace(FLIGHTS, sort_keys=()),
    "split_points": replace(FLIGHTS, split_points=(("DL",),)),
    "split_points_many": replace(
        FLIGHTS, split_points=(("AA",), ("DL",), ("UA", 1), ("UA", 2), ("UA", 3), ("x\x1b" * 40,))
    ),
    "split_points_of_times": replace(
        FLIGHTS,
        columns=(Column("day", Scalar("date32"), nullable=False), *FLIGHTS.columns),
        row_keys=("day", "carrier"),
        split_points=((15_737,), (15_765, "UA")),
    ),
    "embedding": replace(FLIGHTS, embedding=Embedding("models.words:vectors", "carrier", "delay")),
    "leaf_limit": replace(FLIGHTS, max_rows_per_leaf=5_000_000),
    "retention": replace(DATED, retention=Retention("day", "400d")),
    "retained_changes": replace(DATED, retain_changes="7d"),
    "retention_of_a_rename": replace(
        DATED,
        columns=(*FLIGHTS.columns, Column("on", Scalar("date32"), renamed_from="day")),
        retention=Retention("on", "30d"),
    ),
    "holds": replace(FLIGHTS, holds=(Hold("audit", "carrier = 'AA'", "case 12"), Hold("case-7"))),
    "service_created": serviced(
        ServiceSpec("COMPACT", Trigger("0 3 * * *", "Europe/Berlin", commits=100), "small", {"portion_bytes": 2**30}),
        CLEAN,
        ServiceSpec("METASYNC", Trigger(commits=1), None, {"targets": [{"type": "glue"}, {"type": "directory"}]}),
        ServiceSpec("AUTOSAVEPOINT", None, None, {"brand_new": "on"}, unsafe_raw=True),
    ),
    "service_with_queue": serviced(
        CLEAN,
        ServiceSpec(
            "INGEST",
            Trigger("*/15 * * * *"),
            None,
            {"files": ["s3://landing/*.csv", "s3://other/"], "queue": "arn:aws:sqs:eu-central-1:123456789012:landing"},
        ),
    ),
    "service_deleted": replace(FLIGHTS, services=()),
    "service_trigger": serviced(replace(CLEAN, trigger=Trigger(small_files=20, bytes=10**9, deleted_share=0.125))),
    "service_on_demand": serviced(replace(CLEAN, trigger=None)),
    "service_options": serviced(replace(CLEAN, options={"older_than": "2d", "dry_run": True})),
    "service_options_unchecked": serviced(replace(CLEAN, options={"older_than": "2w"}, unsafe_raw=True)),
    "service_external": serviced(
        CLEAN,
        ServiceSpec(
            "METASYNC",
            Trigger(commits=1),
            None,
            {
                "targets": [
                    {"type": "glue"},
                    {"type": "rest", "uri": "https://catalog.example.com", "token_variable": "DEPLOYER_TOKEN_CATALOG"},
                ]
            },
        ),
    ),
    "service_cluster": serviced(replace(CLEAN, cluster="small")),
    "storage_format": replace(FLIGHTS, storage=Storage(data_storage_version="2.2")),
    "storage_sizes": replace(FLIGHTS, storage=Storage(max_rows_per_file=1000)),
    "offline": replace(FLIGHTS, online=False),
    "unprotected": replace(FLIGHTS, deletion_protection=False),
    "description": replace(FLIGHTS, description=""),
    "tags": replace(FLIGHTS, tags={}),
    "rename_table": replace(FLIGHTS, name="departures", renamed_from="flights"),
    "move_table": replace(FLIGHTS, database="archive", renamed_from="air.flights"),
    "much_at_once": replace(
        without_column("stops", with_column("delay", Column("late", INT64, True, "Minutes.", renamed_from="delay"))),
        online=False,
        row_keys=("flight", "carrier"),
        sort_keys=("late",),
    ),
}
INSTANCES: dict[str, InstanceSpec] = {
    "instance_root": replace(INSTANCE, root="lakes/other"),
    "instance_state": replace(INSTANCE, state=StateBackend("dynamodb")),
    "instance_engine": replace(INSTANCE, engine="embedded"),
    "instance_clusters": replace(INSTANCE, clusters=(Cluster("large", "local", {"cores": 8}),)),
    "instance_cluster_options": replace(INSTANCE, clusters=(Cluster("small", "local", {"cores": 8}),)),
    "instance_notify": replace(INSTANCE, notify=("ops@example.com",)),
    "instance_description": replace(INSTANCE, description="Demo."),
    "instance_tags": replace(INSTANCE, tags={"owner": "platform"}),
}


def rendered(plan_input: tuple[TableSpec, ...], instance: InstanceSpec = INSTANCE) -> str:
    console = Console(width=400, no_color=True, highlight=False, record=True, file=io.StringIO())
    plan = make_plan("demo", graph(*plan_input, instance=instance), LIVE, owner=OWNER)
    console.print(plan_as_tree(plan))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"


def check(name: str, text: str, update: bool) -> None:
    """Compare with the golden file; `UPDATE_GOLDEN=1` writes it again, for a person to read the difference."""
    file = GOLDEN / f"{name}.txt"
    if update:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_table_is_planned_as_its_golden_file_says(name: str, update_golden: bool) -> None:
    check(name, rendered((TABLES[name], EMPTY)), update_golden)


@pytest.mark.parametrize("name", INSTANCES)
def test_a_changed_instance_is_planned_as_its_golden_file_says(name: str, update_golden: bool) -> None:
    check(name, rendered((FLIGHTS, EMPTY), INSTANCES[name]), update_golden)


def test_tables_no_longer_declared_are_deleted(update_golden: bool) -> None:
    check("delete_tables", rendered(()), update_golden)


def test_new_tables_are_created(update_golden: bool) -> None:
    check("create_table", rendered((FLIGHTS, EMPTY, replace(FLIGHTS, name="more"))), update_golden)


def test_tables_of_another_owner_are_left_alone() -> None:
    plan = make_plan("demo", graph(), LIVE, owner="lakes/prod")
    assert plan.counts() == {"create": 0, "update": 0, "delete": 0, "same": 1}


def test_an_allowed_address_may_be_destroyed() -> None:
    plan = make_plan("demo", graph(EMPTY), LIVE, owner=OWNER, allow_destroy=["table/air.flights"])
    assert not plan.refused
    assert [resource.action for resource in plan.resources] == ["same", "same", "delete"]


def test_json_has_all_that_the_tree_has() -> None:
    document = plan_as_json(make_plan("demo", graph(TABLES["much_at_once"], EMPTY), LIVE, owner=OWNER))
    [resource] = document["resources"]
    assert (resource["address"], resource["action"], resource["rows"]) == ("table/air.flights", "update", 336_776)
    assert [change["kind"] for change in resource["changes"]] == [
        "RenameColumn",
        "WidenColumn",
        "ChangeColumnDescription",
        "ChangeRowKeys",
        "DropColumn",
        "SetOnline",
    ]
    assert resource["changes"][1]["details"] == {"column": ["late"], "before": "int32", "after": "int64"}


def test_lists_in_the_options_of_a_cluster_are_told() -> None:
    after = replace(INSTANCE, clusters=(Cluster("small", "emr-serverless", {"subnets": ["subnet-1"]}),))
    document = plan_as_json(make_plan("demo", graph(instance=after), LIVE, owner=OWNER))
    (change,) = next(each for each in document["resources"] if each["address"] == "instance/demo")["changes"]
    (cluster,) = change["details"]["after"]
    assert cluster["options"] == {"subnets": ["subnet-1"]}


def test_every_kind_of_change_has_a_golden_case() -> None:
    found = {type(change) for after in (*TABLES.values(), None) for change in diff(FLIGHTS, after)}
    found |= {type(change) for after in (*INSTANCES.values(), None) for change in diff(INSTANCE, after)}
    found |= {type(change) for after in (FLIGHTS, INSTANCE) for change in diff(None, after)}
    found |= {CreateIndex, DropIndex, RebuildIndex, RenameIndex}  # tests/plan/test_indexes.py
    found |= {ChangeMaxStaleness, ChangeViewQuery}  # tests/views/spec/test_plans.py
    found |= {CreateDataset, DeleteDataset, *get_args(DatasetAlteration)}  # tests/catalog/declared/test_plans.py
    assert found == set(get_args(Change))


SCALARS = st.sampled_from([Scalar(name) for name in ("int32", "int64", "string", "float64", "bool")])
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


def columns(types: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[Column, ...]]:
    one = st.builds(Column, NAMES, types, st.booleans(), st.sampled_from(["", "text"]))
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda column: column.name).map(tuple)


TYPES = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(Struct, columns(inner))
        | st.builds(lambda item: ListOf(Column("item", item)), inner)
        | st.builds(lambda item, size: FixedSizeList(Column("item", item), size), inner, st.integers(1, 3))
    ),
    max_leaves=6,
)
SPECS = st.builds(
    TableSpec,
    st.just("air"),
    st.just("flights"),
    columns(TYPES),
    online=st.booleans(),
    description=st.sampled_from(["", "text"]),
)


@given(SPECS, SPECS)
def test_there_are_changes_exactly_when_specs_differ(before: TableSpec, after: TableSpec) -> None:
    changes = diff(before, after)
    assert (not changes) == (before == after)
    assert all(describe(change) for change in changes)
