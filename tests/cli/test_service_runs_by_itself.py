"""What runs services without being told each time: `deployer agent`, `service run --all`, and `service check`."""

from __future__ import annotations

import json
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from deployer.cli.commands.agent.command import obeyed
from deployer.runs.records import queue_run, start_run
from deployer.services.agent.agent import Agent, Settings
from deployer.state import open_store
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run, table

FLIGHTS, PLANES = "air.flights", "air.planes"


SERVICES = "services:\n  compact: {trigger: {commits: 2}}\n  clean: {trigger: {commits: 50}}\n"


def load() -> None:
    Path("rows.csv").write_text("id,delay\n1,5\n2,6\n", encoding="utf-8")
    for _ in range(3):
        run("ingest", FLIGHTS, "rows.csv", "--no-services")


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of two tables with the same services, flights has three loads and planes none."""
    folder = applied_project(
        tmp_path / "project",
        {
            "demo.yaml": INSTANCE,
            **{f"{each}.yaml": table(each, "delay: int32", more=SERVICES) for each in ("flights", "planes")},
        },
        load,
    )
    monkeypatch.chdir(folder)
    return folder


def fail(project: Path, name: str, reason: str) -> None:
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name(name)
        assert entry is not None
        run = queue_run(store, entry.table_id, "CLEAN", cause="a test")
        start_run(store, entry.table_id, run.run_id).finish("FAILED", reason=reason)


def test_all_that_is_due_is_run(applied: Path, deployer: Deployer) -> None:
    planned = deployer("service", "run", "--all", "--dry-run")
    assert (planned.code, planned.out) == (0, "air.flights COMPACT: 3 commits\n1 run; nothing was run\n")
    named = deployer("service", "run", "--all", "clean", "--dry-run", "--json").json["would_run"]
    assert [(each["table"], each["service"]) for each in named] == [(FLIGHTS, "CLEAN"), (PLANES, "CLEAN")]
    assert deployer("service", "pause", PLANES, "clean").code == 0
    left = deployer("service", "run", "--all", "clean", "--dry-run")
    assert (
        "air.flights CLEAN: the table has it" in left.out and "air.planes CLEAN is left out: it is paused" in left.err
    )
    ran = deployer("service", "run", "--all")
    assert (ran.code, "3 → 1 file" in ran.out) == (0, True)
    [run] = deployer("service", "runs", FLIGHTS, "--json").json["runs"]
    assert (run["status"], run["cause"]) == ("SUCCEEDED", "trigger: 3 commits")
    assert deployer("service", "run", "--all").out == "nothing is due\n"
    done = deployer("service", "run", "--all", "CLEAN", "-o", "older_than=0h", "--json").json["runs"]
    assert [(each["table"], each["status"]) for each in done] == [(FLIGHTS, "SUCCEEDED")]


def test_the_agent_runs_what_is_due_once(applied: Path, deployer: Deployer) -> None:
    ran = deployer("agent", "--once", "--json")
    events = [json.loads(line) for line in ran.err.splitlines()]
    assert (ran.code, ran.out) == (0, "")
    assert [each["event"] for each in events] == ["watching", "started", "ended", "stopped"]
    assert (events[2]["table"], events[2]["status"], events[2]["after"]["files"]) == (FLIGHTS, "SUCCEEDED", 1)
    again = deployer("agent", "--once", "--root", str(applied / "lakes" / "demo"))
    assert again.code == 0 and "stopped; runs that ended: none" in again.err


def test_what_is_not_well_is_checked_and_listed(applied: Path, deployer: Deployer) -> None:
    ran = deployer("service", "check")
    assert (ran.code, ran.out) == (0, "4 services of 2 tables: none is overdue, none failed last\n")
    fail(applied, PLANES, "the disk is full")
    late = deployer("service", "check", "--grace", "0s")
    assert late.code == 2
    first, second = late.out.splitlines()
    assert (
        first.startswith("air.flights COMPACT: OVERDUE: its condition has been true since") and "it never ran" in first
    )
    assert second.startswith("air.planes CLEAN: FAILED: its last run failed at") and "the disk is full" in second
    [problem] = deployer("service", "check", "planes", "--json").json["problems"]
    assert (problem["table"], problem["service"], problem["status"]) == (PLANES, "CLEAN", "FAILED")
    assert deployer("service", "check", FLIGHTS).code == 0  # in its grace
    listed = {(each["table"], each["service"]): each for each in deployer("service", "list", "--json").json["services"]}
    assert listed[FLIGHTS, "COMPACT"]["status"] == "DUE" and listed[FLIGHTS, "COMPACT"]["due"] == "3 commits"
    assert listed[PLANES, "CLEAN"]["status"] == "FAILED" and listed[PLANES, "COMPACT"]["status"] == "OK"
    assert "FAILED" in deployer("service", "list").out


@pytest.mark.parametrize(("number", "once"), [(signal.SIGTERM, "draining"), (signal.SIGINT, "stopping")])
def test_signals_end_the_agent(number: signal.Signals, once: str, applied: Path, deployer: Deployer) -> None:
    """Told by the log as soon as a run has started, which SIGTERM lets end and Ctrl-C stops."""
    told: list[str] = []

    def tell(event: str, **_: object) -> None:
        told.append(event)
        if event == "started":
            os.kill(os.getpid(), number)

    before = signal.getsignal(signal.SIGINT)
    with closing(open_store(str(applied / "lakes" / "demo"))) as store:
        agent = Agent(store, str(applied / "lakes" / "demo"), tell, Settings())
        with obeyed(agent):
            assert agent.watch() is (once == "draining")
    assert once in told and signal.getsignal(signal.SIGINT) is before
    [run] = deployer("service", "runs", FLIGHTS, "--json").json["runs"]
    assert run["status"] == ("SUCCEEDED" if once == "draining" else "CANCELLED")  # also when it had not begun


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("service", "run"), "TABLE and SERVICE are missing"),
        (("service", "run", FLIGHTS), "TABLE and SERVICE are missing"),
        (("service", "run", "--all", FLIGHTS, "clean"), "--all is for every table"),
        (("service", "run", "--all", "klean"), "'klean' is not a valid service"),
        (("service", "run", "--all", "-o", "keep=1"), "options belong to one service"),
        (("service", "run", FLIGHTS, "compact", "--dry-run"), "CLUSTER, CLEAN and EXPIRE have one"),
        (("service", "check", "air.flihgts"), "did you mean 'air.flights'?"),
        (("service", "check", "--grace", "soon"), "--grace: 'soon' is not a valid duration"),
        (("agent", "--every", "0s"), "--every: the time between two checks is too short"),
        (("agent", "--every", "x"), "--every: 'x' is not a valid duration"),
        (("agent", "--listen", "here"), "--listen: 'here' is not a valid address"),
        (("agent", "--root", "lakes/none", "--once"), "there is no state store"),
        (("agent", "--root", "lakes/demo", "--project", "."), "--root is for where there is no project"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], said: str, project: Path, deployer: Deployer) -> None:
    if arguments[1] == "check":
        assert deployer("up", "--yes").code == 0
    ran = deployer(*arguments)
    assert ran.code == 1 and said in ran.err
