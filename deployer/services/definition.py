"""A table service as one value: its kind, its options, its work, its forecast and the kinds that it excludes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from deployer.errors import DeployerError, Refused
from deployer.live.services import fault_of
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.runs.runner import Outcome, RunRequest, as_run
from deployer.specs.serialized.service_options import options_from_text, options_of_values
from deployer.state import open_store
from deployer.state.model.entities import TableState
from deployer.state.model.services import EXCLUDES, ServiceKind
from deployer.tables.open_table import OpenTable, ReadTable, find_entry, open_entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.compute.spark.local import LocalCluster
    from deployer.runs.rewriting.run import Engine
    from deployer.runs.rewriting.tasks import Task

OptionsT = TypeVar("OptionsT")
ResultT = TypeVar("ResultT", bound=Outcome)


@dataclass(frozen=True, slots=True)
class Work(Generic[OptionsT]):
    """The input of one run of a service. `session` starts Spark where it is called; `now` is in seconds since 1970,
    None for the clock's. `is_own`: the options are those of the table's own service."""

    table: OpenTable
    options: OptionsT
    run_id: str
    on_progress: OnProgress
    session: Callable[[], SparkSession]
    engine: Engine
    is_own: bool
    now: float | None


@dataclass(frozen=True, slots=True)
class ServiceDefinition(Generic[OptionsT, ResultT]):
    """A table service. Its package defines the one value, and `deployer.services.registry` has all of them.

    - `options` reads options in canonical form: sizes in bytes. `deployer.specs.schema.services` has their schema.
    - `work` does a run, and `result` returns the type of its result; it is a function to keep imports fast. -
      `forecast` describes the next run; it changes nothing and reads no rows. - `pending` returns what a run that
      begins now would rewrite, from the table's state and the number of deleted rows of each fragment. Where it is
      given, a trigger starts the service only if there is something to rewrite.
    - `failure` is the error of a run that ended as FAILED and yet has a result.
    """

    kind: ServiceKind
    options: Callable[[Mapping[str, Any]], OptionsT]
    work: Callable[[Work[OptionsT]], ResultT]
    result: Callable[[], type[ResultT]]
    forecast: Callable[[ReadTable], str]
    pending: Callable[[TableState, Mapping[int, int]], Sequence[Task]] | None = None
    failure: Callable[[ResultT], DeployerError | None] = lambda _result: None

    @property
    def exclusive_with(self) -> tuple[ServiceKind, ...]:
        """Kinds whose runs exclude runs of this kind. The state store enforces it in each transaction."""
        return EXCLUDES[self.kind]

    def run(
        self,
        root: str,
        table: str,
        options: Mapping[str, Any] | None = None,
        *,
        cluster: Callable[[], LocalCluster] | None = None,
        engine: Engine = "auto",
        on_progress: OnProgress | None = None,
        asked: RunRequest | None = None,
        now: float | None = None,
    ) -> ResultT:
        """Runs the service on `table` (`database.name`, or the name alone when it is the only one) at `root`.

        `options` are in canonical form; None takes those of the table's own service. `cluster` is called when the work
        needs Spark; `asked` names a queued run, or the reason for a new one. Services that commit in portions return
        their committed work with status CANCELLED when they are cancelled or interrupted.

        Raises NotFound, InvalidInput, Refused for an invalid service in the state, Interrupted, Conflict when the
        service or one of `exclusive_with` is running already, and what `failure` returns.
        """
        from deployer.compute.spark.local import LocalCluster

        def session() -> SparkSession:
            from deployer.compute.spark.local import job_session

            return job_session(cluster or LocalCluster)

        with closing(open_store(root)) as store:
            opened = open_entry(store, root, find_entry(store.instance().tables.values(), table))
            chosen = self.options(options_of(opened.state, self.kind, options))
            is_own = options is None and self.kind in opened.state.services

            def work(run_id: str, report_progress: OnProgress) -> ResultT:
                current = opened.refreshed()
                return self.work(Work(current, chosen, run_id, report_progress, session, engine, is_own, now))

            table_id = opened.entry.table_id
            done = as_run(store, table_id, self.kind, asked or RunRequest(), work, on_progress or no_progress)
        if (failure := self.failure(done)) is not None:
            raise failure
        return done


def options_of(state: TableState, kind: ServiceKind, given: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Returns the given options, otherwise those of the table's own service, otherwise none; in canonical form.

    Raises InvalidInput for options that this release does not know, and Refused for a service in the state that no spec
    can declare: both may have been stored unchecked.
    """
    service = state.services.get(kind)
    if given is not None or service is None:
        return options_of_values(kind, given or {})
    if not service.unsafe_raw and (wrong := fault_of(service)):
        raise Refused(
            f"the {kind} service that the state holds is not valid, so it is not run: {wrong}",
            where=f"table {state.table_id}",
            remedy="`deployer state log` shows who put it there; `deployer up` puts back what the specs declare",
        )
    if service.unsafe_raw:
        return options_from_text(kind, {name: str(value) for name, value in service.options.items()})
    return service.options
