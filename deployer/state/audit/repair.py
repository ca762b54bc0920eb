"""Repairs the faults that an audit of a log found, if no committed data is lost by the repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deployer.state.audit.logs import LogAudit
from deployer.state.backends.protocol import Backend
from deployer.state.snapshots.files import SnapshotWriter


@dataclass(frozen=True, slots=True)
class Step:
    """A completed or planned repair. `left`: it is not done, and `what` has the reason."""

    where: str
    what: str
    left: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def mend_log(
    audit: LogAudit, backend: Backend, snapshots: SnapshotWriter, *, dry_run: bool, drop_history: bool
) -> Iterator[Step]:
    """Rebuilds damaged snapshots where the log reaches them; with `dry_run` it only reports.

    Damage that only past states depend on and that cannot be rebuilt is removed with `drop_history`, together with all
    older data. The newest state and its commits are never changed.
    """
    log = audit.log
    for version, state in sorted(audit.recovered.items()):
        if dry_run or snapshots.remake(state):
            yield Step(f"snapshot {version} of log {log}", "rebuilt from the previous snapshot and the log")
    if audit.inner:
        yield Step(f"log {log}", f"its newest state was committed with this fault; {_RESTORE}", left=True)
    if not audit.damaged:
        return
    first = audit.first_whole
    if audit.state is None or first is None:
        yield Step(f"log {log}", f"its newest state cannot be rebuilt from intact entries; {_RESTORE}", left=True)
    elif not drop_history:
        what = f"some states before version {first} cannot be read, and nothing newer rests on them"
        yield Step(f"log {log}", f"{what}; --drop-history removes all of them", left=True)
    else:
        if not dry_run:
            backend.truncate(log, first)  # its files are removed by the next retention
        yield Step(f"log {log}", f"removed the states before version {first}, which could not be read completely")


_RESTORE = "restore the instance's _state folder from a backup, or import an export (deployer state import)"
