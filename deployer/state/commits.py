"""The commit loop: it checks the requirements of a transaction, stages its entries and writes them.

After a lost race it reads the newer entries and tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from deployer.errors import CommitTimedOut, Conflict, DeployerError, InvalidInput, OutcomeUnknown
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.platform.system.retry import Backoff, steady
from deployer.state.backends.protocol import Backend, Record
from deployer.state.log.cache import CachedState, StateCache
from deployer.state.log.entries import REQUIREMENTS, UPDATES, LogEntry, to_record
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.reducer import apply, empty_state
from deployer.state.log.requirements import InstanceRequirement, LogEmpty, Requirement, TableRequirement
from deployer.state.log.updates import CommitStarted, Update
from deployer.state.model.entities import INSTANCE_LOG

T = TypeVar("T")

LOST_RACE = Backoff(first=0.002, longest=0.5)  #: seconds; there is no wait after the first lost race (see `_pause`)
_NO_ANSWER = steady(0.5)


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a transaction in one log."""

    log: str
    updates: Sequence[Update]
    requirements: Sequence[Requirement] = ()


@dataclass(frozen=True, slots=True)
class _StagedCommit:
    entry: LogEntry
    record: Record
    after: CachedState


@dataclass(slots=True)
class _Trial:
    """The attempts to commit one transaction.

    `doubt` is a record that was sent and may still be written; `cause` is the reason for the doubt. `timeout` is in
    seconds.
    """

    logs: Sequence[str]
    timeout: float
    deadline: float
    attempts: int = 0
    doubt: Record | None = None
    cause: str = ""

    def timed_out(self, why: str) -> DeployerError:
        where = ", ".join(map(_address, self.logs))
        if self.doubt is not None:
            remedy = "try again with the same transaction id"
            cause = f": {self.cause}" if self.cause else ""
            return OutcomeUnknown(f"no answer within {self.timeout:g} s{cause}", where=where, remedy=remedy)
        return CommitTimedOut(
            f"{self.attempts} attempts within {self.timeout:g} s {why}",
            where=where,
            remedy="try again when there are fewer writers, or allow more time",
            attempts=self.attempts,
        )


