"""The local Spark session: quiet, on loopback, without a trace in the working folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.compute.spark.local import LocalCluster, java_options, local_session, settings
from deployer.compute.spark.progress import Tasks, job_group, run_job
from deployer.errors import DeployerError, InvalidInput
from deployer.runs.rewriting.executor import collected

PROGRAM = """
import sys, pathlib
from deployer.compute.spark import local
session = local.local_session(local.LocalCluster(cores=1))
assert local.local_session() is session
print(session.range(0, 10, 1, 2).mapInArrow(lambda batches: batches, "id long").count())
print(session.conf.get("spark.driver.bindAddress"), session.conf.get("spark.sql.session.timeZone"))
folder = local._running.folder
local.stop_session()
print(folder.exists())
"""


@pytest.mark.spark
@pytest.mark.own_session
def test_a_session_without_java_on_path_leaves_no_trace(tmp_path: Path) -> None:
    for name in ("work", "home", "tmp"):
        (tmp_path / name).mkdir()
    environment = {"HOME": str(tmp_path / "home"), "PATH": "/nowhere", "TMPDIR": str(tmp_path / "tmp")}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ran.stdout.splitlines() == ["10", "127.0.0.1 UTC", "False"], ran.stderr
    assert ran.stderr == ""
    assert list((tmp_path / "work").iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.spark
def test_progress_is_told_and_groups_are_cancelled(spark: Any) -> None:
    reported: list[Tasks] = []
    with job_group(spark, "counted", "counting", reported.append):
        assert spark.range(0, 100, 1, 4).mapInArrow(lambda batches: batches, "id long").count() == 100
    assert reported and reported[-1].done <= reported[-1].total
    assert [each.done for each in reported] == sorted(each.done for each in reported)
    with pytest.raises(KeyboardInterrupt), job_group(spark, "stopped", "stopping"):
        raise KeyboardInterrupt
    assert local_session() is spark and spark.range(3).count() == 3


@pytest.mark.spark
def test_a_failed_job_reports_its_cause(spark: Any) -> None:
    def fill(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield next(batches)
        raise OSError(28, "No space left on device", "/lake/t.lance/data")

    frame = spark.range(0, 10, 1, 2).mapInArrow(fill, "id long")
    with pytest.raises(DeployerError) as raised:
        collected(spark, frame, "/lake/t.lance", 10, lambda _: None)
    assert str(raised.value) == (
        "/lake/t.lance: the Spark job failed: [Errno 28] No space left on device: '/lake/t.lance/data'; free some disk "
        "space, and run it again"
    )


@pytest.mark.spark
def test_an_interrupt_ends_the_job_and_not_the_session(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        time.sleep(60)
        yield from batches

    frame = spark.range(0, 2, 1, 2).mapInArrow(wait, "id long")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores SIGINT
    started = time.monotonic()
    timer = threading.Timer(3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_job(spark, "interrupted", "waiting", frame.collect)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 30 and spark.range(3).count() == 3
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, LocalCluster()), ({"cores": 2, "memory": "4g"}, LocalCluster(2, "4g"))],
    ids=["defaults", "given"],
)
def test_options_of_a_cluster(options: dict[str, object], expected: LocalCluster, tmp_path: Path) -> None:
    assert LocalCluster.of(options) == expected
    assert settings(expected, tmp_path)["spark.driver.memory"] == expected.memory


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"core": 2}, "has no option 'core'"),
        ({"cores": 0}, "`cores` of a local cluster is 0"),
        ({"cores": True}, "is True"),
    ],
)
def test_options_that_are_none(options: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        LocalCluster.of(options)


@pytest.mark.parametrize(
    ("memory", "environ", "expected"),
    [
        ("2g", {}, ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]),
        ("2g", {"JAVA_TOOL_OPTIONS": "-Xss2m -XX:+UseZGC"}, ["-XX:TieredStopAtLevel=1"]),
        ("2g", {"JAVA_TOOL_OPTIONS": "-XX:+UseStringDeduplication"}, ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]),
        ("16g", {}, []),
    ],
    ids=["short", "another collector", "another option", "large"],
)
def test_java_of_a_session(memory: str, environ: dict[str, str], expected: list[str]) -> None:
    assert java_options(LocalCluster(memory=memory), environ) == expected
