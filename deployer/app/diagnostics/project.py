"""Checks of `doctor` in the project: its files, Pulumi's state, the lake's root on a disk, the state store."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from deployer.app.diagnostics.checks import Finding, not_applicable, ok, warning, wrong
from deployer.app.workspace import Workspace, open_workspace
from deployer.errors import DeployerError, InvalidSpecs, NotFound
from deployer.platform.text.formatting import count, size
from deployer.specs.model import Lake
from deployer.specs.values.root import resolve_root

MOUNTS = Path("/proc/self/mountinfo")
#: file systems that several machines share; SQLite's write-ahead log works on one machine only
_SHARED = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|9p|afs|ceph|lustre|gpfs|beegfs|glusterfs|fuse\.(?!lxcfs|fuse-overlayfs|portal).+"
)
#: files that `init` of earlier releases wrote beside the program
_COPIED = re.compile(r"aws(_[a-z]+)?\.py|local\.py")
#: free bytes: below the first the check warns, below the second the root is wrong
_LITTLE, _TOO_LITTLE = 5_000_000_000, 200_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """The readable parts of the project. `root` is a path or s3://…, empty where it is unknown."""

    project: Finding
    specs: Finding
    workspace: Workspace | None = None
    lake: Lake | None = None
    root: str = ""

    @property
    def engine(self) -> str:
        return self.lake.instance.engine if self.lake else "auto"

    @property
    def is_on_s3(self) -> bool:
        return self.root.startswith("s3://")

    @property
    def keeps_state_on_s3(self) -> bool:
        """Returns whether Pulumi's state is in a bucket."""
        return self.workspace is not None and self.workspace.project.backend_url.startswith("s3://")


def read_place(project_dir: Path | str | None, stack: str, specs: Path | str | None) -> Place:
    """Reads as much of the project as can be read. The findings report what is wrong with it."""
    try:
        workspace = open_workspace(project_dir, stack, specs)
    except DeployerError as error:
        return Place(_as_finding(error), not_applicable("no project could be read"))
    found = ok(f"{workspace.dir / 'Pulumi.yaml'}, stack {stack}")
    try:
        lake = workspace.lake()
    except DeployerError as error:
        return Place(found, _specs_finding(error), workspace, root=_declared_root(workspace))
    what_is_there = f"{count(len(lake.tables), 'table')} in {count(len(lake.files), 'file')}"
    return Place(found, ok(what_is_there), workspace, lake, workspace.root(lake))


def _as_finding(error: DeployerError) -> Finding:
    return wrong(f"{error.where}: {error.what}" if error.where is not None else error.what, error.remedy)


def _specs_finding(error: DeployerError) -> Finding:
    if not isinstance(error, InvalidSpecs):
        return _as_finding(error)
    first, *others = (str(problem) for problem in error.problems)
    more = f" (and {len(others)} more)" if others else ""
    return wrong(f"{first}{more}", "deployer validate", problems=len(error.problems))


def _declared_root(workspace: Workspace) -> str:
    from deployer.specs import declared_root

    try:
        root = declared_root(workspace.dir, workspace.specs, workspace.stack, workspace.values)
    except DeployerError:
        return ""
    return resolve_root(workspace.dir, root) if root else ""


def program(place: Place) -> Finding:
    """Checks whether an upgrade of deployer upgrades the program too. It does not where the project has the copy of an
    earlier release."""
    if place.workspace is None:
        return not_applicable("there is no project")
    folder = place.workspace.project.main
    copied = sorted(path.name for path in folder.glob("*.py") if _COPIED.fullmatch(path.name))
    if not {"aws.py", "local.py"} <= set(copied):
        return ok(f"{folder}")
    lines = "`from deployer.components import declare_project` and `declare_project()`"
    return warning(
        f"{folder} has the program of an earlier release ({', '.join(copied)}), which an upgrade does not change",
        f"write {lines} into {folder / '__main__.py'}, and delete {', '.join(copied)}; then `deployer preview`",
    )


def pulumi_state(place: Place, unready: Callable[[], str] = lambda: "") -> Finding:
    """Reads Pulumi's state of the stack. `unready` returns why a bucket cannot be read, or an empty text."""
    from deployer.engine.persistence.backend import read_checkpoint, stack_files
    from deployer.engine.project.backend_url import is_known

    if place.workspace is None:
        return not_applicable("no Pulumi.yaml was found")
    backend = place.workspace.project.backend_url
    if not is_known(backend) and shutil.which("pulumi"):
        return not_applicable(f"it is at {backend.partition('://')[0]}://…, where the Pulumi CLI keeps it")
    if why := unready():
        return not_applicable(why)
    files = stack_files(place.workspace.stack_ref)
    deployment = read_checkpoint(files).deployment
    if files.journal.exists():
        return warning("a run was interrupted, or is running", "`deployer up` resumes it", file=files.journal.where)
    if deployment is None:
        return ok(f"nothing was applied to the stack {place.workspace.stack} yet")
    return ok(f"{count(len(deployment.get('resources') or ()), 'resource')} in {files.where}")


