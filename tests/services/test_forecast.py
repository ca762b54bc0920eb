"""What the next run of a service would do is what it then does; and how healthy a table is beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from deployer.platform.files.json_values import JSON
from deployer.services.api.attachments import create_service
from deployer.services.registry import forecast, run_service
from deployer.services.triggers.health import services_report
from deployer.state.model.services import Service, ServiceKind
from deployer.tables.append import open_appender
from tests.tables.lakes import Lake, flights


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Four loads of ten rows, of which the last ten flights were deleted."""
    lake = Lake(tmp_path)
    lake.table(splits=())
    appender = open_appender(lake.root, "flights")
    for number in range(4):
        appender.append(flights(10, 10 * number))
    appender.close()
    lance.dataset(lake.open().opened.location).delete("delay >= 35")
    return lake


def attach(lake: Lake, kind: ServiceKind, options: dict[str, JSON]) -> Callable[[], str]:
    """What its next run would do, asked when it is called."""
    service = Service(kind, "AUTOMATIC", {"commits": 1}, options)
    create_service(lake.store, lake.open().opened.entry.table_id, service)
    return lambda: forecast(lake.open().opened, service.kind)


@pytest.mark.parametrize(
    ("kind", "options", "before", "after"),
    [
        ("COMPACT", {}, "4 files become about 1: 36 rows rewritten, ", "nothing: no file is to be merged"),
        (
            "CLUSTER",
            {"columns": ["delay"]},
            "arranges by sort over delay: 4 of 4 files, 36 rows, ",
            "nothing: all files",
        ),
        ("CLEAN", {"older_than": "0h"}, "removes 5 versions", "nothing: no version is old enough"),
        ("AUTOSAVEPOINT", {}, "makes a savepoint", "nothing: nothing changed since savepoint auto-"),
        ("METASYNC", {"targets": [{"type": "directory"}]}, "publishes version 6", "version 6 is published"),
    ],
)
def test_a_run_does_what_was_foreseen(
    kind: ServiceKind, options: dict[str, JSON], before: str, after: str, lake: Lake
) -> None:
    text = attach(lake, kind, options)
    assert before in text()
    done = run_service(lake.root, "flights", kind)
    assert done.status == "SUCCEEDED"
    assert after in text()


def test_what_cannot_be_foreseen_says_why(lake: Lake) -> None:
    assert attach(lake, "CLUSTER", {"columns": ["dely"]})() == "unknown: there is no column 'dely' to cluster by"


def test_health_is_told(lake: Lake) -> None:
    attach(lake, "CLUSTER", {"columns": ["delay"]})
    found = services_report(lake.open().opened, round(time.time() * 1000))
    assert (found.health.files, found.health.small_files, found.health.deleted) == (4, 4, 0.1)
    assert found.health.meets is not None and found.health.meets > 2 and found.health.depth is None
    assert [each.status.due for each in found.services] == ["5 commits"]
    run_service(lake.root, "flights", "CLUSTER")
    found = services_report(lake.open().opened, round(time.time() * 1000))
    assert (found.health.files, found.health.deleted, found.health.meets) == (1, 0, 0)
    assert found.health.depth is not None and found.health.depth[0] == 1
    assert [run.status for run in found.runs] == ["SUCCEEDED"]
