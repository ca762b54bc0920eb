"""The services of datasets: an agent starts each once when its schedule fired, in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.catalog.datasets.declared.scheduled import ScheduledDatasets
from deployer.platform.system.clock import Clock
from deployer.services.agent.agent import Agent, Settings
from deployer.state import open_store
from tests.catalog.declared.conftest import DRIVES, ROOT, Deployer, declare, drives, record_drive

SERVED = DRIVES + "register: manual\nservices: {register: {schedule: '*/5 * * * *'}}\n"
HOUR = 3600.0


@pytest.fixture
def applied(project: Path, deployer: Deployer) -> Path:
    declare(project, SERVED)
    assert deployer("up", "--yes").code == 0
    return project


Once = Callable[[float], list[tuple[str, dict[str, Any]]]]


@pytest.fixture
def once() -> Once:
    """An agent that looks once, so many seconds later; returns what it reported."""

    def run(later: float) -> list[tuple[str, dict[str, Any]]]:
        reported: list[tuple[str, dict[str, Any]]] = []
        root = str(Path(ROOT).absolute())
        clock = Clock(now=lambda: round((time.time() + later) * 1000))

        def tell(event: str, **about: Any) -> None:
            reported.append((event, about))

        with closing(open_store(root)) as store:
            beside = ScheduledDatasets(store, root, tell, clock)
            assert Agent(store, root, tell, Settings(every=0.2), clock, beside).once()
        return reported

    return run


@pytest.mark.full
def test_what_is_due_is_done_once(applied: Path, once: Once) -> None:
    record_drive(applied, "one")
    assert once(0.0) == []  # it was declared a moment ago
    started, ended = once(HOUR)
    assert started[0] == "started"
    assert (started[1]["table"], started[1]["service"]) == ("dataset/drives", "register")
    assert (ended[0], ended[1]["status"]) == ("ended", "SUCCEEDED")
    assert drives().layers.rows == 1
    assert once(HOUR) == []
    assert [event for event, _ in once(2 * HOUR)] == ["started", "ended"]


@pytest.mark.full
def test_a_run_that_fails_says_why(applied: Path, once: Once) -> None:
    (applied / "recordings/bad.rrd").write_bytes(b"RRF2")
    _, ended = once(HOUR)
    assert ended[1]["status"] == "FAILED"
    assert "bad.rrd" in ended[1]["why"]


def test_of_two_agents_one_does_it(applied: Path) -> None:
    root, reported = str(Path(ROOT).absolute()), list[str]()
    late = Clock(now=lambda: round((time.time() + HOUR) * 1000))

    def tell(event: str, **about: Any) -> None:
        reported.append(event)

    with closing(open_store(root)) as one, closing(open_store(root)) as other:
        agents = [ScheduledDatasets(store, root, tell, late) for store in (one, other)]
        now = late.now()
        for agent in agents:
            agent.look(now)
        while any(map(len, agents)):
            for agent in agents:
                agent.reap()
            time.sleep(0.05)
    assert sorted(reported) == ["ended", "started"]


@pytest.mark.full
def test_services_are_no_difference_once_they_ran(applied: Path, once: Once, deployer: Deployer) -> None:
    once(HOUR)
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0
    declare(applied, DRIVES + "services: {maintain: {schedule: '0 3 * * *'}}\n")
    assert "services register at */5 * * * * → maintain at 0 3 * * *" in " ".join(deployer("preview").out.split())
    assert deployer("up", "--yes").code == 0
    assert [event for event, _ in once(25 * HOUR)] == ["started", "ended"]