def local_root(root: str) -> Finding:
    """Checks a root on a disk: whether it is writable, whether SQLite can lock files there, and how much space is free.

    Where no lake exists yet, it tests this in a temporary folder at the root or at the nearest existing parent.
    """
    folder = Path(root)
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir():
        return wrong(f"{there} is a file", "choose another `root`")
    kind = file_system(there, _mounts())
    if (folder / "_state" / "state.db").exists():  # the root has a lake, in which the check writes nothing
        if not os.access(folder / "_state" / "state.db", os.W_OK):
            what_is_there = f"{folder}, {kind or 'unknown file system'}, can be read and not written to"
            return warning(
                what_is_there,
                "enough for previews and queries; check its permissions before `up`",
                file_system=kind or None,
            )
        return judged_root(f"{folder}", kind, shutil.disk_usage(folder).free)
    try:
        with tempfile.TemporaryDirectory(prefix=".deployer-doctor-", dir=there) as probe:
            locks = _locks(Path(probe))
    except OSError as error:
        return wrong(
            f"{there} cannot be written to: {error.strerror}", "check its permissions, or choose another `root`"
        )
    if locks:
        return wrong(f"SQLite cannot lock a file in {there} ({kind or 'unknown file system'}): {locks}", _LOCAL_DISK)
    space = shutil.disk_usage(there)
    return judged_root(f"{folder}" if folder.exists() else f"{folder} (made by `up`)", kind, space.free)


_LOCAL_DISK = "put the root on a disk of this machine, or on S3"


def judged_root(root: str, kind: str, free: int) -> Finding:
    """Judges a writable root by its `kind` of file system (empty: unknown) and its `free` bytes."""
    what_is_there = f"{root}, {kind or 'unknown file system'}, {size(free)} free"
    details = {"file_system": kind or None, "free_bytes": free}
    if free < _TOO_LITTLE:
        return wrong(what_is_there, "free some space: a load writes its rows before it removes anything", **details)
    if _SHARED.fullmatch(kind):
        what = f"{what_is_there}; several machines may share it, but the state's file supports one machine at a time"
        return warning(what, _LOCAL_DISK, **details)
    if free < _LITTLE:
        return warning(
            what_is_there, "free some space: a rewrite keeps the old rows beside the new ones for days", **details
        )
    return ok(what_is_there, **details)


def file_system(folder: Path, mounts: str) -> str:
    """Returns the kind of file system that a folder is on, from the text of Linux's mountinfo; empty if it is not
    listed."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4])
        if len(point) >= best and folder.resolve().is_relative_to(point):
            best, kind = len(point), after.split()[0]
    return kind


def _mounts() -> str:
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # not Linux


def _locks(folder: Path) -> str:
    """Returns why SQLite cannot prevent two concurrent writers in a folder; empty when it can."""
    file = folder / "locks.db"
    try:
        with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as one:
            mode = one.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                return f"its log has the mode {mode}"
            one.execute("CREATE TABLE t (x)")
            one.execute("BEGIN IMMEDIATE")
            with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as other:
                try:
                    other.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    return ""
        return "two processes can write at a time"
    except sqlite3.Error as error:
        return str(error)


def state_store(root: str, unready: Callable[[], str] = lambda: "") -> Finding:
    """Opens the state store, and reads the instance and its tables. `unready` returns why the store cannot be read, or
    an empty text."""
    from deployer.live.reader import read_lake
    from deployer.platform.storage.envelope import FORMAT
    from deployer.state import open_reader
    from deployer.state.model.lost_store import missing_beside

    if not root:
        return not_applicable("the root is unknown")
    if why := unready():
        return not_applicable(why)
    try:
        with closing(open_reader(root)) as store:
            tables = len(store.instance().tables)
            unreadable = read_lake(store, root).unreadable
    except NotFound as error:
        if "no such table" in error.what:
            raise  # the error names the lake's own table of DynamoDB, which must exist
        if missing_beside(root):
            return wrong(error.what, error.remedy)
        return not_applicable("there is none yet: `deployer up` makes it")
    if unreadable:
        what_is_there = "; ".join(f"{table.address}: {table.what}" for table in unreadable.values())
        what = f"{len(unreadable)} of {count(tables, 'table')} cannot be read: {what_is_there}"
        return wrong(what, "deployer state verify", format=FORMAT, tables=tables, unreadable=sorted(unreadable))
    backend = "DynamoDB" if root.startswith("s3://") else "SQLite"
    return ok(f"{backend}, format {FORMAT}, {count(tables, 'table')}", format=FORMAT, tables=tables)
