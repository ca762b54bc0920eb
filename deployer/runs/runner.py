"""Runs a service as a recorded run, with its queue, lease, requests to cancel and pause, and outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from deployer.errors import CommitTimedOut, Conflict, DeployerError, Interrupted, OutcomeUnknown
from deployer.platform.files.json_values import JSON
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.runs.records import HeldRun, begin_runs, end_queued_run, fail_dead_runs, start_run
from deployer.state.model.services import Figures, FinalStatus, ServiceKind
from deployer.state.store import StateStore

INTERRUPTED = "interrupted"  #: the reason of a run that was stopped with its process


class RunCancelled(Interrupted):
    """The error that the run was cancelled; its earlier commits stay."""

    kind = "RunCancelled"


class Outcome(Protocol):
    """The outcome of the work, in the form of the run record."""

    @property
    def status(self) -> FinalStatus: ...

    @property
    def why(self) -> str: ...

    @property
    def figures(self) -> Figures: ...


T = TypeVar("T", bound=Outcome)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request for a run. With a `run_id`, the run is already queued. Otherwise it begins now, even if the service is
    not attached.

    Several requests with the same `new_id` begin one run. `target` and `job` are the fields of `Run`.
    """

    run_id: str | None = None
    cause: str = "on demand"
    cluster: str | None = None
    author: str | None = None
    new_id: str | None = None
    target: tuple[str, ...] = ()
    job: str = ""


def as_run(
    store: StateStore,
    table_id: str,
    service: ServiceKind,
    asked: RunRequest,
    work: Callable[[str, OnProgress], T],
    on_progress: OnProgress = no_progress,
) -> T:
    """Calls `work` with the run's id and a progress callback, and returns its outcome.

    The callback raises RunCancelled where the run is cancelled, waits while it is paused, and raises Conflict where the
    run was lost. Raises Conflict where a run of the service is already queued or running. If `work` raises an error,
    the run is FAILED with the reason, or CANCELLED for Interrupted.
    """

    def of_one(run_id: str, report_progress: OnProgress) -> Sequence[T]:
        return [work(run_id, report_progress)]

    if asked.run_id is None:
        [outcome] = as_runs(store, [table_id], service, asked, of_one, on_progress)
        return outcome
    fail_dead_runs(store, table_id)
    [outcome] = _worked([start_run(store, table_id, asked.run_id)], of_one, on_progress)
    return outcome


def as_runs(
    store: StateStore,
    table_ids: Sequence[str],
    service: ServiceKind,
    asked: RunRequest,
    work: Callable[[str, OnProgress], Sequence[T]],
    on_progress: OnProgress = no_progress,
) -> Sequence[T]:
    """Calls `work` once for several tables, with a run on each; returns the outcomes in the order of the tables.

    The runs have one id and begin together. Cancelling or pausing one of them applies to all. `asked` must not name a
    queued run. Raises the errors of `as_run`.
    """
    for table_id in table_ids:
        fail_dead_runs(store, table_id)
        _refuse_paused(store, table_id, service)
    held = begin_runs(
        store,
        table_ids,
        service,
        cause=asked.cause,
        cluster=asked.cluster,
        author=asked.author,
        run_id=asked.new_id,
        target=asked.target,
        job=asked.job,
    )
    return _worked(held, work, on_progress)


def _refuse_paused(store: StateStore, table_id: str, kind: ServiceKind) -> None:
    """Raises Conflict where the service is paused, as the commit that begins a run does, but with the table's name and
    a remedy."""
    service, entry = store.table(table_id).services.get(kind), store.instance().tables.get(table_id)
    if service is None or not service.paused or entry is None:
        return
    name = entry.full_name
    remedy = f"run `deployer service resume {name} {kind}` first"
    raise Conflict(f"the {kind} service is paused", where=f"table/{name}", remedy=remedy)


def _worked(
    runs: Sequence[HeldRun], work: Callable[[str, OnProgress], Sequence[T]], on_progress: OnProgress
) -> Sequence[T]:
    """Runs the work, and ends each run with its own outcome."""

    def report_progress(now: Progress) -> None:
        for held in runs:
            _obey(held, now)
        on_progress(now)

    with ExitStack() as kept:
        for held in runs:
            kept.enter_context(held.kept())
        try:
            outcomes = work(runs[0].run_id, report_progress)
        except BaseException as failure:
            for held in runs:
                _fail(held, failure)
            raise
    for held, outcome in zip(runs, outcomes, strict=True):
        held.finish(outcome.status, figures=outcome.figures, reason=outcome.why)
    return outcomes


def failure_of(failure: BaseException) -> tuple[FinalStatus, str]:
    """Returns the final status and the reason of a run whose work raised `failure`."""
    stopped = isinstance(failure, Interrupted | KeyboardInterrupt)
    return "CANCELLED" if stopped else "FAILED", str(failure) or (INTERRUPTED if stopped else type(failure).__name__)


@contextmanager
def ending_unbegun(store: StateStore, table_id: str, run_id: str) -> Iterator[None]:
    """Ends a queued run where an error in this context prevents its start, such as another run that excludes it.

    It is for the process that would start the run. A run that has begun is not changed.
    """
    try:
        yield
    except (DeployerError, KeyboardInterrupt) as failure:
        stopped = isinstance(failure, Interrupted | KeyboardInterrupt)
        why = failure.what if isinstance(failure, DeployerError) else INTERRUPTED
        with suppress(DeployerError):
            status: FinalStatus = "CANCELLED" if stopped else "FAILED"
            end_queued_run(store, table_id, run_id, status, reason=f"it could not begin: {why}")
        raise


def _obey(held: HeldRun, now: Progress) -> None:
    progress: dict[str, JSON] = {"doing": now.doing, "done": now.done, "total": now.total, "unit": now.unit}
    with suppress(CommitTimedOut, OutcomeUnknown):  # the thread that keeps the lease tries again
        if held.wait_while_paused(progress) == "cancel":
            raise RunCancelled("the run was cancelled", remedy="what it had committed is kept")


def _fail(held: HeldRun, failure: BaseException) -> None:
    status, reason = failure_of(failure)
    with suppress(DeployerError):  # another process ends a lost run
        held.finish(status, reason=reason)
