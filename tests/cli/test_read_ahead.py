"""Live state that a second process reads during a preview: the same as if there were none, whatever happens to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.projects import INSTANCE, table

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or len(os.sched_getaffinity(0)) < 2, reason="nothing is read ahead here"
)

#: What runs in a process of its own, as a fork is only made where nothing else runs yet.
READ = """
import os
from deployer.app.planning.prefetch import reading_ahead
from deployer.app.workspace import open_workspace

def no_child():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True

workspace = open_workspace(None, "dev", None)
"""


def python(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", READ + code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def preview(*, alone: bool) -> tuple[int, str, str]:
    """`alone`: on one processor, where nothing is read ahead."""
    command = "from deployer.__main__ import main; main()"
    if alone:
        command = f"import os; os.sched_setaffinity(0, {{min(os.sched_getaffinity(0))}}); {command}"
    ran = subprocess.run(
        [sys.executable, "-c", command, "preview", "--json"], capture_output=True, text=True, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_what_is_read_ahead_is_the_live_lake(applied: Path) -> None:
    code = """
from deployer.app.stack.fast_path import read_recorded
with reading_ahead(workspace) as received:
    ahead = received()
from deployer.provider.resources.run_context import Stores
root = workspace.root(workspace.lake())
print(ahead.root == root, ahead.live == Stores(workspace.dir).live_lake(root),
      ahead.recorded == read_recorded(workspace.stack_ref), sorted(ahead.live.tables), no_child())
"""
    assert python(code) == "True True True ['table/air.flights', 'table/air.planes'] True"


def test_an_error_in_the_block_ends_the_second_process(applied: Path) -> None:
    code = """
try:
    with reading_ahead(workspace):
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(no_child())
"""
    assert python(code) == "True"


def test_nothing_comes_of_a_second_process_that_is_killed(applied: Path) -> None:
    code = """
import signal
import deployer.app.planning.prefetch as module
real = module._pickled
def cut(found):
    os.write(cut.sender, real(found)[:-20])
    os.kill(os.getpid(), signal.SIGKILL)
module._pickled = cut
send = module._send
def remember(workspace, sender):
    cut.sender = sender
    send(workspace, sender)
module._send = remember
with reading_ahead(workspace) as received:
    print(received())
print(no_child())
"""
    assert python(code) == "None\nTrue"


def test_no_fork_is_made_beside_other_threads(applied: Path) -> None:
    code = """
import threading
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
with reading_ahead(workspace) as received:
    print(received(), no_child())
stop.set()
thread.join()
"""
    assert python(code) == "None True"


def nothing(project: Path) -> None:
    """Everything is as it was applied."""


def new_column(project: Path) -> None:
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", "late: bool"), encoding="utf-8")


def other_root(project: Path) -> None:
    text = INSTANCE.replace("root: ", "root: other/")
    assert text != INSTANCE
    (project / "specs" / "demo.yaml").write_text(text, encoding="utf-8")


def broken_specs(project: Path) -> None:
    (project / "specs" / "flights.yaml").write_text("kind: Tabel\n", encoding="utf-8")


def broken_state(project: Path) -> None:
    (database,) = project.rglob("state.db")
    database.write_bytes(b"not a database, " * 1000)


def no_dataset(project: Path) -> None:
    for versions in project.rglob("*.lance/_versions"):
        for file in versions.iterdir():
            file.unlink()


def broken_checkpoint(project: Path) -> None:
    (file,) = (project / ".pulumi" / "stacks").rglob("dev.json")
    file.write_text("{", encoding="utf-8")


@pytest.mark.thinned(5, to="full")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (nothing, 0),
        (new_column, 0),
        (other_root, None),
        (broken_specs, 1),
        (broken_state, 1),
        (no_dataset, None),
        (broken_checkpoint, 1),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_preview_says_the_same_with_and_without(
    applied: Path, change: Callable[[Path], None], code: int | None
) -> None:
    change(applied)
    together, alone = preview(alone=False), preview(alone=True)
    assert together == alone
    assert "Traceback" not in together[2]
    if code is not None:
        assert together[0] == code, together
