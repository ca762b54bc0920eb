"""The service REFRESH: its runs, what starts them, OVERDUE, and what its forecast and its list say."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from deployer.errors import Conflict, InvalidInput
from deployer.platform.system.clock import Clock
from deployer.runs.records import begin_runs, cancel_run, queue_run, runs_of
from deployer.services.agent.agent import Agent, Settings
from deployer.services.agent.serving import served
from deployer.services.agent.watch import Watch
from deployer.services.api import management
from deployer.services.kinds.refresh import REFRESH
from deployer.services.registry import forecast, run_service
from deployer.services.triggers.due import due_services
from deployer.services.triggers.upstream import Written, written_since
from deployer.state import open_reader, open_store
from deployer.state.model.services import EXCLUDES
from deployer.table import connect, udf
from deployer.tables.read.table import open_table
from deployer.tables.rows.delete import delete_rows
from deployer.views.refresh.create import in_order, sources_of_all
from deployer.views.refresh.listing import views_of
from deployer.views.refresh.record import reflected
from deployer.views.refresh.results import RefreshJobResult
from spark_jobs.service import run_scheduled
from tests.views.refresh.conftest import COUNTS, LATE, Views, rows

GRACE = 3_600_000  #: ms
TWICE = udf(data_type=pa.int64())(lambda delay: 2 * delay)


def test_a_run_refreshes_the_view(views: Views) -> None:
    table = views.view()
    assert forecast(table, "REFRESH").startswith("computes all rows again from 300 rows in 3 files")
    done = run_service(views.lake.root, "late", "refresh")
    assert isinstance(done, RefreshJobResult) and (done.mode, done.job_id) == ("full", f"{done.run_id}-refresh")
    views.add(rows(300, 350))
    assert forecast(views.open("late"), "REFRESH") == "takes over 1 commit that touched 50 rows in 1 file"
    assert REFRESH.run(views.lake.root, "late", {"max_rows_per_fragment": 10}).mode == "incremental"
    assert views.rows() == views.expected()
    again = REFRESH.run(views.lake.root, "late")
    assert (again.status, again.why) == ("SKIPPED", "no row of a source has changed")
    assert REFRESH.run(views.lake.root, "late", {"full": True}).reason == "a full refresh was asked for"
    with pytest.raises(InvalidInput, match=r"air.flights is a table and not a view"):
        REFRESH.run(views.lake.root, "flights")


def attach(views: Views, **trigger: str) -> None:
    management.attach(views.open("late"), "REFRESH", "AUTOMATIC", dict(trigger))


def test_rows_of_the_source_start_it(views: Views) -> None:
    views.view()
    attach(views, rows="50")
    assert [each.why for each in due_services(views.open("late"))] == ["it was never refreshed"]
    REFRESH.run(views.lake.root, "late")
    assert not due_services(views.open("late"))
    views.add(rows(300, 340))
    assert not due_services(views.open("late"))
    delete_rows(views.open(), "id < 10")
    assert [each.why for each in due_services(views.open("late"))] == ["50 rows written to its sources"]
    with closing(open_reader(views.lake.root)) as store:
        watch = Watch(store, views.lake.root)
        due = watch.look(Clock().now()).tables[views.open("late").entry.table_id].due
        assert [each.service for each in due] == ["REFRESH"]
        REFRESH.run(views.lake.root, "late")
        assert not watch.look(Clock().now()).tables[views.open("late").entry.table_id].due
        views.add(rows(340, 400))  # the state of the view is as before
        assert watch.look(Clock().now()).tables[views.open("late").entry.table_id].due


def test_versions_of_the_source_start_it(views: Views) -> None:
    views.view()
    attach(views, commits="2")
    REFRESH.run(views.lake.root, "late")
    views.add(rows(300, 301))
    assert not due_services(views.open("late"))
    views.add(rows(301, 302))
    assert [each.why for each in due_services(views.open("late"))] == ["2 commits to its sources"]


def test_it_is_overdue(views: Views) -> None:
    views.view()
    attach(views, rows="50")
    REFRESH.run(views.lake.root, "late")
    views.add(rows(300, 400))
    table_id = views.open("late").entry.table_id
    with closing(open_reader(views.lake.root)) as store:
        for later, words in ((0, ""), (2 * GRACE, "100 rows written to its sources")):
            seen = Watch(store, views.lake.root).look(Clock().now() + later).tables[table_id]
            assert words in seen.service_statuses[0].overdue and bool(seen.service_statuses[0].overdue) == bool(words)


def test_the_agent_says_that_a_view_is_late_and_shows_it_as_a_gauge(views: Views) -> None:
    with connect(views.lake.root) as connection:
        connection.create_materialized_view("air.late", LATE, max_staleness=dt.timedelta(hours=1))
    views.refresh()
    views.add(rows(300, 340))
    told: list[tuple[str, dict[str, Any]]] = []

    def tell(event: str, **about: Any) -> None:
        told.append((event, about))

    for later, age, late in ((1_800_000, 1800, 0), (2 * GRACE, 7200, 3600)):
        clock = Clock(now=lambda later=later: Clock().now() + later)  # type: ignore[misc]
        with closing(open_store(views.lake.root)) as store:
            agent = Agent(store, views.lake.root, tell, Settings(), clock)
            agent.look()
            with served(agent, "127.0.0.1:0") as address, urlopen(f"http://{address}/metrics") as answer:
                families = list(text_string_to_metric_families(answer.read().decode()))
        found = {each.name: each.value for family in families for each in family.samples if "view" in each.name}
        assert found["deployer_view_staleness_seconds"] == pytest.approx(age, abs=60)
        assert found["deployer_view_late_seconds"] == pytest.approx(late, abs=60)
        of_late = [about for event, about in told if event == "late"]
        assert [about["table"] for about in of_late] == (["air.late"] if late else [])
    assert "rows of air.flights changed" in of_late[0]["why"]
    views.refresh()
    with closing(open_store(views.lake.root)) as store:
        Agent(store, views.lake.root, tell, Settings(), clock).look()
    assert len([event for event, _ in told if event == "late"]) == 1


def test_schedules_pauses_and_cancelled_runs(views: Views) -> None:
    table_id = views.view().entry.table_id
    attach(views, schedule="0 3 * * *")
    run_scheduled(views.lake.root, "air.late", "REFRESH", scheduled="2030-01-01T03:00:00Z")
    assert views.rows() == views.expected()
    management.pause(views.open("late"), "REFRESH")
    with pytest.raises(Conflict, match="paused"):
        views.refresh()
    management.resume(views.open("late"), "REFRESH")
    run = queue_run(views.store, table_id, "REFRESH", cause="a test")
    cancel_run(views.store, table_id, run.run_id)
    assert runs_of(views.open("late").state, "REFRESH")[0].status == "CANCELLED"


@pytest.mark.parametrize("kind", EXCLUDES["REFRESH"])
def test_what_it_does_not_run_beside(views: Views, kind: str) -> None:
    table_id = views.view().entry.table_id
    for running, other in ((kind, "REFRESH"), ("REFRESH", kind)):
        [held] = begin_runs(views.store, [table_id], running, cause="a test")  # type: ignore[arg-type]
        with pytest.raises(Conflict, match=f"of {running} is RUNNING"):
            begin_runs(views.store, [table_id], other, cause="a test")  # type: ignore[arg-type]
        held.finish()


def test_what_was_written_is_counted_from_states(views: Views) -> None:
    views.view()
    views.refresh()
    record = reflected(views.open("late").state)
    assert record is not None
    states = {views.open().entry.table_id: views.open().state}
    assert written_since(record, states) == Written()
    views.add(rows(300, 310))
    states = {views.open().entry.table_id: views.open().state}
    assert (written_since(record, states).commits, written_since(record, states).rows) == (1, 10)
    assert written_since(record, {}) == Written()


def test_views_are_listed_in_order(views: Views) -> None:
    views.view()
    views.view(COUNTS.replace("flights GROUP", "late GROUP"), "counts")
    views.refresh()
    [counts, late] = views_of(views.store, views.lake.root, views.queries)
    assert (late.name, late.sources, late.plan and late.plan.mode) == ("air.late", ("air.flights",), "none")
    assert (counts.sources, counts.plan and counts.plan.mode, counts.failure) == (("air.late",), "full", "")
    found = sources_of_all(views.store, views.lake.root, views.queries)
    assert in_order(found) == in_order(found, "air.counts") == ["air.late", "air.counts"]


def test_python_api(views: Views) -> None:
    with connect(views.lake.root) as connection:
        view = connection.create_materialized_view("air.late", LATE, max_staleness=dt.timedelta(hours=1))
        assert view.row_keys == ("id",) and view.plan_refresh().mode == "full"
        assert connection.create_materialized_view("air.late", LATE).name == "air.late"
        with pytest.raises(Conflict, match="a view with another query"):
            connection.create_materialized_view("air.late", COUNTS)
        with pytest.raises(Conflict, match="a table of that name"):
            connection.create_materialized_view("air.flights", "SELECT id FROM air.late")
        job = view.refresh_async(job_id="monday")
        assert job.result(60).rows_inserted == view.count_rows() == len(views.expected())
        assert (job.describe().kind, job.status, view.list_jobs()[0].job_id) == ("REFRESH", "DONE", "monday")
        assert view.refresh(job_id="monday").already_done
        assert open_table(views.lake.root, "late").scan("delay = 11").to_table().num_rows == 6
        with pytest.raises(InvalidInput, match=r"air.flights is a table and not a view"):
            connection.open_table("air.flights").refresh()


PLAN = """
import sys
from deployer.table import connect
with connect(sys.argv[1]) as lake:
    plan = lake.open_table("air.late").plan_refresh()
