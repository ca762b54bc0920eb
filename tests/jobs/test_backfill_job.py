"""The job that computes a column, as a program of its own."""

from __future__ import annotations

import json
import shlex

import pytest

from deployer.cli.summaries.column_backfill import print_backfill, result_from
from deployer.columns.backfill.backfill import BackfillJob
from deployer.columns.backfill.request import checked_backfill
from deployer.errors import InvalidInput, Refused
from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.table import connect
from spark_jobs.backfill import arguments_of, main
from tests.columns.backfill.conftest import TRUSTED, lake  # noqa: F401 (fixture)
from tests.columns.rows import values
from tests.tables.lakes import Lake

BY_NAME = TrustedFunctions.allowed(TRUSTED)


@pytest.mark.parametrize("engine", ["auto", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_command_line_prints_its_result(
    engine: str,
    lake: Lake,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = checked_backfill("score", engine=engine, task_size=4)
    arguments = arguments_of(lake.root, "air.flights", request, BY_NAME, "monday", "nightly")
    assert main([*arguments, "--cores=2", "--memory=1g"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["table"], result["rows"], result["stats"]["fragments"]) == ("air.flights", 30, 3)
    assert result["engine"] == {"auto": "driver"}.get(engine, engine)
    print_backfill("air.flights", result_from(result))
    assert capsys.readouterr().out.startswith("air.flights: computed score of 30 rows in 3 fragments")
    assert main([*arguments]) == 0
    assert json.loads(capsys.readouterr().out)["already_done"]
    with connect(lake.root) as connection:
        assert values(connection.open_table("flights"), "score") == {i: i * 2 + 1.0 for i in range(30)}


def test_errors_are_those_of_the_backfill(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    arguments = arguments_of(lake.root, "flights", checked_backfill("score"), NONE_TRUSTED, "monday", "nightly")
    assert main([*arguments]) == Refused.exit_code
    assert "not trusted here, so it does not run" in capsys.readouterr().err
    arguments = arguments_of(lake.root, "flights", checked_backfill("rating"), BY_NAME, "monday", "nightly")
    assert main([*arguments]) == InvalidInput.exit_code
    assert "column rating is not computed" in capsys.readouterr().err


def test_all_that_a_request_has_is_in_the_command_line(
    lake: Lake,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = checked_backfill(
        "km",
        where="id > -1 and name <> 'it''s'",
        read_version=2,
        num_frags=5,
        skip_frags=1,
        task_size=7,
        concurrency=3,
        commit_granularity=None,
        engine="driver",
    )
    trusted = TrustedFunctions.allowed(TRUSTED, authors=["-ann"], all_packages=True)
    seen: list[BackfillJob] = []

    def backfill(job: BackfillJob, *_: object) -> None:
        seen.append(job)
        raise InvalidInput("seen")

    monkeypatch.setattr("spark_jobs.backfill.backfill", backfill)
    arguments = arguments_of(lake.root, "air.flights", request, trusted, "monday", "nightly")
    assert main(shlex.split(shlex.join(arguments))) == InvalidInput.exit_code
    [job] = seen
    assert (job.request, job.job_id) == (request, "monday")
    assert {f"--trust-function={each}" for each in TRUSTED} | {"--trust-author=-ann", "--trust-udfs"} <= {*arguments}
