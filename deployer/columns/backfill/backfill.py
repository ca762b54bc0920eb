"""`backfill`: computes the values of a column as a recorded run, which can be resumed by its job id."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deployer.columns.backfill.blobs import BlobInputs
from deployer.columns.backfill.definition import Definition, FunctionDefinition
from deployer.columns.backfill.engine_choice import Sizes, choose_engine, executor_of
from deployer.columns.backfill.error_share import ErrorShare
from deployer.columns.backfill.failed_rows import FailedRows, errors_of
from deployer.columns.backfill.request import BackfillRequest
from deployer.columns.backfill.results import BackfillJobResult
from deployer.columns.backfill.selection import Selection, named_fragments
from deployer.columns.backfill.values import ComputedValues
from deployer.columns.fill.checkpoints import JobFolder
from deployer.columns.fill.commit import Filling
from deployer.columns.fill.executor import Executor
from deployer.columns.fill.job_ids import other_job, refuse_used_id
from deployer.columns.fill.run import FillRun, FillSizes
from deployer.columns.fill.work import FragmentWork, Target
from deployer.errors import Conflict, InvalidInput, Refused
from deployer.functions.error_policy import ErrorPolicy
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.runs.runner import RunRequest, as_run
from deployer.specs.types.arrow import columns_of
from deployer.state.model.entities import Job as DoneJob
from deployer.state.model.services import ServiceKind
from deployer.tables.open_table import OpenTable, ReadTable, open_entry
from deployer.tables.rows.matching import scanned

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

KIND: ServiceKind = "BACKFILL"

Define = Callable[[ReadTable], Definition]  #: returns the definition of the column to compute; see `resolve`


@dataclass(frozen=True, slots=True)
class BackfillJob:
    """A backfill of one table as a job. `is_new` states that the job's id was just made, so that no job can have it.

    `executor` writes the fragments; None chooses the executor by the request's engine. `cluster` returns the sizes of a
    local Spark session; None stands for the declared local cluster. `on_engine` gets the engine and the reason for it.
    """

    table: OpenTable
    request: BackfillRequest
    job_id: str
    is_new: bool = False
    executor: Executor | None = None
    cluster: Sizes | None = None
    on_engine: Callable[[str, str], None] = lambda _engine, _reason: None

    @property
    def kind(self) -> str:
        return f"backfill {self.request.column}"


def backfill(job: BackfillJob, define: Define, on_progress: OnProgress = no_progress) -> BackfillJobResult:
    """Computes the column as a run of BACKFILL, by the definition that `define` returns.

    With the id of a completed job, nothing is written; with the id of an interrupted job, the rest is written. Raises
    InvalidInput, NotFound and Refused for a column that cannot be computed; then nothing is changed. Raises
    FunctionFailed where the function's error policy ends the work. Raises Conflict where another run writes the column,
    or where a change of the table prevents the rest of the work; committed values stay.
    """
    table, request = job.table, job.request
    table.refuse_view()
    if (done := table.state.jobs.get(job.job_id)) is not None:
        if done.kind != job.kind:
            raise other_job(table, job.job_id, f"a job of kind {done.kind} had it")
        _refuse_done_otherwise(job, done, define)
        return BackfillJobResult(job.job_id, request.column, already_done=True)
    if not job.is_new:
        refuse_used_id(table, job.job_id)
    require_online(table)
    definition = define(table)
    if not job.is_new:
        JobFolder(table.root, table.entry.table_id, job.job_id).require_same(
            document_of(job, definition), table.address
        )
    selection = Selection(request, definition.identities, named_fragments(table, request))
    check_condition(table, selection)
    run_request = RunRequest(cause=f"job {job.job_id}", target=tuple(definition.identities), job=job.job_id)
    engine, reason = choose_engine(request.engine, _most_rows(table, selection))
    definition.require_portable(engine)
    job.on_engine(engine, reason)
    chosen = replace(job, executor=job.executor or executor_of(engine, table, request, job.cluster))

    def work(run_id: str, report_progress: OnProgress) -> BackfillJobResult:
        return replace(compute(chosen, definition, selection, run_id, report_progress), engine=engine)

    return as_run(table.store, table.entry.table_id, KIND, run_request, work, on_progress)


def _refuse_done_otherwise(job: BackfillJob, done: DoneJob, define: Define) -> None:
    """Raises InvalidInput where the completed job had another function or condition, or other fragments.

    Does nothing where the job's record does not state these, as in records of earlier releases.
    """
    if not done.sources:
        return
    known, wanted = json.loads(done.sources), document_of(job, define(job.table))
    column = job.request.column
    for document in (known, wanted):  # other columns of the same calls may have been added or dropped since
        document["function"] = document["function"].get(column)
    if differing := sorted(name for name in wanted if known.get(name) != wanted[name]):
        raise InvalidInput(
            f"job {job.job_id} was done with another {' and another '.join(differing)}",
            where=job.table.address,
            remedy="give this job another job id",
        )


def _most_rows(table: ReadTable, selection: Selection) -> int:
    """Returns the largest possible number of rows to compute, without opening a file."""
    if selection.request.where is not None and not selection.request.is_of_all:
        return table.state.files.rows
    return sum(file.rows for file in selection.recorded(table.state, table.dataset()))


def require_online(table: ReadTable) -> None:
    """Raises Refused for a table that is offline."""
    if not table.state.properties.online:
        raise Refused("the table is offline", where=table.address, remedy="set it online first")


def check_condition(table: ReadTable, selection: Selection) -> None:
    """Raises InvalidInput for a condition that Lance does not accept. Reads no more than a first batch."""
    where = selection.request.where
    if where is None or selection.request.is_of_all:
        return
    dataset = table.dataset()
    condition = selection.condition(table, dataset)
    place = (table.location, table.address)
    for _ in scanned(place, dataset, [], (), condition.sql, condition, with_ids=False):
        break


def compute(
    job: BackfillJob, definition: Definition, selection: Selection, run_id: str, on_progress: OnProgress
) -> BackfillJobResult:
    """Does the work of the job's run `run_id`, which must be running."""
    begun = time.monotonic()
    table = open_entry(job.table.store, job.table.root, job.table.store.instance().tables[job.table.entry.table_id])
    run = table.state.runs[run_id]
    request, entry = job.request, table.entry
    if table.state.dataset != job.table.state.dataset:
        raise Conflict("the table was rewritten meanwhile", where=table.address, remedy="run it again")
    sizes = FillSizes(request.commit_granularity, request.concurrency, request.checkpoints)
    failed = FailedRows(
        table.root, entry.table_id, table.address, job.job_id, request.column, entry.dataset, table.row_keys
    )
    inputs = [column for column in columns_of(table.schema) if column.name in definition.inputs]
    threads = max(1, min(request.concurrency, os.cpu_count() or 1))
    blobs = BlobInputs.of(inputs, request.blob_strategy, request.blob_buffer, threads)
    share = ErrorShare(_policy(definition), definition.name, table.root, entry.table_id, job.job_id)
    values = ComputedValues(definition, failed, blobs, share)
    choice = _Choice(selection, values)
    document = document_of(job, definition)
    filling = Filling(
        store=table.store,
        root=table.root,
        entry=entry,
        job_id=job.job_id,
        run_id=run_id,
        holder=run.holder or "",
        kind=job.kind,
        target=Target(tuple(definition.columns)),
        inputs=definition.inputs,
        identities=definition.identities,
        completes=choice.completes,
        select=choice.of,
        admit=share.require,
        asked=json.dumps(document, ensure_ascii=False),
    )
    filler = FillRun(filling, values, values, sizes, document, on_progress, job.executor)
    try:
        stats = filler.fill()
    finally:
        values.close()
    reached("columns.backfill.filled")
    after = table.store.table(entry.table_id).lance_version
    return BackfillJobResult(
        job_id=job.job_id,
        column=request.column,
        version=definition.version,
        run_id=run_id,
        rows=choice.rows if request.where is not None and not request.is_of_all else stats.rows,
        errors=errors_of(table.root, entry.table_id, job.job_id).rows,
        seconds=time.monotonic() - begun,
        already_done=False,
        stats=stats,
        lance_version_before=table.state.lance_version,
        lance_version_after=after,
        siblings=tuple(name for name in definition.identities if name != request.column),
    )


