"""Results of jobs go through JSON and come out as they were."""

from __future__ import annotations

import datetime as dt
import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.cli.remote.service import show
from deployer.cli.summaries.service_run import print_done
from deployer.platform.files.dataclass_json import from_asdict
from deployer.runs.remote import service_job
from deployer.services.api.attachments import create_service
from deployer.services.registry import run_service
from deployer.state.model.services import Service
from deployer.tables.append import open_appender
from spark_jobs.service import main
from tests.tables.lakes import Lake, flights


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.date32())])
    opened = made.table(schema, ("id",), splits=()).opened
    made.store.declare(opened.entry.table_id, {"retention": {"column": "day", "keep": "400d"}})
    with closing(open_appender(made.root, "air.flights")) as appender:
        for number in range(5):
            appender.append(pa.table({"id": [number], "day": [dt.date(2001, 1, 1)]}, schema=schema))
    return made


@pytest.mark.parametrize("service", ["COMPACT", "CLUSTER", "CLEAN", "INGEST", "EXPIRE", "BACKFILL", "AUTOSAVEPOINT"])
def test_what_a_service_came_to(service: str, lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] | None = {"dry_run": True} if service == "CLEAN" else None
    if service == "INGEST":
        options = {"files": f"{lake.folder}/landing/*.csv"}
        (lake.folder / "landing").mkdir()
        (lake.folder / "landing" / "a.csv").write_text("id,day\n7,2001-01-01\n", encoding="utf-8")
        (lake.folder / "landing" / "b.csv").write_text("id,day\nx,2001-01-01\n", encoding="utf-8")
    done = run_service(lake.root, "air.flights", service, options)
    again = from_asdict(type(done), json.loads(json.dumps(asdict(done), default=str)))
    assert again == done
    capsys.readouterr()
    print_done(done)
    here = capsys.readouterr()
    assert show({"service": service, **json.loads(json.dumps(asdict(done)))}, as_json=False) == 0
    assert capsys.readouterr() == here


def test_what_a_load_came_to(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table()
    result = lake.ingest(lake.file(flights(20)))
    assert (
        from_asdict(type(result), json.loads(json.dumps({**asdict(result), "services": []})), skip_unknown=True)
        == result
    )


def test_a_service_runs_at_once_by_its_program(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"min_files": 2}
    job = service_job(lake.root, "demo", "air.flights", "COMPACT", cluster="small", options=options, engine="driver")
    arguments = job.arguments
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["service"], told["status"], told["after"]["files"]) == ("COMPACT", "SUCCEEDED", 1)


def test_ingest_at_once_by_its_program_runs_what_is_due(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    table_id = lake.open().opened.entry.table_id
    create_service(lake.store, table_id, Service("COMPACT", "AUTOMATIC", {"small_files": 2}))
    (lake.folder / "landing").mkdir()
    (lake.folder / "landing" / "a.csv").write_text("id,day\n7,2001-01-01\n", encoding="utf-8")
    options = {"files": f"{lake.folder}/landing/*.csv"}
    job = service_job(lake.root, "demo", "air.flights", "INGEST", cluster="small", options=options, engine="driver")
    assert main(job.arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["service"], told["files"], told["rows"]) == ("INGEST", 1, 1)
    assert [(each["service"], each["status"]) for each in told["services"]] == [("COMPACT", "SUCCEEDED")]
    assert show(told, as_json=False) == 0
    assert "1 file loaded, 1 row" in capsys.readouterr().out
