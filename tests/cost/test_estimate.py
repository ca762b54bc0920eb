"""What declarations and sizes come to a month, and what a plan changes of it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from itertools import takewhile

import pytest

from deployer.cost.assumptions import Assumptions, assume
from deployer.cost.difference import before_and_after, declared_holding, difference
from deployer.cost.estimate import GB, MONTH, Estimate, Holding, StoredData, estimate, runs_a_month
from deployer.cost.prices import UNITS, PriceList, Tier
from deployer.errors import InvalidInput
from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.plan import Plan, make_plan
from deployer.plan.graph import build_graph
from deployer.specs.model import AwsSettings, Cluster, InstanceSpec, Lake, ServiceSpec, StateBackend, TableSpec, Trigger
from deployer.specs.types.types import Column, Scalar
from deployer.specs.values.schedules import firing_times

PRICES = PriceList(
    "test",
    "2026-01-31",
    "EUR",
    {},
    {
        "here": {name: (Tier(float(2**index)),) for index, name in enumerate(UNITS)}
        | {"ec2/a.b": (Tier(3.0),), "alarm": (Tier(0.0),)}
    },
)
SMALL = Cluster("small", "emr-serverless", {"release": "emr-7.12.0", "cores": 2, "memory": "4g", "max_workers": 3})
LAKE = InstanceSpec("demo", "s3://lakes/demo", state=StateBackend("dynamodb"), clusters=(SMALL,))
TABLE = TableSpec("air", "flights", (Column("id", Scalar("int64"), nullable=False),), row_keys=("id",))
OTHER = replace(TABLE, name="planes")
NOTHING = assume(["loads_per_day=0", "runs_per_day=0"], "")


def of(holding: Holding, assumed: Assumptions = NOTHING, region: str | None = "here") -> Estimate:
    return estimate(holding, region, PRICES, assumed)


def quantities(found: Estimate) -> dict[str, float | None]:
    """Those that are something, by name, without alarms, which every lake with clusters has."""
    return {line.name: line.quantity for line in found.lines if line.quantity != 0 and line.price != "alarm"}


def test_a_root_on_a_disk_costs_nothing() -> None:
    assert of(Holding(InstanceSpec("demo", "lakes/demo"), (StoredData(TABLE, GB),)), Assumptions()).lines == ()


def test_what_is_stored() -> None:
    found = of(Holding(LAKE, (StoredData(TABLE, 2 * GB), StoredData(OTHER, GB // 2)), state_bytes=GB))
    table = next(line.resource for line in found.lines if line.what == "writes")
    assert table.startswith("state-table/deployer-demo-")
    assert quantities(found) == {
        "storage of bucket/lakes": 2.5, f"storage of {table}": 1.0, f"point-in-time recovery of {table}": 1.0,
    }  # fmt: skip
    one = {name: price[0].price for name, price in PRICES.regions["here"].items()}
    assert found.known == 2.5 * one["s3-storage"] + one["dynamodb-storage"] + one["dynamodb-recovery"]
    assert not found.unknown


def test_loads() -> None:
    found = of(Holding(LAKE, state_bytes=0), assume(["loads_per_day=1000", "runs_per_day=0"], ""))
    assert list(quantities(found).values()) == [
        pytest.approx(1000 * MONTH * 6 / 1000),
        pytest.approx(1000 * MONTH * 12 / 1e6),
    ]


def test_what_is_set_aside_and_a_key_of_its_own() -> None:
    instance = replace(LAKE, aws=AwsSettings("managed", (10, 5)), clusters=())
    found = of(Holding(instance, state_bytes=0), Assumptions())
    used = {line.price: line.quantity for line in found.lines}
    assert used["dynamodb-read-capacity"] == pytest.approx(10 * MONTH * 24)
    assert used["dynamodb-write-capacity"] == pytest.approx(5 * MONTH * 24)
    assert used["kms-key"] == 1 and "dynamodb-writes" not in used
    names = {line.price for line in of(Holding(instance, managed="none"), Assumptions()).lines}
    assert "dynamodb-writes" in names and not names & {"kms-key", "dynamodb-read-capacity"}
    theirs = replace(instance, aws=AwsSettings("arn:aws:kms:here:1:key/1"))
    assert "kms-key" not in {line.price for line in of(Holding(theirs)).lines}


def test_runs_on_emr_serverless() -> None:
    assumed = assume(["loads_per_day=0", "runs_per_day=2", "run_minutes=30", "workers=9", "log_mb_per_run=512"], "")
    found = {name: value for name, value in quantities(of(Holding(LAKE, state_bytes=0), assumed)).items() if value}
    hours = 2 * MONTH * 0.5 * 4  # at most 3 workers, and a driver
    assert found == {
        "vCPUs of application/small": pytest.approx(hours * 2),
        "memory of application/small": pytest.approx(hours * 5),  # a tenth more than 4, in whole GB
        "ingestion of logs/small": pytest.approx(MONTH),
        "storage of logs/small": pytest.approx(30.0),
    }
    names = {line.price for line in of(Holding(LAKE), assumed).lines}
    assert {"emr-serverless-vcpu-arm64", "emr-serverless-memory-arm64"} <= names
    other = replace(SMALL, options={**SMALL.options, "architecture": "x86_64"})
    names = {line.price for line in of(Holding(replace(LAKE, clusters=(other,))), assumed).lines}
    assert "emr-serverless-vcpu-x86_64" in names and "emr-serverless-vcpu-arm64" not in names


def test_workers_that_are_kept_ready() -> None:
    kept = replace(SMALL, options={**SMALL.options, "initial_workers": 1, "idle_minutes": 45})
    assumed = assume(["loads_per_day=0", "runs_per_day=2", "run_minutes=15", "workers=3"], "")
    found = quantities(of(Holding(replace(LAKE, clusters=(kept,)), state_bytes=0), assumed))
    assert found["vCPUs of application/small"] == pytest.approx(2 * MONTH * (0.25 * 2 + 1.0 * 2) * 2)
    busy = assume(["loads_per_day=0", "runs_per_day=48", "run_minutes=15", "workers=3"], "")
    found = quantities(of(Holding(replace(LAKE, clusters=(kept,)), state_bytes=0), busy))
    assert found["vCPUs of application/small"] == pytest.approx(MONTH * (12 * 2 + 24 * 2) * 2)  # no day has more hours


ON_EC2: dict[str, tuple[dict[str, object], dict[str, float]]] = {
    # name: (options, hours a month of each price with two runs of half an hour a day)
    "a run's": ({"instance_type": "a.b", "instances": 4}, {"ec2/a.b": 5, "emr/a.b": 5}),
    "another primary": (
        {"instance_type": "a.b", "instances": 4, "primary_type": "c.d"},
        {"ec2/a.b": 4, "emr/a.b": 4, "ec2/c.d": 1, "emr/c.d": 1},
    ),
    "long": ({"lifetime": "long", "instance_type": "a.b"}, {"ec2/a.b": 6, "emr/a.b": 6}),  # an hour after each run
    "long, ends": (
        {"lifetime": "long", "instance_type": "a.b", "idle_minutes": 30}, {"ec2/a.b": 4, "emr/a.b": 4}
    ),
    "long, seldom idle": (
        {"lifetime": "long", "instance_type": "a.b", "idle_minutes": 3000}, {"ec2/a.b": 48, "emr/a.b": 48}
    ),
    "spot": (
        {"fleets": {"types": ["a.b"], "spot": 3}}, {"ec2/a.b": 1, "ec2/a.b spot": 3, "emr/a.b": 4}
    ),
    "fleets": (
        {"fleets": {"types": ["a.b", "c.d"], "on_demand": 2}, "primary_type": "a.b"},
        {"ec2/a.b": 1, "ec2/a.b|c.d": 2, "emr/a.b": 1, "emr/a.b|c.d": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_EC2)
def test_clusters_on_ec2(name: str) -> None:
    options, expected = ON_EC2[name]
    cluster = Cluster("big", "emr", {"release": "emr-7.12.0", **options})
    assumed = assume(["loads_per_day=0", "runs_per_day=2", "run_minutes=30"], "")
    found = of(Holding(replace(LAKE, clusters=(cluster,)), state_bytes=0), assumed)
    lines = {line.price: line for line in found.lines if line.resource == "cluster/big"}
    assert {price: line.quantity for price, line in lines.items()} == pytest.approx(
        {price: hours * MONTH for price, hours in expected.items()}
    )
    assert len({line.name for line in lines.values()}) == len(lines)
    assert {line.price for line in found.unknown} == expected.keys() - {"ec2/a.b"}  # the test's list has this alone
    assert lines["ec2/a.b"].monthly == pytest.approx(expected["ec2/a.b"] * MONTH * 3)


def test_a_cluster_that_was_declared_without_instances() -> None:
    found = of(Holding(replace(LAKE, clusters=(Cluster("old", "emr", {}),)), state_bytes=0))
    assert [line.name for line in found.unknown] == ["instances of cluster/old"]


def test_what_the_stack_does_not_declare() -> None:
    found = of(Holding(LAKE, managed="none"), Assumptions())
    assert {line.resource.partition("/")[0] for line in found.lines} == {"bucket", "state-table"}
    assert "point-in-time recovery" not in {line.what for line in found.lines}
    elsewhere = replace(LAKE, state=StateBackend("dynamodb", {"endpoint": "http://localhost:8000"}), clusters=())
    assert {line.resource for line in of(Holding(elsewhere)).lines} == {"bucket/lakes"}
    named = replace(LAKE, state=StateBackend("dynamodb", {"table": "ours"}), clusters=())
    assert {line.resource for line in of(Holding(named)).lines} == {"bucket/lakes", "state-table/ours"}


def scheduled(schedule: str | None, cluster: str | None = None) -> TableSpec:
    trigger = Trigger(schedule=schedule) if schedule else Trigger(commits=5)
    return replace(TABLE, services=(ServiceSpec("COMPACT", trigger, cluster), ServiceSpec("CLEAN")))


@pytest.mark.parametrize(
    ("table", "clusters", "runs"),
    [
        (scheduled("0 3 * * *", "small"), (SMALL,), MONTH),
        (scheduled("0 3 * * *"), (SMALL,), MONTH),
        (scheduled("0 3 * * *"), (SMALL, Cluster("default", "local")), MONTH),
        (scheduled("0 3 * * *"), (SMALL, replace(SMALL, name="default")), 0),
        (scheduled("0 3 * * *"), (SMALL, replace(SMALL, name="other")), 0),
        (scheduled("0 3 * * *", "laptop"), (SMALL, Cluster("laptop", "local")), 0),
        (scheduled(None, "small"), (SMALL,), 0),
    ],
)
def test_scheduled_services_are_runs(table: TableSpec, clusters: tuple[Cluster, ...], runs: float) -> None:
    found = of(Holding(replace(LAKE, clusters=clusters), (StoredData(table, 0),), 0))
    assert quantities(found).get("ingestion of logs/small", 0) == pytest.approx(runs * 20 / 1024)


def test_schedules_and_alarms() -> None:
    twice = (
        StoredData(scheduled("0 3 * * *", "small"), 0),
        StoredData(replace(OTHER, services=scheduled("0 4 * * *").services), 0),
    )
    found = {line.price: line.quantity for line in of(Holding(LAKE, twice, 0)).lines}
    assert found["scheduler"] == pytest.approx(2 * MONTH / 1e6) and found["alarm"] == 3
    found = {line.price: line.quantity for line in of(Holding(LAKE, (), 0)).lines}
    assert found["alarm"] == 1 and "scheduler" not in found
    rarely = (StoredData(scheduled("0 3 1 * *", "small"), 0),)  # no alarm looks back that far
    assert {line.price: line.quantity for line in of(Holding(LAKE, rarely, 0)).lines}["alarm"] == 2
    assert not {line.price for line in of(Holding(replace(LAKE, clusters=()), (), 0)).lines} & {"alarm", "scheduler"}


def test_a_long_cluster_that_schedules_need_stays() -> None:
    steady = Cluster("small", "emr", {"release": "emr-7.12.0", "lifetime": "long", "instance_type": "a.b"})
    holding = Holding(replace(LAKE, clusters=(steady,)), (StoredData(scheduled("0 3 * * *", "small"), 0),), 0)
    assert {line.price: line.quantity for line in of(holding).lines}["ec2/a.b"] == pytest.approx(2 * 24 * MONTH)


@pytest.mark.parametrize(
    "expression", ["* * * * *", "*/7 1-3 * * 1-5", "30 2,14 1 * *", "0 0 29 2 *", "5 4 * 1 0", "0 0 L * *"]
)
def test_runs_of_a_schedule_are_as_many_as_it_fires(expression: str) -> None:
    begin = dt.datetime(2025, 1, 1, tzinfo=dt.UTC) - dt.timedelta(minutes=1)
    end = begin.replace(year=begin.year + 4)
    if expression == "* * * * *":
        assert runs_a_month(expression) == pytest.approx(MONTH * 24 * 60)
        return
    fires = sum(1 for _ in takewhile(lambda time: time <= end, firing_times(expression, "UTC", begin)))
    assert fires and runs_a_month(expression) == pytest.approx(fires / 48)


def test_what_is_not_known_is_in_no_sum() -> None:
    holding = Holding(LAKE, (StoredData(TABLE, None), StoredData(OTHER, GB)), state_bytes=None)
    found = of(holding)
    assert {line.what for line in found.unknown} == {"storage", "point-in-time recovery"} and found.known == 0
    assert found.lines[0].unsized == (TABLE.address,)
    busy = of(Holding(LAKE, (StoredData(OTHER, GB),), GB), Assumptions(), region="there")
    assert len(busy.unknown) == len(busy.lines) and busy.known == 0
    nowhere = of(Holding(LAKE, (StoredData(OTHER, GB),), GB), Assumptions(), region=None)
    assert len(nowhere.unknown) == len(nowhere.lines)


def test_assumptions() -> None:
    assert assume([], "") == Assumptions()
    found = assume(["runs_per_day=4", " workers = 2.5 ", "runs_per_day=0"], "")
    assert (found.runs_per_day, found.workers) == (0, 2.5)
    assert all(meaning for _, _, meaning in found.listed())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run_per_day=1", "no assumption is called 'run_per_day'; did you mean runs_per_day?"),
        ("x=1", "there are loads_per_day, requests_per_load"),
        ("workers", "write workers=NUMBER"),
        ("workers=many", "write workers=NUMBER"),
        ("workers=-1", "write workers=NUMBER, 0 or more"),
        ("workers=nan", "write workers=NUMBER"),
        ("workers=inf", "write workers=NUMBER"),
    ],
)
def test_what_cannot_be_assumed(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        assume([text], "--assume")
    assert message in str(caught.value) and str(caught.value).startswith("--assume: ")


def live(*tables: tuple[TableSpec, int | None], instance: InstanceSpec = LAKE) -> LiveLake:
    def statistics(size: int | None) -> TableStatistics:
        return TableStatistics(known=False) if size is None else TableStatistics(rows=1, bytes=size)

    return LiveLake(
        instance, {spec.address: LiveTable(spec, "t", "l", "me/dev", statistics(size)) for spec, size in tables}
    )


def planned(lake: Lake, found: LiveLake) -> Plan:
    return make_plan("demo", build_graph(lake), found, owner="me/dev")


def changed(lake: Lake, found: LiveLake, assumed: Assumptions = NOTHING) -> tuple[float, float, tuple[str, ...]]:
    """Cost before and after what turns one into the other, and what is unknown."""
    before, after = before_and_after(planned(lake, found), found, lake, "all")
    cost = difference(None if before is None else of(before, assumed), of(after, assumed))
    assert (cost.currency, cost.region, cost.dated) == ("EUR", "here", "2026-01-31")
    return cost.before, cost.after, cost.unknown


def test_a_new_lake_is_empty() -> None:
    assert changed(Lake(LAKE, (TABLE,)), LiveLake(None)) == (0, 0, ())
    before, after, unknown = changed(Lake(LAKE, (TABLE,)), LiveLake(None), Assumptions())
    assert (before, unknown) == (0, ()) and after > 0


def test_a_table_that_goes() -> None:
    found = live((TABLE, 3 * GB), (OTHER, GB))
    assert changed(Lake(LAKE, (TABLE,)), found) == (4.0, 3.0, ())  # the state's own size is the same, whatever it is


def test_a_table_that_comes_is_empty_and_one_that_is_renamed_keeps_its_rows() -> None:
    assert changed(Lake(LAKE, (TABLE, OTHER)), live((TABLE, GB))) == (1.0, 1.0, ())
    renamed = replace(TABLE, name="departures", renamed_from="flights")
    assert changed(Lake(LAKE, (renamed,)), live((TABLE, GB))) == (1.0, 1.0, ())


def test_tables_of_other_stacks_stay() -> None:
    found = live((TABLE, GB), (OTHER, GB))
    others = {address: replace(table, owner="they/dev") for address, table in found.tables.items()}
    assert changed(Lake(LAKE, ()), replace(found, tables=others)) == (2.0, 2.0, ())


def test_a_cluster_that_comes() -> None:
    found = live((TABLE, GB), instance=replace(LAKE, clusters=()))
    before, after, unknown = changed(Lake(LAKE, (TABLE,)), found, assume(["loads_per_day=0"], ""))
    assert (before, unknown) == (1.0, ()) and after > 100
    bare = PriceList("t", "2026-01-31", "EUR", {}, {"here": {"s3-storage": (Tier(1.0),)}})
    sides = before_and_after(planned(Lake(LAKE, (TABLE,)), found), found, Lake(LAKE, (TABLE,)), "all")
    one, other = (estimate(each, "here", bare, Assumptions()) for each in sides if each is not None)
    cost = difference(one, other)
    assert (cost.before, cost.after) == (1.0, 1.0)
    assert cost.unknown == (
        "vCPUs of application/small", "memory of application/small", "ingestion of logs/small", "storage of logs/small",
        "alarms of alarms/demo",
    )  # fmt: skip


def test_sizes_that_are_not_known() -> None:
    found = live((TABLE, None), (OTHER, None))
    assert changed(Lake(LAKE, (TABLE, OTHER)), found) == (0, 0, ())  # the same, whatever they are
    assert changed(Lake(LAKE, (TABLE,)), found) == (0, 0, ("storage of bucket/lakes",))


def test_what_is_declared_with_the_sizes_of_what_is_there() -> None:
    renamed = replace(TABLE, name="departures", renamed_from="flights")
    holding = declared_holding(Lake(LAKE, (renamed,)), live((TABLE, GB), (OTHER, 2 * GB)), 7, "table")
    assert holding == Holding(LAKE, (StoredData(renamed, GB), StoredData(OTHER, 2 * GB)), 7, "table")
    assert declared_holding(Lake(LAKE, (TABLE,)), None, None, "all").tables == (StoredData(TABLE, None),)
