"""Computed columns in plans: what makes one stale, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployer.live.backfill_rates import backfill_rates
from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.live.uncomputed import UncomputedColumn, uncomputed_columns
from deployer.plan import make_plan
from deployer.plan.assess.pending_backfills import describe_pending
from deployer.plan.changes import ChangeColumnComputed, RenameColumn
from deployer.plan.diff.columns import diff_columns
from deployer.plan.model import Plan, PlannedChange
from deployer.plan.render.changes import describe
from deployer.plan.render.html import plan_as_html
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.render.markdown import plan_as_markdown
from deployer.specs.model import ServiceSpec, TableSpec
from deployer.specs.types.computed import Computed, ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, Scalar
from deployer.state.model.entities import File, TableState
from deployer.state.model.files.computed_by import to_text
from deployer.state.model.files.files import Files
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


KM_ID, SPEED_ID, OLD = KM.identity, SPEED.identity, "1-old"
BOTH = {3: (KM_ID,), 4: (SPEED_ID,)}


@pytest.mark.parametrize(
    ("files", "expected", "opened"),
    [
        pytest.param([BOTH, BOTH], {}, False, id="all is computed"),
        pytest.param([], {}, False, id="no rows"),
        pytest.param([BOTH, {}], {"km": (0, 10), "speed": (0, 10)}, True, id="a file is not computed"),
        pytest.param([{3: (KM_ID,), 4: (OLD,)}], {"speed": (10, 0)}, True, id="another version"),
        pytest.param([{3: (KM_ID,), 4: ("", SPEED_ID)}], {"speed": (0, 10)}, True, id="rows were merged in"),
        pytest.param([{3: (KM_ID,), 4: (OLD, SPEED_ID)}, {}], {"km": (0, 10), "speed": (10, 10)}, True, id="mixed"),
        pytest.param([{**BOTH, 9: (KM_ID,)}], {}, True, id="a field that was dropped"),
        pytest.param([{9: (KM_ID,), 4: (SPEED_ID,)}], {}, False, id="whichever field it is"),
    ],
)
def test_the_state_says_which_columns_lack_values(
    files: list[dict[int, tuple[str, ...]]], expected: dict[str, tuple[int, int]], opened: bool
) -> None:
    state = TableState(files=Files(File(n, None, 10, 80, computed=to_text(text)) for n, text in enumerate(files)))
    asked: list[str] = []

    def ids_of(names: Any) -> dict[str, int]:
        asked.extend(names)
        return {"km": 3, "speed": 4}

    found = uncomputed_columns(state, trips().columns, ids_of)
    assert {each.name: (each.stale, each.missing) for each in found} == expected
    assert bool(asked) is opened


def pending(after: TableSpec, *uncomputed: UncomputedColumn, rate: float = 0) -> Plan:
    statistics = TableStatistics(1000, 24_000, 1, 1, 7, 9)
    rates = {"speed": rate} if rate else {}
    place = "air/trips-ffffffff.lance"
    table = LiveTable(trips(), "f" * 32, place, OWNER, statistics, rates=rates, uncomputed=uncomputed)
    return make_plan("demo", graph(after), LiveLake(INSTANCE, {after.address: table}), owner=OWNER)


def with_backfill(**options: Any) -> TableSpec:
    return replace(trips(), services=(ServiceSpec("BACKFILL", options=options),))


STALE_SPEED, MISSING_SPEED = UncomputedColumn("speed", "2", 300, 0), UncomputedColumn("speed", "2", 0, 300)
WRITES = "a backfill to version 2 writes 300 rows, 2.4 kB"
COMMAND = "run `deployer column backfill air.trips speed`"


@pytest.mark.parametrize(
    ("after", "column", "rate", "text"),
    [
        (trips(), STALE_SPEED, 0, f"column speed is stale: {WRITES}; {COMMAND}"),
        (
            trips(),
            MISSING_SPEED,
            100,
            f"column speed is not computed yet: {WRITES}, in about 3 s at the rate of the last; {COMMAND}",
        ),
        (with_backfill(), MISSING_SPEED, 0, ""),
        (with_backfill(columns=("speed",)), MISSING_SPEED, 0, ""),
        (with_backfill(columns=("km",)), MISSING_SPEED, 0, f"column speed is not computed yet: {WRITES}; {COMMAND}"),
        (with_backfill(), STALE_SPEED, 0, f"column speed is stale: {WRITES}; {COMMAND}"),
        (
            with_backfill(on_change="recompute"),
            STALE_SPEED,
            0,
            f"column speed is stale: {WRITES}; its service BACKFILL does that",
        ),
        (trips(speed=replace(SPEED, version="3")), STALE_SPEED, 0, ""),
        (replace(trips(), columns=trips().columns[:3]), STALE_SPEED, 0, ""),
    ],
)
def test_a_plan_notes_columns_to_compute_and_changes_nothing_of_them(
    after: TableSpec, column: UncomputedColumn, rate: float, text: str
) -> None:
    found = pending(after, column, rate=rate)
    assert [describe_pending(each) for each in found.pending_backfills] == ([text] if text else [])
    assert bool(plan_as_json(found).get("pending_backfills")) is bool(text)


def test_every_rendering_has_the_columns_to_compute() -> None:
    found = pending(trips(), STALE_SPEED, rate=100)
    assert found.is_empty
    [row] = plan_as_json(found)["pending_backfills"]
    assert (row["column"], row["status"], row["rows"], row["bytes"], row["seconds"]) == ("speed", "stale", 300, 2400, 3)
    for page in (plan_as_markdown(found), plan_as_html(found)):
        assert "column speed is stale" in page and "deployer column backfill air.trips speed" in page
    many = pending(trips(), *(UncomputedColumn("km", KM.version, 1, 0) for _ in range(12)))
    assert "and 2 more columns to compute" in plan_as_markdown(many)
