"""Files that hold state, plans and what people export: modes, links that others plant, and groups that share a lake."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.cli.commands.data.query import RowFormat, write_rows
from deployer.errors import InvalidInput, Refused
from deployer.platform.files.private import open_lock, replacing, write_private
from deployer.platform.storage.objects import LocalObjects
from deployer.state import create_store, open_reader, open_store, remove_store
from deployer.state.backends.fair_lock import FairLock
from deployer.state.backends.group_commit import CommitQueue
from deployer.state.model.entities import INSTANCE_LOG
from deployer.tables.ingest.rows.bad_row_files import write_bad_rows
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem
from deployer.tables.read.export import write_parquet
from deployer.tables.read.table import Rows
from tests.cli.conftest import Deployer, project  # noqa: F401
from tests.security import forge
from tests.state.samples import TABLE, creation

BATCH = pa.record_batch({"id": [1, 2]})


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The umask that hides nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """What is not 0600, or 0700 for a folder, at `folder` and below it."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600):
            found[path.name] = oct(mode)
    return found


def test_what_commands_write_is_private_whatever_the_umask(
    project: Path,  # noqa: F811
    deployer: Deployer,
    open_umask: None,
) -> None:
    """F26: state, checkpoints, journals, history, plans, exports, reports and bad rows were 0644, or 0666."""
    rows = project / "rows.csv"
    rows.write_text("id,delay\n1,2\n2,x\n", encoding="utf-8")
    out = project / "out"
    out.mkdir()
    for command in (
        ["preview", "--out", "out/a.plan"],
        ["up", "--yes"],
        ["ingest", "flights", "rows.csv", "--bad-rows", "out/bad.jsonl"],
        ["stack", "export", "out/stack.json"],
        ["state", "export", "out/state.zip"],
        ["report", "--html", "out/report.html"],
        ["graph", "--output", "out/graph.svg", "--format", "svg"],
        ["query", "flights", "--format", "csv", "--output", "out/rows.csv"],
        ["query", "flights", "--format", "parquet", "--output", "out/rows.parquet"],
    ):
        ran = deployer(*command)
        assert ran.code == 0, (command, ran)
    assert len(list(out.iterdir())) == 8
    out.chmod(0o700)
    assert {**modes(project / ".pulumi"), **modes(project / "lakes/demo/_state"), **modes(out)} == {}


def test_a_state_that_is_in_use_is_private(tmp_path: Path, open_umask: None) -> None:
    """F26: SQLite gave its log and its shared memory the mode of the database, 0666 under this umask; so had locks."""
    with closing(create_store(tmp_path / "lake", instance="demo")) as store:
        store.commit(TABLE, [creation()])
        assert (tmp_path / "lake/_state/state.db-wal").exists()
        assert modes(tmp_path / "lake/_state") == {}
    assert stat.S_IMODE((tmp_path / "lake").stat().st_mode) == 0o777  # the umask says who may read the data


def test_the_state_of_an_earlier_release_is_made_private(tmp_path: Path) -> None:
    """F26: stores that are there keep working, and are closed to others when their owner opens them."""
    with closing(create_store(tmp_path, instance="demo")) as store:
        store.commit(TABLE, [creation()])
    state = tmp_path / "_state"
    state.chmod(0o755)
    (state / "state.db").chmod(0o644)
    with closing(open_store(tmp_path)) as store:
        assert store.table(TABLE).version == 1
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "state.db").stat().st_mode) == 0o600


def test_a_group_shares_a_lake_where_somebody_opted_in(tmp_path: Path) -> None:
    """F26: several users may write one lake, when its folder has the setgid bit and its group may write."""
    tmp_path.chmod(0o2770)
    with closing(create_store(tmp_path, instance="demo")) as store:
        store.commit(TABLE, [creation()])
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "_state").iterdir()}
        assert found["state.db"] == found["state.db-wal"] == 0o660
        assert stat.S_IMODE((tmp_path / "_state").stat().st_mode) & 0o777 == 0o770
    write_private(tmp_path / "a.plan", "x")
    assert stat.S_IMODE((tmp_path / "a.plan").stat().st_mode) == 0o660


def test_a_state_that_its_group_writes_stays_shared(tmp_path: Path) -> None:
    """F26: a lake that users with umask 002 wrote before; only the rest of the world loses it."""
    with closing(create_store(tmp_path, instance="demo")) as store:
        store.commit(TABLE, [creation()])
    (tmp_path / "_state").chmod(0o777)
    with closing(open_store(tmp_path)) as store:
        assert store.table(TABLE).version == 1
    assert stat.S_IMODE((tmp_path / "_state").stat().st_mode) == 0o770


def _export(path: Path) -> None:
    with closing(create_store(path.parent / "lake", instance="demo")) as store:
        if not store.logs():
            store.commit(TABLE, [creation()])
        store.export_to(path)


def _csv(path: Path) -> None:
    write_rows(Rows(BATCH.schema, iter([BATCH]), 0, 0), RowFormat.CSV, path, as_json=False)


