"""A small live lake and the specs around it that plans are made from."""

from __future__ import annotations

from dataclasses import replace

from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.plan.graph import build_graph
from deployer.plan.graph.build import Graph
from deployer.specs.model import Cluster, InstanceSpec, Lake, ServiceSpec, TableSpec, Trigger
from deployer.specs.types.types import Column, ListOf, MapOf, Scalar, Struct

OWNER = "lakes/dev"

INSTANCE = InstanceSpec(
    "demo", "lakes/demo", clusters=(Cluster("small", "local", {"cores": 2}),), tags={"owner": "data"}
)

FLIGHTS = TableSpec(
    database="air",
    name="flights",
    columns=(
        Column("carrier", Scalar("string"), nullable=False, description="Two letters."),
        Column("flight", Scalar("int32"), nullable=False),
        Column("delay", Scalar("int32")),
        Column("gate", Struct((Column("hall", Scalar("string")), Column("number", Scalar("int16"))))),
        Column("stops", ListOf(Column("item", Scalar("string")))),
        Column("notes", MapOf(Column("key", Scalar("string"), nullable=False), Column("value", Scalar("string")))),
    ),
    row_keys=("carrier", "flight"),
    sort_keys=("delay",),
    split_points=(("DL",), ("UA", 100)),
    description="Flights.",
    tags={"tier": "gold"},
    services=(ServiceSpec("CLEAN", Trigger("30 3 * * *"), None, {"older_than": "14d"}),),
)

EMPTY = TableSpec("air", "empty", (Column("id", Scalar("int64"), nullable=False),), row_keys=("id",))

LIVE = LiveLake(
    INSTANCE,
    {
        FLIGHTS.address: LiveTable(
            FLIGHTS, "f" * 32, "air/flights-ffffffff.lance", OWNER, TableStatistics(336_776, 12_345_678, 4, 3, 7, 9)
        ),
        EMPTY.address: LiveTable(EMPTY, "e" * 32, "air/empty-eeeeeeee.lance", OWNER, TableStatistics()),
    },
)


def graph(*tables: TableSpec, instance: InstanceSpec = INSTANCE) -> Graph:
    return build_graph(Lake(instance, tables))


def with_column(name: str, column: Column, spec: TableSpec = FLIGHTS) -> TableSpec:
    """The table with one column declared otherwise."""
    return replace(spec, columns=tuple(column if each.name == name else each for each in spec.columns))


def without_column(name: str, spec: TableSpec = FLIGHTS) -> TableSpec:
    return replace(spec, columns=tuple(each for each in spec.columns if each.name != name))