class Committer:
    def __init__(self, backend: Backend, cache: StateCache, clock: Clock) -> None:
        self._backend, self._cache, self._clock = backend, cache, clock

    def commit(
        self, parts: Sequence[Part], *, txn_id: str | None, author: str, timeout: float, durable: bool
    ) -> dict[str, CachedState]:
        """Commits a transaction and returns the new state of each log. A transaction that is in the log already is not
        committed again.

        A transaction that is not `durable`, or that only records intents, becomes durable with the next durable commit
        of any process or the next `flush` of the backend.

        Raises Conflict when a requirement fails on the newest state, CommitTimedOut after `timeout` seconds, and
        OutcomeUnknown when no answer came and it is unknown whether the transaction was written.
        """
        parts = _normalised(parts)
        # An intent only shows readers what is running. The commit that it announces makes both durable.
        durable &= any(not isinstance(update, CommitStarted) for part in parts for update in part.updates)
        with self._backend.turn() as waited:
            known = self._commit(parts, txn_id, author, timeout, read_first=waited)
        if durable:
            self._backend.flush()  # the next writer holds the lock meanwhile
        return known

    def _commit(
        self, parts: Sequence[Part], txn_id: str | None, author: str, timeout: float, *, read_first: bool
    ) -> dict[str, CachedState]:
        logs = [part.log for part in parts]
        own_id = txn_id or self._clock.new_id()
        trial = _Trial(logs, timeout, self._clock.monotonic() + timeout)
        known, fresh = (self._newest(trial), True) if read_first else self._start(trial, parts)
        if self._is_done(trial, txn_id):
            return self._newest(trial)
        while True:
            try:
                # All logs of a transaction get the same time. Clocks differ between machines, and times in a log must
                # never decrease, so the time is at least that of the newest state.
                at = max(self._clock.now(), *(known[log].state.at for log in logs))
                staged = [self._stage(part, known[part.log], own_id, author, at) for part in parts]
            except Conflict:
                if fresh and self._is_done(trial, txn_id):
                    return self._newest(trial)
                if fresh:
                    raise
                known, fresh = self._newest(trial), True
                continue
            trial.attempts += 1
            records = [each.record for each in staged]
            try:
                reached("commit:before-put")
                written = self._backend.put(records)
            except OutcomeUnknown as unknown:
                trial.doubt, trial.cause, written = records[0], unknown.what, False
            if written:
                reached("commit:after-put")
                after = {part.log: each.after for part, each in zip(parts, staged, strict=True)}
                self._cache.keep(after.values())
                return after
            known, fresh = self._newest(trial), True
            if trial.doubt is not None:
                found = self._found_in_place_of(trial.doubt, known, trial)
                if found is not None and found.txn_id == own_id:
                    return known
                trial.doubt = None if found is not None else trial.doubt
            if self._is_done(trial, txn_id):
                return self._newest(trial)
            self._pause(trial)

    def _start(self, trial: _Trial, parts: Sequence[Part]) -> tuple[dict[str, CachedState], bool]:
        # A put succeeds only on the newest state, so the first attempt may stage on a cached state that may be old. A
        # log that is required to be empty is assumed to be empty.
        known = {
            part.log: held for part in parts if (held := self._cache.peek(part.log) or _if_empty(part)) is not None
        }
        return (known, False) if len(known) == len(trial.logs) else (self._newest(trial), True)

    def _newest(self, trial: _Trial) -> dict[str, CachedState]:
        return self._answered(lambda: self._cache.refresh(trial.logs), trial)

    def _is_done(self, trial: _Trial, txn_id: str | None) -> bool:
        # An id that this process made is in no log yet. An id from the caller may have been sent before.
        if txn_id is None:
            return False
        return self._answered(lambda: self._backend.find(trial.logs[0], txn_id), trial) is not None

    def _answered(self, read: Callable[[], T], trial: _Trial) -> T:
        """Returns the result of `read`, which is repeated while no answer comes. Raises the error of `timed_out` after
        the deadline."""
        while True:
            try:
                return read()
            except OutcomeUnknown as error:
                left = trial.deadline - self._clock.monotonic()
                if left <= 0:
                    raise trial.timed_out(f"found no answer: {error}") from error
                _NO_ANSWER.wait(1, self._clock, left)

    def _stage(self, part: Part, known: CachedState, txn_id: str, author: str, at: int) -> _StagedCommit:
        state = known.state
        for requirement in part.requirements:
            if (failure := requirement.failure(state)) is not None:  # type: ignore[arg-type]
                raise Conflict(failure, where=_address(part.log), remedy="read the newest state, and decide again")
        entry = LogEntry(
            log=part.log,
            version=state.version + 1,
            txn_id=txn_id,
            at=at,
            author=author,
            updates=tuple(part.updates),
            requirements=tuple(part.requirements),
        )
        try:
            after = apply(state, entry)
        except Inapplicable as error:
            raise Conflict(
                error.what, where=_address(part.log), remedy="read the newest state, and decide again"
            ) from None
        record = to_record(entry)
        return _StagedCommit(entry, record, replace(known, state=after, log_bytes=known.log_bytes + len(record.body)))

    def _found_in_place_of(self, sent: Record, known: Mapping[str, CachedState], trial: _Trial) -> Record | None:
        """Returns the record that the log has at the version of `sent`; None while the version is still free.

        Raises OutcomeUnknown when the log no longer has that version.
        """
        found = self._answered(lambda: self._backend.records(sent.log, sent.version - 1, 1), trial)
        if found and found[0].version == sent.version:
            return found[0]
        if known[sent.log].state.version < sent.version:
            return None
        raise OutcomeUnknown(
            f"the answer to transaction {sent.txn_id} was lost, and the log is no longer kept at its version",
            where=_address(sent.log),
            remedy="check the state before you try again",
        )

    def _pause(self, trial: _Trial) -> None:
        left = trial.deadline - self._clock.monotonic()
        if left <= 0:
            raise trial.timed_out("all lost against other writers")
        if trial.attempts == 1 and trial.doubt is None:
            return  # the attempt was staged on a cached state that was old; the state just read is the newest
        LOST_RACE.wait(trial.attempts - 1, self._clock, left)


def _normalised(parts: Sequence[Part]) -> list[Part]:
    """Returns the parts in the form in which a reader of the log gets them.

    Raises InvalidInput for parts that cannot be stored or cannot be in one transaction.
    """
    logs = [part.log for part in parts]
    if not parts or len(set(logs)) != len(logs):
        raise InvalidInput("a transaction needs at least one log, and each only once")
    normalised = []
    for part in parts:
        if not part.updates:
            raise InvalidInput("a transaction without updates has nothing to commit", where=_address(part.log))
        fitting = InstanceRequirement if part.log == INSTANCE_LOG else TableRequirement
        for requirement in part.requirements:
            if not isinstance(requirement, fitting):
                raise InvalidInput(f"{type(requirement).__name__} cannot be required here", where=_address(part.log))
        updates = tuple(UPDATES.decode(UPDATES.encode(update)) for update in part.updates)
        requirements = tuple(REQUIREMENTS.decode(REQUIREMENTS.encode(each)) for each in part.requirements)
        normalised.append(Part(part.log, updates, requirements))
    return normalised


def _if_empty(part: Part) -> CachedState | None:
    """Returns the state of an empty log for a part that requires an empty log; None for any other part."""
    return CachedState(empty_state(part.log)) if any(isinstance(each, LogEmpty) for each in part.requirements) else None


def _address(log: str) -> str:
    return "the instance" if log == INSTANCE_LOG else f"table {log}"
