"""The local Spark session: quiet, on loopback, without a trace in the working folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deployer.compute.local import LocalCluster, local_session, settings
from deployer.compute.progress import Tasks, job_group
from deployer.errors import InvalidInput

PROGRAM = """
import sys, pathlib
from deployer.compute import local
session = local.local_session(local.LocalCluster(cores=1, memory="512m"))
assert local.local_session() is session
print(session.range(0, 10, 1, 2).mapInArrow(lambda batches: batches, "id long").count())
print(session.conf.get("spark.driver.bindAddress"), session.conf.get("spark.sql.session.timeZone"))
folder = local._running.folder
local.stop_session()
print(folder.exists())
"""


@pytest.mark.spark
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
    told: list[Tasks] = []
    with job_group(spark, "counted", "counting", told.append):
        assert spark.range(0, 100, 1, 4).mapInArrow(lambda batches: batches, "id long").count() == 100
    assert told and told[-1].done <= told[-1].total
    assert [each.done for each in told] == sorted(each.done for each in told)
    with pytest.raises(KeyboardInterrupt), job_group(spark, "stopped", "stopping"):
        raise KeyboardInterrupt
    assert local_session() is spark and spark.range(3).count() == 3


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
