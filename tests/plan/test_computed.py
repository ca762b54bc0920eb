"""Computed columns in plans: what makes one stale, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployer.live.backfill_rates import backfill_rates
from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.plan import make_plan
from deployer.plan.changes import ChangeColumnComputed, RenameColumn
from deployer.plan.diff.columns import diff_columns
from deployer.plan.model import PlannedChange
from deployer.plan.render.changes import describe
from deployer.specs.model import TableSpec
from deployer.specs.types.computed import Computed, ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, Scalar
from deployer.state.model.entities import TableState
from deployer.state.model.services import Figures, Run
from tests.plan.lakes import INSTANCE, OWNER, graph

INT32, FLOAT64 = Scalar("int32"), Scalar("float64")
SPEED = ComputedByUdf("air.features:speed", "", ("distance", "minutes"), "2")
KM = ComputedBySql("distance * 1.609344", ("distance",))


def trips(km: Computed | None = KM, speed: Computed | None = SPEED, distance: str = "distance") -> TableSpec:
    before = "distance" if distance != "distance" else None
    return TableSpec(
        "air",
        "trips",
        (
            Column(distance, INT32, renamed_from=before),
            Column("minutes", INT32),
            Column("km", FLOAT64, computed=km),
            Column("speed", FLOAT64, computed=speed),
        ),
    )


def planned(before: TableSpec, after: TableSpec, rows: int = 1000, rate: float = 0) -> list[PlannedChange]:
    statistics = TableStatistics(rows, rows * 24, 1, 1, 7, 9)
    rates = {"km": rate, "speed": rate} if rate else {}
    table = LiveTable(before, "f" * 32, "air/trips-ffffffff.lance", OWNER, statistics, rates=rates)
    plan = make_plan("demo", graph(after), LiveLake(INSTANCE, {before.address: table}), owner=OWNER)
    return list(plan.changes)


STALE = "the column becomes stale, its values stay until a backfill computes them again"
SAME = "it has the same values, so what is computed stays"
DEFINITIONS = {
    "other SQL": (KM, replace(KM, sql="distance * 1.6"), STALE),
    "SQL in other words": (KM, replace(KM, sql='"distance"  *  1.609344'), SAME),
    "on load": (KM, replace(KM, on_load=True), SAME),
    "another version": (KM, KM, ""),
    "computed from now on": (None, KM, "its values stay; a backfill computes those that are null"),
    "no longer computed": (KM, None, "its values stay, and nothing computes it any more"),
    "by a function": (KM, SPEED, STALE),
}


@pytest.mark.parametrize("case", DEFINITIONS)
def test_a_changed_definition_says_whether_the_column_becomes_stale(case: str) -> None:
    before, after, why = DEFINITIONS[case]
    found = planned(trips(before), trips(after))
    assert [each.assessment.why for each in found] == ([why] if why else [])
    assert all(each.assessment.risk == "safe" and each.refused is None for each in found)
    if why == STALE:
        assert (found[0].assessment.rows, found[0].assessment.bytes) == (1000, 8000)


@pytest.mark.parametrize(
    ("other", "stale"),
    [
        (replace(SPEED, version="3"), True),
        (replace(SPEED, inputs=("minutes", "distance")), True),
        (replace(SPEED, udf="air.features:fast"), True),
        (replace(SPEED, function="0" * 64), False),
        (replace(SPEED, on_load=True), False),
    ],
)
def test_what_makes_a_function_another_one(other: ComputedByUdf, stale: bool) -> None:
    [change] = planned(trips(), trips(speed=other))
    assert change.assessment.why == (STALE if stale else SAME)
    assert isinstance(change.change, ChangeColumnComputed)
    assert change.change.after is not None
    assert (change.change.after.identity == SPEED.identity) is not stale


def test_a_renamed_input_is_carried_into_definitions_and_makes_nothing_stale() -> None:
    after = trips(
        replace(KM, sql="miles * 1.609344", inputs=("miles",)), replace(SPEED, inputs=("miles", "minutes")), "miles"
    )
    [change] = planned(trips(), after)
    assert isinstance(change.change, RenameColumn)
    assert change.assessment.why == "the definition of km, speed follows"


def test_a_renamed_input_and_another_expression_are_two_changes() -> None:
    after = trips(replace(KM, sql="miles * 1.6", inputs=("miles",)), None, "miles")
    renamed, computed = planned(trips(speed=None), after)
    assert isinstance(renamed.change, RenameColumn)
    assert describe(computed.change) == "compute column km: miles * 1.609344 → miles * 1.6"
    assert computed.assessment.why == STALE


def test_an_input_of_another_type_names_the_columns_that_become_stale() -> None:
    far = Column("far", Scalar("bool"), computed=ComputedBySql("km > 1000", ("km",)))
    before = replace(trips(), columns=(*trips().columns, far))
    wider = tuple(replace(each, type=Scalar("int64")) if each.name == "distance" else each for each in before.columns)
    [change] = planned(before, replace(before, columns=wider))
    assert change.assessment.why == "the column is rewritten; km, speed, far, computed from it, become stale"


@pytest.mark.parametrize(("rate", "time"), [(500, "2 s"), (10, "2 min"), (0.1, "3 h"), (0.001, "12 days")])
def test_a_stale_column_has_the_time_that_the_last_rate_gives(rate: float, time: str) -> None:
    [change] = planned(trips(), trips(replace(KM, sql="distance * 1.6")), rate=rate)
    assert change.assessment.why == f"{STALE}, which takes about {time} at the rate of the last one"


def test_rates_are_of_the_last_run_that_wrote_the_column() -> None:
    def run(number: int, rows: int, seconds: int, *target: str, service: Any = "BACKFILL") -> Run:
        begun = number * 100_000
        return Run(
            f"run{number}", service, "SUCCEEDED", "a test", "me", None, begun, begun, begun + seconds * 1000,
            figures=Figures(rows_out=rows), target=target,
        )  # fmt: skip

    runs = (
        run(1, 500, 10, "km"),
        run(2, 100, 10, "km", "speed"),
        run(3, 9000, 1, "km", service="LOAD_COLUMNS"),
        run(4, 0, 1, "km"),
        replace(run(5, 90, 60, "speed"), figures=Figures(rows_out=90, after={"seconds": 3.0})),
    )
    state = TableState(runs={each.run_id: each for each in runs})
    assert backfill_rates(state, ["km", "speed", "other"]) == {"km": 10.0, "speed": 30.0}


def test_a_definition_says_nothing_of_a_live_identity() -> None:
    """An identity that was kept over a rename is no difference to what is declared."""
    live = replace(KM, kept_identity="kept")
    assert list(diff_columns("table/air.trips", trips(live).columns, trips(KM).columns)) == []