WRITERS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "export of the state": ("out.zip", ".out.zip.partial", _export),
    "plan": ("a.plan", ".a.plan.tmp", lambda path: write_private(path, "x")),
    "parquet": ("a.parquet", ".a.parquet.part", lambda path: write_parquet(BATCH.schema, iter([BATCH]), path)),
    "bad rows": (
        "bad.jsonl",
        ".bad.jsonl.part",
        lambda path: write_bad_rows(path, {"a": BadRows.of([Problem(1, "a", "no", "x")])}),
    ),
    "csv": ("a.csv", ".a.csv", _csv),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_planted_link_beside_the_target_is_not_written_through(name: str, tmp_path: Path) -> None:
    """F17: temporary files had names that others could guess, and were opened through links."""
    target, temporary, write = WRITERS[name]
    victim = tmp_path / "victim"
    victim.write_text("keep", encoding="utf-8")
    (tmp_path / temporary).symlink_to(victim)
    write(tmp_path / target)
    assert victim.read_text(encoding="utf-8") == "keep"
    assert (tmp_path / target).stat().st_size > 0
    assert stat.S_IMODE((tmp_path / target).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", WRITERS)
def test_a_planted_target_is_refused(name: str, tmp_path: Path) -> None:
    """F17: `report --html` and others followed a link of the target's name; a pipe would wait for its reader."""
    target, _, write = WRITERS[name]
    victim = tmp_path / "victim"
    victim.write_text("keep", encoding="utf-8")
    (tmp_path / target).symlink_to(victim)
    with pytest.raises(InvalidInput, match="a link is there instead of a file"):
        write(tmp_path / target)
    assert victim.read_text(encoding="utf-8") == "keep"
    (tmp_path / target).unlink()
    os.mkfifo(tmp_path / target)
    with pytest.raises(InvalidInput, match="a pipe is there instead of a file"):
        write(tmp_path / target)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(f".{target}")]


def test_a_new_spec_is_not_written_through_a_dangling_link(
    project: Path,  # noqa: F811
    deployer: Deployer,
) -> None:
    """F17: a link to nothing passed for a name that is free."""
    (project / "rows.csv").write_text("id,delay\n1,2\n", encoding="utf-8")
    (project / "new.yaml").symlink_to(project / "victim.yaml")
    ran = deployer("schema", "infer", "rows.csv", "--out", "new.yaml")
    assert ran.code == 1
    assert "new.yaml" in ran.err
    assert not (project / "victim.yaml").exists()


def test_what_fails_leaves_the_target_and_nothing_beside_it(tmp_path: Path) -> None:
    """F17: a file is replaced whole or not at all."""
    target = tmp_path / "a.plan"
    write_private(target, "before")
    with pytest.raises(ZeroDivisionError), replacing(target) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["a.plan"]
    assert target.read_text(encoding="utf-8") == "before"


def test_a_report_keeps_the_mode_that_its_owner_gave_it(tmp_path: Path) -> None:
    """F26: who publishes a page by `chmod` does not have to do it again after each run; others' files do not count."""
    target = tmp_path / "report.html"
    write_private(target, "one", keeps_mode=True)
    target.chmod(0o644)
    write_private(target, "two", keeps_mode=True)
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    if os.geteuid() == 0:
        target.chmod(0o666)
        os.chown(target, 65534, 65534)
        write_private(target, "three", keeps_mode=True)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert target.stat().st_uid == 0


def test_locks_are_opened_through_no_link(tmp_path: Path) -> None:
    """F17: a link of a lock's name made an empty file elsewhere. Locks of the state are a courtesy: it goes on."""
    lock, elsewhere = tmp_path / "state.db-turn", tmp_path / "elsewhere"
    lock.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        open_lock(lock)
    with FairLock(lock).taken() as waited:
        assert not waited
    with CommitQueue(lock, tmp_path / "line").turn() as turn:
        assert not turn.waited
    assert not elsewhere.exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "of another user"])
def test_what_is_no_lock_of_ours_is_refused(kind: str, tmp_path: Path) -> None:
    """F17: a pipe would wait, and the owner of a lock could keep everybody waiting."""
    lock = tmp_path / "lock"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        if os.geteuid() != 0:
            pytest.skip("needs root")
        tmp_path.chmod(0o700)
        lock.touch()
        os.chown(lock, 65534, 65534)
    with pytest.raises(OSError, match=r"not a regular file|Is a directory|another user"):
        open_lock(lock)


@pytest.mark.parametrize(
    "path", ["_state", "_state/state.db", "_state/state.db-wal", "_state/snapshots", "_state-removed"]
)
def test_a_state_store_is_not_written_through_a_link(path: str, tmp_path: Path) -> None:
    """F17: a lake that somebody hands over has links, which lead to a folder or file of who uses it."""
    root, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    with closing(create_store(root, instance="demo")):
        pass
    whole = root / path
    if whole.exists():
        whole.rename(elsewhere)
    elif path.endswith("-wal"):
        elsewhere.write_text("keep", encoding="utf-8")
    else:
        elsewhere.mkdir()
    whole.symlink_to(elsewhere)
    before = forge.tree(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes()

    def used() -> None:
        with closing(create_store(root, instance="demo")) as store:
            store.snapshot(INSTANCE_LOG)
        remove_store(root)

    with pytest.raises(Refused, match="it is a link"):
        used()
    if path != "_state/snapshots" and path != "_state-removed":
        with pytest.raises(Refused, match="it is a link"):
            open_reader(root)
    assert before == (forge.tree(elsewhere) if elsewhere.is_dir() else elsewhere.read_bytes())


@pytest.mark.parametrize("path", ["", "stacks", "locks", "history", "stacks/demo"])
def test_pulumis_state_is_not_written_through_a_link(path: str, tmp_path: Path) -> None:
    """F17: the lock of a run was written where `.pulumi/locks` led, and refused only when it was removed."""
    top, elsewhere = tmp_path / ".pulumi", tmp_path / "elsewhere"
    (whole := top / path).parent.mkdir(parents=True, exist_ok=True)
    elsewhere.mkdir()
    whole.symlink_to(elsewhere)
    objects = LocalObjects(top, keeps_folders=True, private=top)
    with pytest.raises(Refused, match="it is a link"):
        objects.put(f"{path or 'stacks'}/demo/dev.json", b"{}")
    assert not list(elsewhere.iterdir())
