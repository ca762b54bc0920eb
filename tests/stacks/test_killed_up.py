"""`deployer up` killed on AWS: the provider ends with it, and the next `up` does the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from deployer.platform.system.processes import is_running, start_of
from tests.cli.conftest import Deployer
from tests.engine.test_plugin_ends import ended_by_id, pids_in, wait_for
from tests.stacks.conftest import MakeProject

pytestmark = pytest.mark.full

#: Where `up` kills itself; nowhere: it is killed while the provider starts. Before the first step, no other one is
#: under way, whose bucket the next `up` would not know to be its own.
POINTS = {"while it starts": "", "before a step": "engine.step.begin@1", "after a step": "engine.step.end@5"}


def children_of(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if stat.read_text(errors="replace").rpartition(")")[2].split()[1] == str(parent):
                found.append(int(stat.parent.name))
    return found


def forked_providers() -> list[int]:
    """What runs for stand-ins of the provider: the forks of the process that has imported it (`forking`)."""
    for child in children_of(os.getpid()):
        if b"tests.aws_provider.forking" in Path(f"/proc/{child}/cmdline").read_bytes():
            return children_of(child)
    raise AssertionError("no process forks providers")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
@pytest.mark.parametrize(
    "moment",
    ["before a step", *(pytest.param(each, marks=pytest.mark.slow) for each in ("while it starts", "after a step"))],
)
def test_no_provider_outlives_a_killed_up(moment: str, on_aws: MakeProject, deployer: Deployer, tmp_path: Path) -> None:
    project = on_aws()
    point = POINTS[moment]
    script, pids = project / "bin" / "pulumi-resource-aws", tmp_path / "pids"
    whole = script.read_text()
    first, *rest = whole.splitlines()
    waits = [] if point else ["exec sleep 1000"]
    script.write_text("\n".join([first, f"echo $$ >> {pids}", *waits, *rest]) + "\n")
    environment = {**os.environ, **({"DEPLOYER_FAILPOINT": point} if point else {})}
    command = [sys.executable, "-m", "deployer", "up", "--yes"]
    with ended_by_id(pids), subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as up:
        try:
            wait_for(lambda: pids_in(pids), "the provider does not start")
            starts = {pid: start_of(pid) for pid in pids_in(pids)}
            if point:
                up.wait(600)
        finally:
            up.kill()
        assert up.wait() == -signal.SIGKILL
        starts |= {pid: start_of(pid) for pid in pids_in(pids)}
        wait_for(lambda: not any(is_running(pid, start) for pid, start in starts.items()), "the provider still runs")
        wait_for(lambda: not forked_providers(), "what a stand-in asked for still runs")
    script.write_text(whole)
    assert deployer("up", "--yes").code == 0
