"""Two commands at once on one stack, as processes: one holds it, the other is refused until that ends or is killed."""

from __future__ import annotations

import getpass
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.cli.main import run
from deployer.platform.system.processes import is_running, start_of
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from tests import forks
from tests.projects import INSTANCE, applied_project, table

COMMAND = [sys.executable, "-m", "deployer"]


def change() -> None:
    describe(Path.cwd(), "new")
    with closing(open_store(str(Path.cwd() / "lakes" / "demo"))) as store:  # as somebody else may change it
        [table_id] = store.instance().tables
        store.commit(table_id, [SetTableProperties({"tags": {"owner": "data"}})])
    lance.write_dataset(pa.table({"id": [1]}), "lakes/demo/grown.lance")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one table applied, whose specs say something new of it, and a dataset that is no table."""
    specs = {"demo.yaml": INSTANCE, "t.yaml": table("t", "value: string")}
    folder = applied_project(tmp_path / "project", specs, change)
    monkeypatch.chdir(folder)
    return folder


def describe(project: Path, text: str) -> None:
    spec = table("t", "value: string", more=f"description: {text}\n")
    (project / "specs" / "t.yaml").write_text(spec, encoding="utf-8")


@contextmanager
def stopped(*arguments: str, at: str) -> Iterator[int]:
    """A command that stands still at the failure point `at`, by its process id; killed at the end of the block."""
    with forks.Popen(
        [*COMMAND, *arguments],
        env={**os.environ, "DEPLOYER_FAILPOINT": f"{at}=stop"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), status
            yield process.pid
        finally:
            process.kill()


def everything(project: Path) -> dict[str, bytes]:
    """What commands could have changed: the specs, Pulumi's state, the lake's own files."""
    files = (file for folder in ("specs", ".pulumi/stacks", "lakes") for file in (project / folder).rglob("*"))
    return {str(file): file.read_bytes() for file in files if file.is_file() and "state.db" not in file.name}


DIFFERENCES = 2  #: drift's exit code when there are any
CHANGES: dict[str, tuple[list[str], int]] = {
    "up": (["up", "--yes"], 0),
    "up-plan": (["up", "saved.plan"], 0),
    "destroy": (["destroy", "--yes"], 0),
    "drift-write-spec": (["drift", "--write-spec"], DIFFERENCES),  # the dataset that is no table
    "import": (["import", "table/air.grown"], 0),
    "import-all": (["import", "--all", "lakes/demo", "--database", "air"], 0),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_stack_is_refused_while_another_run_holds_it(
    name: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, code = CHANGES[name]
    assert run(["preview", "--out", "saved.plan"]) == 0
    with stopped("up", "--yes", at="cli.up.planned") as holder:
        before = everything(project)
        capsys.readouterr()
        assert run(arguments) == 1
        said = capsys.readouterr().err
        assert f"another run holds the stack: {getpass.getuser()}@{socket.gethostname()} (process {holder})" in said
        assert " UTC; nothing was changed; wait until it ends" in said
        assert everything(project) == before
        assert run(["preview"]) == 0  # who only reads is not kept out
        assert run(["drift"]) == DIFFERENCES
    assert run(arguments) == code, capsys.readouterr().err
    assert everything(project) != before
    assert not list((project / ".pulumi" / "locks").rglob("*.json"))


@pytest.mark.parametrize("at", ["cli.up.planned", "engine.step.begin", "engine.checkpoint.begin"])
def test_the_next_up_goes_on_after_the_holder_was_killed(at: str, project: Path) -> None:
    with stopped("up", "--yes", at=at):
        assert run(["up", "--yes"]) == 1
    assert run(["up", "--yes"]) == 0
    assert run(["preview", "--exit-code"]) == 0


def test_what_a_plan_was_compared_with_cannot_move_before_it_is_applied(project: Path) -> None:
    assert run(["preview", "--out", "saved.plan"]) == 0
    with stopped("up", "saved.plan", at="cli.up.planned") as first:
        describe(project, "newer")
        assert run(["up", "--yes"]) == 1
        os.kill(first, signal.SIGCONT)
        _, status = os.waitpid(first, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    describe(project, "new")
    assert run(["preview", "--exit-code"]) == 0


def held_by(project: Path, **who: object) -> None:
    folder = next((project / ".pulumi" / "locks" / "organization").glob("*/dev"))
    lock = {"username": "eve", "hostname": socket.gethostname(), "timestamp": "2026-01-02T03:04:05.6Z", **who}
    (folder / "x.json").write_text(json.dumps(lock), encoding="utf-8")


def own_number_used_again() -> dict[str, object]:
    return {"pid": os.getpid(), "processStart": "1"}


def ended_and_not_waited_for() -> dict[str, object]:
    child = forks.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return {"pid": child.pid}


GONE: dict[str, Callable[[], dict[str, object]]] = {
    "its number is used again": own_number_used_again,
    "nobody waited for it": ended_and_not_waited_for,
}


@pytest.mark.skipif(not start_of(os.getpid()), reason="the system does not say when processes began")
@pytest.mark.parametrize("name", GONE)
def test_a_holder_that_ended_is_known_from_one_that_runs(name: str, project: Path) -> None:
    held_by(project, **GONE[name]())
    assert run(["up", "--yes"]) == 0


RUNS: dict[str, Callable[[], dict[str, object]]] = {
    "of this machine": lambda: {"pid": os.getppid(), "processStart": start_of(os.getppid())},
    "of the Pulumi CLI": lambda: {"pid": os.getppid()},
    "of another machine": lambda: {"pid": 1, "hostname": "elsewhere", "processStart": "1"},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_holder_that_may_run_is_respected(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held_by(project, **RUNS[name]())
    assert run(["up", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "since 2026-01-02 03:04:05 UTC" in said
    assert said.rstrip().endswith("x.json")


def test_this_process_runs() -> None:
    assert is_running(os.getpid(), start_of(os.getpid()))
