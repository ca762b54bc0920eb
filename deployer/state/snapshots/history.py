"""Earlier states of a log, as far back as its entries and snapshots are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile

from deployer.errors import InvalidInput, NotFound
from deployer.platform.storage.objects import Missing
from deployer.state.backends.protocol import LogReader, SnapshotRecord
from deployer.state.log.entries import LogEntry, from_record
from deployer.state.log.reducer import empty_state, fold
from deployer.state.model.entities import INSTANCE_LOG, State
from deployer.state.snapshots.files import SnapshotReader


@dataclass(frozen=True, slots=True)
class Time:
    """A moment, in ms since 1970 (UTC)."""

    ms: int


At = int | Time | datetime  #: a version of the log, or a moment, which means the newest state at that moment


def state_at(log: str, at: At, logs: LogReader, snapshots: SnapshotReader) -> State:
    """Returns the state of a log at a version or a moment.

    Raises NotFound when that state is no longer kept or does not exist yet, and InvalidInput for an invalid `at`.
    """
    moment = _moment(at)
    pointers = logs.snapshots(log)
    before = [pointer for pointer in pointers if _is_before(pointer, at, moment)]
    after = pointers[len(before) :]
    try:
        state = snapshots.load(before[-1]).state if before else empty_state(log)
    except Missing:
        raise _not_kept(log, at) from None
    # Only a few entries lie between two snapshots; an entry contains its time.
    upto = at if isinstance(at, int) else after[0].version if after else None
    records = logs.records(log, state.version, None if upto is None else upto - state.version)
    if records and records[0].version != state.version + 1:
        raise _not_kept(log, at)
    state = fold(state, takewhile(lambda entry: _is_before(entry, at, moment), map(from_record, records)))
    if moment is None and state.version != at:
        raise (
            _not_kept(log, at)
            if after
            else NotFound(f"there is no version {at}", where=_address(log), remedy=f"the newest is {state.version}")
        )
    if state.version == 0:
        raise _not_kept(log, at) if after else NotFound(f"it did not exist yet at {_shown(at)}", where=_address(log))
    return state


def _moment(at: At) -> int | None:
    match at:
        case Time(ms):
            return ms
        case datetime():
            if at.tzinfo is None:
                raise InvalidInput(f"the time {at} has no time zone", remedy="give one, such as 2026-01-31T12:00:00Z")
            return int(at.timestamp() * 1000)
        case int():
            if at < 1:
                raise InvalidInput(f"there is no version {at}", remedy="versions count from 1")
            return None


def _is_before(item: SnapshotRecord | LogEntry, at: At, moment: int | None) -> bool:
    if moment is not None:
        return item.at <= moment
    assert isinstance(at, int)  # noqa: S101
    return item.version <= at


def _not_kept(log: str, at: At) -> NotFound:
    return NotFound(
        f"its state at {_shown(at)} is not kept any more",
        where=_address(log),
        remedy="ask for a later one: the history says how far back it goes",
    )


def _shown(at: At) -> str:
    match at:
        case Time(ms):
            return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
        case datetime():
            return at.isoformat()
        case int():
            return f"version {at}"


def _address(log: str) -> str:
    return "the instance" if log == INSTANCE_LOG else f"table {log}"
