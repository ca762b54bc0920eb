"""Does a service's work as a run: queued and started, its lease kept, wishes obeyed, ended with what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from deployer.errors import CommitTimedOut, DeployerError, Interrupted, OutcomeUnknown
from deployer.services.options import options_of
from deployer.services.runs import HeldRun, begin_run, fail_dead_runs, start_run
from deployer.state import open_store
from deployer.state.json_values import JSON
from deployer.state.services import Figures, FinalStatus, ServiceKind
from deployer.state.store import StateStore
from deployer.tables.dataset import OpenTable, find_entry, open_entry
from deployer.tables.progress import OnProgress, Progress, untold

INTERRUPTED = "interrupted"  #: the reason of a run that was stopped with its process, and not for its own sake


class RunCancelled(Interrupted):
    """Somebody asked for the run's end; what it committed until then stands."""


class Outcome(Protocol):
    """What work came to, as far as its run's record tells it."""

    @property
    def status(self) -> FinalStatus: ...

    @property
    def why(self) -> str: ...

    @property
    def figures(self) -> Figures: ...


T = TypeVar("T", bound=Outcome)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who wants a run and why. With a `run_id` it is queued already; else it begins now, whether or not the service is
    attached; with a `new_id` under that, once however many ask."""

    run_id: str | None = None
    cause: str = "on demand"
    cluster: str | None = None
    author: str | None = None
    new_id: str | None = None


def as_run(
    store: StateStore,
    table_id: str,
    service: ServiceKind,
    asked: Asked,
    work: Callable[[str, OnProgress], T],
    on_progress: OnProgress = untold,
) -> T:
    """Does `work`, given the run's id and what it is to tell its progress, and gives what came of it.

    What it tells its progress raises RunCancelled when somebody asks for the end, waits while the run is paused, and
    raises Conflict when the run was lost. Raises Conflict when one of the service is queued or running already. A run
    whose work raises has FAILED, with the reason; or CANCELLED, for Interrupted.
    """
    fail_dead_runs(store, table_id)
    if asked.run_id is not None:
        held = start_run(store, table_id, asked.run_id)
    else:
        held = begin_run(
            store,
            table_id,
            service,
            cause=asked.cause,
            cluster=asked.cluster,
            author=asked.author,
            run_id=asked.new_id,
        )

    def told(now: Progress) -> None:
        _obey(held, now)
        on_progress(now)

    with held.kept():
        try:
            outcome = work(held.run_id, told)
        except BaseException as failure:
            _fail(held, failure)
            raise
    held.finish(outcome.status, figures=outcome.figures, reason=outcome.why)
    return outcome


def run_on_table(
    root: str,
    table: str,
    service: ServiceKind,
    options: Mapping[str, Any] | None,
    asked: Asked | None,
    on_progress: OnProgress | None,
    prepared: Callable[[OpenTable, Mapping[str, Any]], Callable[[str, OnProgress], T]],
) -> T:
    """Does as a run what `prepared` makes of the opened table and of the options that hold (see `options_of`).

    `table` is `database.name`, or the name alone when it is the only one. Raises NotFound, and as `as_run` does.
    """
    with closing(open_store(root)) as store:
        opened = open_entry(store, root, find_entry(store.instance().tables.values(), table))
        work = prepared(opened, options_of(opened.state, service, options))
        return as_run(store, opened.entry.table_id, service, asked or Asked(), work, on_progress or untold)


def _obey(held: HeldRun, now: Progress) -> None:
    progress: dict[str, JSON] = {"doing": now.doing, "done": now.done, "total": now.total, "unit": now.unit}
    with suppress(CommitTimedOut, OutcomeUnknown):  # the lease is kept by another thread, which tries again
        if held.wait_while_paused(progress) == "cancel":
            raise RunCancelled("the run was cancelled", remedy="what it had committed stands")


def _fail(held: HeldRun, failure: BaseException) -> None:
    stopped = isinstance(failure, Interrupted | KeyboardInterrupt)
    reason = str(failure) or (INTERRUPTED if stopped else type(failure).__name__)
    with suppress(DeployerError):  # a run that was lost is somebody else's to end
        held.finish("CANCELLED" if stopped else "FAILED", reason=reason)
