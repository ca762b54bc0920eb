"""The job that loads columns, as a program of its own."""

from __future__ import annotations

import json
import shlex

import pytest

from deployer.cli.summaries.column_load import print_load, result_from
from deployer.columns.load.request import checked_request
from deployer.errors import InvalidInput
from spark_jobs.columns import arguments_of, main
from tests.columns.rows import SCHEMA, rows, source
from tests.tables.lakes import Lake


@pytest.fixture
def loaded(lake: Lake) -> Lake:
    """An instance with the table `air.flights`: rows 0 to 30."""
    from deployer.table import connect

    lake.table(SCHEMA, row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        connection.open_table("flights").add(rows(0, 30))
    return lake


@pytest.mark.parametrize("engine", ["auto", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_command_line_prints_its_result(engine: str, loaded: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    request = checked_request(str(loaded.file(source(range(30)))), "id", ["label", "place"], engine=engine)
    arguments = arguments_of(loaded.root, "air.flights", request, "monday")
    assert main([*arguments[:1], "--cores=2", "--memory=1g", *arguments[1:]]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["table"], result["stats"]["rows"], result["added"]) == ("air.flights", 30, ["label", "place"])
    assert result["engine"] == {"auto": "driver"}.get(engine, engine)
    print_load("air.flights", result_from(result), wrote_spec=True)
    shown = capsys.readouterr().out
    assert shown.startswith("air.flights: loaded label, place of 30 rows in 1 fragment")
    assert main([*arguments]) == 0
    assert json.loads(capsys.readouterr().out)["already_done"]


def test_an_error_is_that_of_the_load(loaded: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    request = checked_request(str(loaded.file(source(range(30)))), "name", ["label"])
    assert main([*arguments_of(loaded.root, "flights", request, "monday")]) == InvalidInput.exit_code
    assert "the source has no column name" in capsys.readouterr().err


def test_all_that_a_request_has_is_in_the_command_line(loaded: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    request = checked_request(
        ["-a.parquet", "b c.parquet"],
        "id",
        ["label", "-x"],
        source_format="parquet",
        on_missing="null",
        concurrency=3,
        checkpoint_size=10,
        min_checkpoint_size=5,
        max_checkpoint_size=20,
        checkpoint_interval_seconds=1.5,
        commit_granularity=4,
        engine="driver",
    )
    seen = []

    def load(_table: object, given: object, job_id: str, *_: object, **_more: object) -> None:
        seen.append((given, job_id))
        raise InvalidInput("seen")

    monkeypatch.setattr("spark_jobs.columns.load_columns", load)
    arguments = shlex.split(shlex.join(arguments_of(loaded.root, "air.flights", request, "monday")))
    assert main(arguments) == InvalidInput.exit_code
    assert seen == [(request, "monday")]
