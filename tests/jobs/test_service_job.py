"""The job of services: what schedules ask for is run once, and what is not run says why."""

from __future__ import annotations

import json
from contextlib import closing

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.platform.files.json_values import JSON
from deployer.runs.records import begin_runs, queue_run, runs_of, start_run
from deployer.services.api.attachments import create_service, pause_service, remove_service
from deployer.state.model.services import Service
from deployer.tables.append import open_appender
from spark_jobs.service import main, run_scheduled
from tests.tables.lakes import Lake

AT = "2027-03-22T18:59:43Z"


@pytest.fixture
def grown(lake: Lake) -> Lake:
    """A table of ten files, with the services COMPACT and METASYNC, this one with a target that fails."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    lake.table(schema, ("id",), splits=())
    with closing(open_appender(lake.root, "air.flights")) as appender:
        for number in range(10):
            appender.append(pa.table({"id": [number]}, schema=schema))
    create_service(lake.store, table_id(lake), Service("COMPACT"))
    nowhere: dict[str, JSON] = {"targets": [{"type": "directory", "root": f"{lake.folder}/nowhere"}]}
    create_service(lake.store, table_id(lake), Service("METASYNC", options=nowhere))
    return lake


def table_id(lake: Lake) -> str:
    entry = lake.store.instance().by_name("air.flights")
    assert entry is not None
    return entry.table_id


def test_a_schedules_time_is_run_once(grown: Lake) -> None:
    first = run_scheduled(grown.root, "air.flights", "COMPACT", cluster="small", scheduled=AT)
    assert first == {"run_id": "compact-20270322T185943Z", "status": "SUCCEEDED", "why": ""}
    assert grown.store.table(table_id(grown)).files.count == 1
    again = run_scheduled(grown.root, "air.flights", "COMPACT", scheduled=AT)
    assert again["why"] == "run compact-20270322T185943Z of this time is SUCCEEDED"
    [run] = runs_of(grown.store.table(table_id(grown)))
    assert (run.cause, run.cluster, run.status) == ("schedule", "small", "SUCCEEDED")
    later = run_scheduled(grown.root, "air.flights", "COMPACT", scheduled="2027-03-23T18:59:43Z")
    assert later["status"] == "SKIPPED"


def test_a_run_that_was_queued_and_not_begun_is_done_by_who_asks_again(grown: Lake) -> None:
    queue_run(grown.store, table_id(grown), "COMPACT", cause="schedule", run_id="compact-20270322T185943Z")
    assert run_scheduled(grown.root, "air.flights", "COMPACT", scheduled=AT)["status"] == "SUCCEEDED"


def test_a_service_that_is_paused_or_runs_is_left_alone(grown: Lake) -> None:
    run = queue_run(grown.store, table_id(grown), "COMPACT", cause="on demand")
    held = start_run(grown.store, table_id(grown), run.run_id)
    found = run_scheduled(grown.root, "air.flights", "COMPACT", scheduled=AT)
    assert (found["run_id"], "is RUNNING" in found["why"]) == (None, True)
    held.finish()
    pause_service(grown.store, table_id(grown), "COMPACT")
    assert run_scheduled(grown.root, "air.flights", "COMPACT")["why"] == "the service is paused"
    assert len(runs_of(grown.store.table(table_id(grown)))) == 1


def test_a_service_that_fails_fails_the_job_with_the_reason(grown: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [f"--root={grown.root}", "--table=air.flights", "--service=METASYNC", f"--scheduled={AT}"]
    assert main(arguments) != 0
    assert "opens only tables below its folder" in capsys.readouterr().err
    [run] = runs_of(grown.store.table(table_id(grown)))
    assert run.status == "FAILED" and "opens only tables below its folder" in run.reason


def test_a_run_that_another_run_excludes_has_failed_with_the_reason(
    grown: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    [other] = begin_runs(grown.store, [table_id(grown)], "CLUSTER", cause="on demand")
    arguments = [f"--root={grown.root}", "--table=air.flights", "--service=COMPACT"]
    assert main([*arguments, f"--scheduled={AT}"]) == 1
    [run] = runs_of(grown.store.table(table_id(grown)), "COMPACT")
    assert (run.status, run.started_at) == ("FAILED", None)
    assert run.reason == f"it could not begin: run {other.run_id} of CLUSTER is RUNNING"
    assert f"run {other.run_id} of CLUSTER is RUNNING" in capsys.readouterr().err
    other.finish()
    assert main([*arguments, "--scheduled=2027-03-23T18:59:43Z"]) == 0
    assert [run.status for run in runs_of(grown.store.table(table_id(grown)), "COMPACT")] == ["SUCCEEDED", "FAILED"]


def test_a_run_that_cannot_begin_for_its_options_has_failed_with_the_reason(grown: Lake) -> None:
    remove_service(grown.store, table_id(grown), "COMPACT")
    broken = Service("COMPACT", options={"min_files": "many"}, unsafe_raw=True)
    create_service(grown.store, table_id(grown), broken)
    with pytest.raises(InvalidInput):
        run_scheduled(grown.root, "air.flights", "COMPACT", scheduled=AT)
    [run] = runs_of(grown.store.table(table_id(grown)))
    assert run.status == "FAILED" and "min_files" in run.reason


def test_the_command_line(grown: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"--root={grown.root}", "--table=air.flights", "--service=COMPACT", f"--scheduled={AT}"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "SUCCEEDED"
    assert main([f"--root={grown.root}", "--table=air.flights", "--service=CLUSTER"]) == 1
    assert "error: table " in capsys.readouterr().err
