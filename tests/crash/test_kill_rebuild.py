"""The state store is lost at random moments, also inside of an operation, and rebuilt: nothing acknowledged is lost.

The long form (`--long`) tries more seeds.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from deployer.cli.main import run
from deployer.errors import Conflict
from deployer.specs.model import InstanceSpec
from deployer.state import open_store
from deployer.tables.maintenance.verify.rebuild import ProjectDeclarations, apply_rebuild, plan_rebuild
from deployer.tables.maintenance.verify.verify import verify
from tests import forks
from tests.crash.rebuild_worker import OPERATIONS, choose, numbers, of_load
from tests.projects import INSTANCE, REPOSITORY, make_project, table
from tests.tables.lakes import Lake
from tests.tables.verify.test_rebuild import told

pytestmark = pytest.mark.full

WORKER = str(Path(__file__).with_name("rebuild_worker.py"))
POINTS = (
    "commit:before-put",
    "commit:after-put",
    "commit:after-put@2",
    "state.record.before-write",
    "state.record.written",
    "tables.commit.before-lance",
    "tables.commit.after-lance",
    "tables.commit.after-state",
    "tables.schema.before-lance",
    "tables.schema.after-lance",
    "tables.rewrite.created",
    "tables.rewrite.committed",
    "tables.rewrite.before-swap",
    "tables.rewrite.swapped",
    "tables.collect.versions",
    "tables.split.committed",
    "services.replace.after-lance",
    "services.savepoint.tagged",
    "services.savepoint.recorded",
    "services.restore.after-lance",
    "services.restore.after-state",
)
#: Where an operation passes, so that it is killed there more often than not.
OF_OPERATION = {
    "load": "tables.commit",
    "add_column": "tables.schema",
    "change_keys": "tables.rewrite",
    "compact": "services.replace",
    "cluster": "services.replace",
    "clean": "tables.collect",
    "split": "tables.split",
    "save": "services.savepoint",
    "restore": "services.restore",
}


def killed(root: str, name: str, number: int, at: str) -> bool:
    """Runs the operation in a process that kills itself at that point; False where it did not get there."""
    environment = {**os.environ, "DEPLOYER_FAILPOINT": at, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, WORKER, root, name, str(number)]
    ended = forks.run(command, env=environment, text=True)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


def lose_and_rebuild(root: str) -> None:
    shutil.rmtree(Path(root) / "_state")
    planned = plan_rebuild(root, ProjectDeclarations(InstanceSpec("tests", root), {}, "tests/dev", {}))
    assert planned.problems == ()
    apply_rebuild(planned)
    whole(root)


def whole(root: str) -> None:
    with closing(open_store(root)) as store:
        found = [str(one) for each in verify(store, root, full=True) for one in each.differences]
    assert found == []


def now(root: str, folder: Path) -> object:
    lake = Lake(folder, root)
    try:
        return told(lake)
    finally:
        lake.store.close()


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_lost_at_random_moments(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 -- chooses what is done
    lake = Lake(tmp_path)
    lake.table(splits=(("DL",),))
    root = lake.root
    lake.store.close()
    expected: set[int] = set()
    saved: dict[int, set[int]] = {}
    for number in range(14):
        name, its = choose(chance, saved, number)
        inside = [point for point in POINTS if point.startswith(OF_OPERATION.get(name, "commit"))]
        point = chance.choice([*inside, *inside, *POINTS])
        after = {"load": expected | of_load(its), "restore": saved.get(its, set())}.get(name, expected)
        print(number, name, its, point)  # where it fails
        if chance.random() < 0.35 and killed(root, name, its, point):
            if chance.random() < 0.7:
                lose_and_rebuild(root)
            found = numbers(root)
            assert found in (sorted(expected), sorted(after))
        for _ in range(2):
            try:
                OPERATIONS[name](root, its)
                break
            except Conflict:  # with the run that was killed, whose lease is not over
                lose_and_rebuild(root)
        expected = after
        if name == "save":
            saved[its] = expected
        assert numbers(root) == sorted(expected)
        if chance.random() < 0.3:
            before = now(root, tmp_path)
            lose_and_rebuild(root)
            assert now(root, tmp_path) == before
    lose_and_rebuild(root)
    OPERATIONS["load"](root, 100)
    assert numbers(root) == sorted(expected | of_load(100))
    whole(root)


@pytest.mark.parametrize(
    "point", ["state.rebuild.written", "state.rebuild.moved-aside", "state.rebuild.placed", "state.record.before-write"]
)
def test_a_rebuild_that_is_killed_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], point: str
) -> None:
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")})
    monkeypatch.chdir(folder)
    (folder / "flights.csv").write_text("id\n1\n2\n")
    assert run(["up", "--yes"]) == 0 and run(["ingest", "flights", "flights.csv"]) == 0
    state = folder / "lakes" / "demo" / "_state"
    (state / "state.db").write_bytes(b"damaged" * 1000)
    for file in state.glob("state.db-*"):
        file.unlink() if file.is_file() else shutil.rmtree(file)
    command = [sys.executable, "-m", "deployer", "state", "rebuild", "--yes"]
    ended = forks.run(command, env={**os.environ, "DEPLOYER_FAILPOINT": point}, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert run(["state", "rebuild", "--yes"]) in (0, 3)
    capsys.readouterr()
    assert run(["preview"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run(["state", "verify", "--full"]) == 0
    assert not list(state.parent.glob("_state-rebuilt-*"))
    assert len(list(state.parent.glob("_state-damaged-*"))) == 1
