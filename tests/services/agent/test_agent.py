"""Agents with real processes: each run is done once, whatever is killed or asked to end."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from deployer.runs.records import queue_run, start_run
from deployer.services.agent.agent import Settings
from deployer.state.model.services import Run
from tests.services.agent.conftest import Watched, until
from tests.tables.lakes import flights, sorted_rows

POINT = "DEPLOYER_FAILPOINT"


def compacts(watched: Watched) -> list[Run]:
    return [run for run in watched.state.runs.values() if run.service == "COMPACT"]


def test_of_two_agents_one_does_each_run(watched: Watched) -> None:
    watched.attach("COMPACT", {"commits": 3})
    watched.attach("CLEAN", {"schedule": "0 3 * * *"})
    late = 25 * 3600.0  # the schedule has asked since
    agents = [watched.agent(later=late) for _ in range(2)]
    for agent in agents:
        agent.look()  # both decide on the same state
    threads = [threading.Thread(target=agent.once) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runs = {run.service: run for run in watched.state.runs.values()}
    assert len(watched.state.runs) == 2
    assert (runs["COMPACT"].status, runs["COMPACT"].cause) == ("SUCCEEDED", "trigger: 4 commits")
    assert (runs["CLEAN"].status, runs["CLEAN"].cause) == ("SKIPPED", "schedule")
    assert watched.state.files.count == 1
    # By clocks a day ahead, what one has just queued seems forgotten, and the other may take it up: both tell then.
    ended = [about for about in watched.events("ended") if about["service"] == "COMPACT"]
    assert {(each["run"], each["before"]["files"], each["after"]["files"]) for each in ended} == {
        (runs["COMPACT"].run_id, 4, 1)
    }
    assert watched.agent(later=late).once()  # nothing is left to do
    assert len(watched.state.runs) == 2


@pytest.mark.parametrize(("point", "files"), [("after-lance", 1), ("before-lance", 4)])
def test_a_dead_run_is_ended_and_leaves_nothing_under_way(
    point: str, files: int, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's process is killed with its agent, after or before it told Lance of what it had written."""
    watched.attach("COMPACT", {"commits": 3})
    monkeypatch.setenv(POINT, f"services.replace.{point}")
    watched.agent().once()
    monkeypatch.delenv(POINT)
    [run] = compacts(watched)
    assert (run.status, watched.state.files.count, len(watched.state.intents)) == ("RUNNING", 4, 1)
    watched.agent(later=30).look()
    assert compacts(watched) == [run]  # its lease is not over
    agent = watched.agent(later=90)
    agent.look()
    [dead] = compacts(watched)
    assert dead.status == "FAILED" and "is considered dead" in dead.reason
    assert (agent.dead, watched.events("dead")[0]["run"]) == (1, run.run_id)
    assert watched.state.files.count == files and not watched.state.intents
    assert sorted_rows(watched.lake.open().scan().to_table()) == sorted_rows(flights(40))


@pytest.mark.parametrize("ends", ["waits", "stops"])
def test_an_agent_that_is_asked_to_end(ends: str, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.attach("COMPACT", {"commits": 3})
    monkeypatch.setenv(POINT, "services.replace.before-lance=stop")  # the run stands still until it is continued
    agent = watched.agent()
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(agent.watch()))
    thread.start()
    until(lambda: any(run.status == "RUNNING" for run in compacts(watched)) and bool(watched.state.intents))
    agent.end()
    until(lambda: bool(watched.events("draining")))
    if ends == "stops":
        agent.end()
        until(lambda: bool(watched.events("stopping")))
    pid = watched.events("started")[0]["pid"]
    until(lambda: _is_stopped(pid))
    os.kill(pid, signal.SIGCONT)
    thread.join()
    assert answers == [ends == "waits"]
    [run] = compacts(watched)
    if ends == "waits":
        assert (run.status, watched.state.files.count) == ("SUCCEEDED", 1)
    else:
        assert (run.status, run.reason) == ("CANCELLED", "interrupted")
    assert sorted_rows(watched.lake.open().scan().to_table()) == sorted_rows(flights(40))


def _is_stopped(pid: int) -> bool:
    import subprocess

    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.startswith("T")


def test_a_queued_run_that_nobody_started_is_taken_up(watched: Watched) -> None:
    run = queue_run(watched.lake.store, watched.table_id, "COMPACT", cause="on demand", needs_service=False)
    watched.agent(later=30).once()
    assert watched.state.runs[run.run_id].status == "QUEUED"  # whoever queued it may start it yet
    excluding = queue_run(watched.lake.store, watched.table_id, "CLUSTER", cause="test", needs_service=False)
    held = start_run(watched.lake.store, watched.table_id, excluding.run_id, lease=600)
    watched.agent(later=90).once()
    assert watched.state.runs[run.run_id].status == "QUEUED"  # it may not run beside that
    held.finish("FAILED", reason="a test")
    watched.agent(later=90).once()
    assert watched.state.runs[run.run_id].status == "SUCCEEDED"


def test_a_run_whose_process_never_begins_is_failed_in_the_end(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.attach("COMPACT", {"commits": 3})
    monkeypatch.setattr("sys.executable", "/bin/false")
    agent = watched.agent(later=120, settings=Settings(every=0.01))
    thread = threading.Thread(target=agent.watch)
    thread.start()
    until(lambda: any(run.status == "FAILED" for run in compacts(watched)))
    agent.end()
    thread.join()
    assert "its process ended with 1 before the run began" in compacts(watched)[0].reason
    assert len(watched.events("not started")) >= 2
