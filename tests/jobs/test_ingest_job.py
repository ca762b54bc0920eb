"""The ingest job as a program of its own, and as a Spark job that ends early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from deployer.errors import InvalidInput, Refused
from deployer.platform.system.progress import Progress
from deployer.tables.ingest.spark import murmur3, partition_keys
from spark_jobs.ingest import main
from tests.tables.lakes import Lake, flights


def test_the_command_line_prints_its_result(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.table()
    path = lake.text("a.csv", "carrier;flight;delay\nAA;1;NA\nAA;x;1\n")
    arguments = ["--root", lake.root, "--table", "flights", str(path)]
    options = [
        "--delimiter",
        ";",
        "--null-value",
        "NA",
        "--null-value",
        "",
        "--bad-rows",
        str(lake.folder / "bad.jsonl"),
        "--missing-as-null",
    ]
    assert main([*options, *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["table"], result["rows"], result["bad_rows"]) == ("air.flights", 1, 1)
    assert main(["--delimiter", ",", *arguments]) == InvalidInput.exit_code
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.spark
def test_progress_tells_tasks_and_rows(lake: Lake, spark: Any) -> None:
    from deployer.tables.ingest.request import IngestRequest
    from spark_jobs.ingest import run

    lake.table()
    progress: list[Progress] = []
    run(
        lake.root,
        "flights",
        IngestRequest((str(lake.file(flights(100))),), engine="spark"),
        on_progress=progress.append,
    )
    loading = [each for each in progress if each.doing == "loading"]
    assert loading[-1].rows == 100
    assert 0 < loading[-1].done <= (loading[-1].total or 0)


@pytest.mark.spark
def test_errors_inside_tasks_come_out_in_words(lake: Lake, spark: Any) -> None:
    lake.table()
    good = '{"carrier": "AA", "flight": 1}\n' * 2000
    path = lake.text("a.jsonl", good + '{"carrier": "AA", "flight": 2, "dely": 1}\n')
    with pytest.raises(InvalidInput, match="did you mean 'delay'"):
        lake.ingest(path, engine="spark")


@pytest.mark.spark
def test_a_refusal_is_the_same_with_spark(lake: Lake, spark: Any) -> None:
    lake.table()
    path = lake.text("a.csv", "carrier,flight\n" + "AA,x\n" * 50)
    message = []
    for engine in ("driver", "spark"):
        with pytest.raises(Refused) as raised:
            lake.ingest(path, engine=engine, missing_as_null=True)
        message.append(str(raised.value))
    assert message[0] == message[1] and "50 rows cannot be loaded" in message[0]


@pytest.mark.spark
@pytest.mark.parametrize("count", [1, 2, 7, 16, 200])
def test_partition_keys_are_where_spark_puts_them(count: int, spark: Any) -> None:
    from pyspark.sql import functions as f

    keys = partition_keys(count)
    frame = spark.createDataFrame([(key,) for key in keys], "key int")
    rows = frame.select(
        "key", f.hash("key").alias("hash"), f.pmod(f.hash("key"), f.lit(count)).alias("place")
    ).collect()
    assert {row["key"]: row["hash"] for row in rows} == {key: murmur3(key) for key in keys}
    assert [row["place"] for row in sorted(rows, key=lambda row: keys.index(row["key"]))] == list(range(count))


@pytest.mark.spark
@pytest.mark.own_session
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0, 5], ids=["while Spark starts", "later"])
def test_an_interrupt_reports_what_became_of_the_load(
    seconds: int, stop: signal.Signals, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.table()
    path = lake.file(flights(200_000))
    temporary = lake.folder / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    arguments = ["--root", lake.root, "--table", "flights", "--engine", "spark", "--job-id", "stopped", str(path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "spark_jobs.ingest", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not any("java" in line for line in _processes_naming(str(temporary))):
        time.sleep(0.05)
    time.sleep(seconds)  # at whatever moment it is then, the outcome has to be all or nothing
    os.kill(process.pid, stop)
    _, err = process.communicate(timeout=300)
    assert list(temporary.iterdir()) == []
    for _ in range(3000):
        if not (running := _processes_naming(str(temporary))):
            break
        time.sleep(0.1)
    assert not running
    table = lake.open()
    assert table.count() in (0, 200_000) and process.returncode in (0, 128 + stop)
    assert "Traceback" not in err
    if process.returncode:
        loaded = (
            "it was loaded as version 2" if table.count() else "nothing was loaded; run it again with --job-id stopped"
        )
        assert err == f"error: table/air.flights: interrupted; {loaded}\n"
    assert not table.opened.state.intents
    assert lake.ingest(path, job_id="stopped").rows + table.count() == 200_000


def _processes_naming(text: str) -> list[str]:
    """Command lines of running processes that mention the text, other than the asking one."""
    reported = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in reported.splitlines() if text in line]