def _policy(definition: Definition) -> ErrorPolicy | None:
    return definition.udf.on_error if isinstance(definition, FunctionDefinition) else None


def document_of(job: BackfillJob, definition: Definition) -> dict[str, Any]:
    """Returns a description of the job, by which a resumed job is checked to be the same."""
    request = job.request
    return {
        "kind": KIND,
        "column": request.column,
        "function": dict(definition.identities),
        "condition": request.where,
        "read_version": request.read_version,
        "num_frags": request.num_frags,
        "skip_frags": request.skip_frags,
    }


class _Choice:
    """The chosen fragments of a run, and the conditions on their rows."""

    def __init__(self, selection: Selection, values: ComputedValues) -> None:
        self._selection, self._values = selection, values
        self._counted: dict[FragmentWork, int] = {}
        self._complete: dict[int, bool] = {}

    @property
    def rows(self) -> int:
        """The number of rows in the chosen fragments for which the condition is true."""
        return self._selection.rows_of(list(self._counted))

    def completes(self, fragment_id: int) -> bool:
        """Returns whether the definition has computed all rows of the fragment once the fragment is committed."""
        return self._complete.get(fragment_id, False)

    def of(self, table: ReadTable, dataset: LanceDataset, works: Sequence[FragmentWork]) -> list[FragmentWork]:
        chosen = self._selection.chosen(table, dataset, works)
        conditions = {each.work.fragment_id: each.condition for each in chosen}
        self._values.conditions = {**self._values.conditions, **conditions}
        self._complete.update((each.work.fragment_id, each.completes) for each in chosen)
        self._counted.update((each.work, 0) for each in chosen)
        return [each.work for each in chosen]
