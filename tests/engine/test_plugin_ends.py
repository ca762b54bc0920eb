"""No provider plug-in outlives its engine, however that ends: neither its process, nor its group, nor its daemons."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from deployer.platform.system.processes import is_running, start_of
from tests.engine.conftest import REPOSITORY, Lab

LIMIT = 120.0  #: seconds; what is waited for takes a few, or less
PLUGIN = Path(sys.executable).parent / "pulumi-resource-lake"
ENGINE = """
import sys
from pathlib import Path
from tests.engine.conftest import Lab
Lab(Path(sys.argv[1]), in_process=False).up()
"""


def wait_for(what: Callable[[], object], why: str) -> None:
    until = time.monotonic() + LIMIT
    while not what():
        assert time.monotonic() < until, why
        time.sleep(0.02)


def pids_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


@contextmanager
def ended_by_id(file: Path) -> Iterator[None]:
    """Kills what is left of the processes in `file`, so that a test that fails leaves none."""
    try:
        yield
    finally:
        for pid in pids_in(file):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def running(code: str, *arguments: str, cwd: Path = REPOSITORY) -> Iterator[subprocess.Popen[bytes]]:
    """Python code in a process of its own, which is killed in the end."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def install_forking_plugin(lab: Lab, before: str = "") -> Path:
    """A plug-in that starts a child in its group and a daemon in a session of its own; the file of their ids.

    `before` is a line of the script that comes before the provider.
    """
    lab.install_plugin()
    pids = lab.dir / "pids"
    script = lab.dir / "bin" / "pulumi-resource-files"
    first, *rest = script.read_text().splitlines()
    daemon = f"(setsid sh -c 'echo $$ >> {pids}; exec sleep 1000' > /dev/null 2>&1 &)"
    begin = [f"echo $$ >> {pids}", "sleep 1000 > /dev/null 2>&1 &", f"echo $! >> {pids}", daemon, before]
    script.write_text("\n".join([first, *begin, *rest]) + "\n")
    return pids


MOMENTS: dict[str, tuple[str, str, Callable[[Lab], bool]]] = {
    "while it starts": ("exec sleep 1000", 'File("a")', lambda lab: True),
    "when it is ready": (
        "",
        "import time; File('a').path.apply(lambda _: time.sleep(1000))",
        lambda lab: "create a.txt" in logged(lab),
    ),
    "during an operation": (
        "",
        'File("b", wait=1000, opts=Opts(depends_on=[File("a")]))',
        lambda lab: "create a.txt" in logged(lab),
    ),
}


def logged(lab: Lab) -> str:
    log = lab.root / "log"
    return log.read_text() if log.exists() else ""


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_plugin_and_all_that_it_began_end_with_a_killed_engine(moment: str, lab: Lab) -> None:
    before, program, is_there = MOMENTS[moment]
    pids = install_forking_plugin(lab, before)
    lab.program(program)
    with ended_by_id(pids), running(ENGINE, str(lab.dir)) as engine:
        wait_for(lambda: len(pids_in(pids)) == 3 and is_there(lab), "the plug-in does not start")
        begun = {pid: start_of(pid) for pid in pids_in(pids)}
        engine.kill()
        engine.wait()
        wait_for(
            lambda: not any(is_running(pid, start) for pid, start in begun.items()), "the engine's plug-in still runs"
        )


def test_what_a_plugin_leaves_running_ends_with_the_run(lab: Lab) -> None:
    pids = install_forking_plugin(lab)
    with ended_by_id(pids):
        lab.up('File("a")')
        assert [pid for pid in pids_in(pids) if is_running(pid)] == []


STARTER = """
import json, subprocess, sys, time
plugin = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, start_new_session=True)
print(json.dumps([plugin.pid, plugin.stdout.readline().decode().strip()]), flush=True)
time.sleep(1000)
"""


def test_deployers_own_plugin_ends_with_any_engine(tmp_path: Path) -> None:
    """As the Pulumi CLI starts it: by itself, and with a pipe that nobody reads after a kill."""
    with running(STARTER, str(PLUGIN), "127.0.0.1:1", cwd=tmp_path) as engine:
        assert engine.stdout is not None
        pid, port = json.loads(engine.stdout.readline())
        start = start_of(pid)
        try:
            assert port.isdigit() and is_running(pid, start)
            engine.kill()
            engine.wait()
            wait_for(lambda: not is_running(pid, start), "the plug-in still runs")
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
