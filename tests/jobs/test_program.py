"""What the programs of all jobs share: outcomes told below the root, and a word from outside that ends the work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deployer.compute.jobs.status import JobStatus, ask_to_end, read_status
from deployer.errors import DeployerError, Interrupted, Refused
from deployer.platform.system.progress import OnProgress, Progress
from deployer.tables.ingest.files.model import Format, ReadOptions
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.ingest.rows.selects import Select
from spark_jobs import ingest as ingest_program
from spark_jobs import program
from spark_jobs.program import run_program

HALF = Progress("loading", 1, 2, "tasks", 10)


def test_progress_and_result_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = str(tmp_path)

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        on_progress(HALF)
        assert read_status(root, "key") == JobStatus(HALF)
        on_progress(Progress("loading", 2, 2, "tasks"))  # too soon after the other
        assert read_status(root, "key") == JobStatus(HALF)
        return {"rows": 20}

    assert run_program(root, "key", work) == 0
    assert read_status(root, "key") == JobStatus(result={"rows": 20})
    assert capsys.readouterr().out == '{"rows": 20}\n'


def test_without_a_key_nothing_is_told(tmp_path: Path) -> None:
    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        on_progress(HALF)
        return {}

    assert run_program(str(tmp_path), None, work) == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (Refused("bad rows", where="table/a.b"), 3, "table/a.b: bad rows"),
        (KeyboardInterrupt(), 130, "interrupted: the table is unchanged"),
    ],
)
def test_errors_are_told(
    raised: BaseException, code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        raise raised

    assert run_program(str(tmp_path), "key", work) == code
    error = read_status(str(tmp_path), "key").error
    assert error is not None and (str(error), error.exit_code) == (message, code)
    assert message in capsys.readouterr().err


def test_a_bug_is_told_and_traced(tmp_path: Path) -> None:
    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ZeroDivisionError):
        run_program(str(tmp_path), "key", work)
    assert "the job failed: ZeroDivisionError: by zero" in str(read_status(str(tmp_path), "key").error)


def test_work_ends_when_somebody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "INTERVAL", 0.0)
    root, steps = str(tmp_path), []

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        for step in range(3):
            on_progress(HALF)
            steps.append(step)
            if step == 1:
                ask_to_end(root, "other")
                ask_to_end(root, "key")
        return {}

    assert run_program(root, "key", work) == Interrupted.exit_code
    assert steps == [0, 1] and "the job was cancelled" in str(read_status(root, "key").error)


def test_work_goes_on_when_nobody_can_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise DeployerError("no access", where="s3://b")

    monkeypatch.setattr(program, "write_status", fail)

    def work(on_progress: OnProgress) -> Mapping[str, Any]:
        on_progress(HALF)
        return {"rows": 1}

    assert run_program(str(tmp_path), "key", work) == 0
    printed = capsys.readouterr()
    assert printed.out == '{"rows": 1}\n' and "the status of the job cannot be stored: s3://b: no access" in printed.err


REQUESTS = {
    "plain": IngestRequest(("s3://b/a.csv",), job_id="monday"),
    "all": IngestRequest(
        ("-a.csv", "--b.csv"),
        Format.CSV,
        ReadOptions(("", "-", "--null", "NA"), "-", "cp1252", False, ((None, "%d=%m=%Y"), ("at", "%d.%m.%Y")), "UTC"),
        True,
        "s3://b/bad.jsonl",
        "--job",
        "spark",
        False,
        missing_as_null=True,
        renames=(("a=b", "c"), ("-", "d")),
        selects=(Select("e", "upper(f) || ' AS '"), Select("Total Amount", "-1")),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_goes_through_the_command_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[object] = []

    class Seen(Exception):
        pass

    def run(root: str, table: str, request: IngestRequest, *_: object, **__: object) -> Any:
        found.extend((root, table, request))
        raise Seen

    monkeypatch.setattr(ingest_program, "run", run)
    with pytest.raises(Seen):
        ingest_program.main(ingest_program.arguments_of("s3://b/lake", "air.flights", REQUESTS[name]))
    assert found == ["s3://b/lake", "air.flights", REQUESTS[name]]
