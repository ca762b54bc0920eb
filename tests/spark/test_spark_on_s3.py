"""Writes and streams of a Spark session into a lake on S3, whose state is in DynamoDB: with kills, and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.errors import Refused
from tests.spark.sessions import Kill, collect_files, files_left, kill_at_stops, kill_driver_at_stop, run
from tests.spark.test_kill_driver import at, stream, write
from tests.spark.test_writes import keyed, rows_in
from tests.spark.writes import Stream, Write, batch_rows
from tests.tables.lakes import Lake, flights, sorted_rows


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Lake:
    """An empty instance on S3; files of sources are in a folder."""
    return Lake(tmp_path, on_s3)


@pytest.mark.spark
@pytest.mark.own_session
def test_spark_writes_to_s3(lake: Lake) -> None:
    """Each mode, a stream of two batches, and two jobs whose commits are killed, of which one is run again."""
    lake.table()
    again = write(lake, flights(20, 60), "again")
    steps = [
        write(lake, flights(40), "append"),
        write(lake, flights(40), "append"),  # is done
        write(lake, flights(40, 20), "upsert", "upsert"),
        at(write(lake, flights(20, 500), "aborted"), "spark.commit.checked"),
        at(again, "tables.commit.after-lance"),
        again,
        stream(lake, flights(20, 70), flights(20, 90), upsert=True),
    ]
    ended = kill_at_stops(lake, steps, {3: Kill(), 4: Kill()})
    assert [number for number, each in enumerate(ended) if each != "ended"] == [3, 4], ended
    assert rows_in(lake) == keyed(flights(110))
    assert not files_left(lake) and not lake.open().opened.state.intents
    assert run(lake, [write(lake, flights(9, 200), "overwrite", "overwrite")]) == ["ended"]
    assert rows_in(lake) == sorted_rows(flights(9, 200)) and not files_left(lake)


@pytest.mark.spark
@pytest.mark.own_session
@pytest.mark.parametrize(
    "point",
    [
        pytest.param("spark.task.file-noted", marks=pytest.mark.slow),
        "tables.commit.after-lance",
        pytest.param("tables.commit.before-lance", marks=pytest.mark.slow),
        pytest.param("tables.commit.after-state", marks=pytest.mark.slow),
    ],
)
def test_a_stream_into_s3_whose_driver_is_killed_resumes(lake: Lake, point: str) -> None:
    lake.table()
    step = stream(lake, flights(40), flights(40, 40))
    kill_driver_at_stop(lake, [at(step, point)])
    assert run(lake, [step]) == ["ended"]
    assert rows_in(lake) == sorted_rows(flights(80))
    assert not files_left(lake) and not lake.open().opened.state.intents


@pytest.mark.full
def test_the_halves_of_writes_on_s3(lake: Lake) -> None:
    """Without Spark: each mode, a batch that comes twice, what is aborted, and attempts that do not count."""
    lake.table()
    for _ in range(2):
        Write(lake, batch_rows(0, 40), job_id="a").run()
    attempts = Write(lake, batch_rows(20, 40), upsert=True)
    attempts.attempt(1)
    attempts.run()
    stream_ = Stream(lake)
    for _ in range(2):
        stream_.run(0, *batch_rows(60, 20))
    assert rows_in(lake) == sorted_rows(flights(80)) and not files_left(lake)
    aborted = Write(lake, batch_rows(80, 20))
    aborted.writer.abort([aborted.attempt(0), None])
    with pytest.raises(Refused, match="keys are in more than one of the rows"):
        Write(lake, [flights(12, 5), flights(12, 15)], upsert=True).run()
    assert rows_in(lake) == sorted_rows(flights(80)) and not files_left(lake)
    Write(lake, [flights(20)]).attempt(0)  # its driver is killed
    assert files_left(lake)
    collect_files(lake)
    Write(lake, [flights(7, 100)], overwrite=True).run()
    assert rows_in(lake) == sorted_rows(flights(7, 100)) and not files_left(lake)