print(plan.mode, plan.rows, {name.partition(".")[0] for name in sys.modules} & {"pyspark", "py4j"})
"""


def test_a_plan_starts_no_spark_and_opens_no_data_file(views: Views) -> None:
    views.view()
    views.refresh()
    views.add(rows(300, 310))
    delete_rows(views.open(), "id < 3")
    for name in ("flights", "late"):
        data = Path(views.open(name).location, "data")
        data.rename(data.with_name("elsewhere"))
    command = [sys.executable, "-c", PLAN, views.lake.root]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "incremental 13 set()\n"), done.stderr


CREATED: dict[str, tuple[dict[str, Any], str]] = {
    "itself": ({"query": "SELECT id FROM air.v"}, "would read itself: air.v → air.v"),
    "no name": ({"name": "air."}, "'' is not a name"),
    "name of three parts": ({"name": "a.b.c"}, "'a.b' is not a name"),
    "name of another type": ({"name": 5}, "`name` is 5, which is not a string"),
    "query of another type": ({"query": None}, "`query` is None, which is not a string"),
    "query with an odd character": ({"query": "SELECT id ; FROM air.flights"}, "at character 11"),
    "key that the query lacks": ({"row_keys": ["nope"]}, "'nope' is declared as a key of the view"),
    "key as a text": ({"row_keys": "id"}, "`row_keys` is 'id', which is not a list"),
    "no staleness": ({"max_staleness": dt.timedelta(0)}, "`max_staleness` is not above zero"),
    "staleness of another type": ({"max_staleness": "1h"}, "`max_staleness` is '1h', which is not a timedelta"),
    "function that is none": ({"udfs": {"twice": len}}, "the function twice is builtin_function_or_method"),
    "functions as a list": ({"udfs": [len]}, "`udfs` is not a mapping"),
    "function with capitals": ({"udfs": {"Twice": TWICE}}, "'Twice' cannot be the name of a function in a query"),
    "function that is not called": ({"udfs": {"twice": TWICE}}, "the query does not call the function twice"),
    "function of a wrong query": (
        {"query": "SELECT twice(nope) AS x FROM air.flights", "udfs": {"twice": TWICE}},
        "there is no column 'nope'",
    ),
}


@pytest.mark.parametrize("case", CREATED)
def test_a_view_that_cannot_be_is_not_created(views: Views, case: str) -> None:
    given, words = CREATED[case]
    with connect(views.lake.root) as connection:
        before = connection.table_names(), sorted(Path(views.lake.root).rglob("*"))
        with pytest.raises(InvalidInput, match=words):
            connection.create_materialized_view(**{"name": "air.v", "query": LATE, **given})
        assert (connection.table_names(), sorted(Path(views.lake.root).rglob("*"))) == before


REFRESHED: dict[str, tuple[dict[str, Any], str]] = {
    "version 0": ({"src_version": 0}, "versions of a table begin with 1"),
    "version of another type": ({"src_version": 1.5}, "src_version is 1.5"),
    "version that is a flag": ({"src_version": True}, "src_version is True"),
    "version that is a word": ({"src_version": "x"}, "neither a version nor a time"),
    "size of another type": ({"max_rows_per_fragment": "a"}, "max_rows_per_fragment is 'a'"),
    "size below 1": ({"max_rows_per_fragment": -3}, "max_rows_per_fragment is -3"),
    "condition of another type": ({"where": 1}, "where is 1"),
    "condition that is no condition": ({"where": "delay"}, "does not return a boolean|is of type|cannot be used"),
    "condition with another statement": ({"where": "true; DROP TABLE x"}, "not one SQL expression"),
    "job id with a slash": ({"job_id": "a/b"}, "'a/b' is not a valid job id"),
    "both": ({"where": "true", "full": True}, "`where` and `full` are both given"),
}


@pytest.mark.parametrize("case", REFRESHED)
def test_a_refresh_that_cannot_be_changes_nothing(views: Views, case: str) -> None:
    given, words = REFRESHED[case]
    views.view()
    views.refresh()
    views.add(rows(300, 310))
    then = views.rows(), views.open("late").state.lance_version
    with connect(views.lake.root) as connection, pytest.raises(InvalidInput, match=words):
        connection.open_table("air.late").refresh(**given)
    assert (views.rows(), views.open("late").state.lance_version) == then
    assert views.plan().mode == "incremental"
