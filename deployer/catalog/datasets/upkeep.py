"""Runs maintenance of datasets as recorded runs: each has a lease, as runs of table services do, in a log of the
dataset's tables.

COMPACT rewrites each table as one fragment and updates search indexes; CLEAN removes old versions. A dataset has at
most one run of each kind at a time. A run whose process dies fails when its lease expires; then the next may begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from deployer.catalog.datasets.maintenance import EVERYTHING, Maintenance, maintain, remove_leftovers, require_age
from deployer.catalog.datasets.model.record import DatasetRecord
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.model.rows import LAYERS
from deployer.catalog.datasets.search.searches import Searches
from deployer.errors import Conflict, NotFound
from deployer.platform.files.json_values import JSON
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.runs.records import runs_of
from deployer.runs.runner import RunRequest, as_run
from deployer.services.savepoints.savepoints import expire_catalog_savepoints
from deployer.state.log.requirements import LogEmpty
from deployer.state.log.updates import CreateTable
from deployer.state.model.entities import TableProperties
from deployer.state.model.services import Figures, FinalStatus, Run, ServiceKind
from deployer.state.reader import StateReader


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The result of a run. `done` has a sentence for each thing that was done. The run is SKIPPED if there was nothing
    to do."""

    done: tuple[str, ...]
    figures: Figures = field(default_factory=Figures)

    @property
    def status(self) -> FinalStatus:
        return "SUCCEEDED" if self.done else "SKIPPED"

    @property
    def why(self) -> str:
        return "" if self.done else "there was nothing to do"


def maintain_as_runs(
    datasets: Datasets, searches: Searches, dataset_id: str, wanted: Maintenance, cause: str
) -> list[str]:
    """Does the `wanted` work for one dataset, as runs of COMPACT and CLEAN; returns a sentence for each thing that was
    done.

    Raises NotFound for an unknown dataset, InvalidInput for a `clean_before` that is too recent (then nothing is done),
    and Conflict where a run of the same kind is running.
    """
    require_age(datasets, wanted)
    rewriting = replace(wanted, clean_before=None)
    cleaning = Maintenance(clean_before=wanted.clean_before, allow_recent=wanted.allow_recent)
    done = list[str]()
    if rewriting.compact or rewriting.optimize_indexes or rewriting.retrain_indexes:
        done += _run(datasets, searches, dataset_id, rewriting, "COMPACT", cause)
    if cleaning.clean_before is not None:
        done += _run(datasets, searches, dataset_id, cleaning, "CLEAN", cause)
    return done


def maintain_all(
    datasets: Datasets,
    searches: Searches,
    wanted: Maintenance = EVERYTHING,
    report_progress: OnProgress = no_progress,
) -> Iterator[tuple[str, str]]:
    """Does the `wanted` work for all datasets; removes expired savepoints of the catalog, and leftovers of killed
    processes.

    Yields pairs of a dataset's name and a sentence; the name is empty for a sentence that is not about a dataset. A
    dataset that is deleted meanwhile, or that has such a run already, is skipped. `report_progress` counts the
    completed datasets, including those with nothing to do.
    """
    for name in expire_catalog_savepoints(datasets.store, datasets.clock.now()):
        yield "", f"The savepoint {name} was removed: its time is over."
    every = list(datasets.all())
    for number, each in enumerate(every):
        report_progress(Progress("compacting and indexing", number, len(every), "datasets"))
        with suppress(NotFound, Conflict):
            for sentence in maintain_as_runs(datasets, searches, each.dataset_id, wanted, "maintenance of all"):
                yield each.name, sentence
    report_progress(Progress("compacting and indexing", len(every), len(every), "datasets"))
    for folder in remove_leftovers(datasets, searches):
        yield "", f"{folder} was removed: no log names it."


def maintenance_runs(store: StateReader, record: DatasetRecord) -> list[Run]:
    """Returns the kept runs of a dataset's maintenance, the newest first."""
    with suppress(NotFound):  # the dataset had no run yet
        return runs_of(store.table(record.log))
    return []


def log_of_runs(datasets: Datasets, record: DatasetRecord) -> str:
    """Returns the name of the log that has the runs of a dataset's maintenance; creates the log if it does not
    exist."""
    with suppress(Conflict):  # another process created the log
        if not maintenance_runs(datasets.store, record):
            created = CreateTable(TableProperties(), LAYERS.serialize().to_pybytes(), record.layers.version)
            datasets.store.commit(record.log, [created], [LogEmpty()])
    return record.log


def _run(
    datasets: Datasets, searches: Searches, dataset_id: str, wanted: Maintenance, kind: ServiceKind, cause: str
) -> Sequence[str]:
    store, log = datasets.store, log_of_runs(datasets, datasets.by_id(dataset_id))

    def work(_run_id: str, report_progress: OnProgress) -> Upkeep:
        report_progress(Progress("maintaining the dataset's tables", 0, 1, "datasets"))
        before = _rows(datasets.by_id(dataset_id))
        done = maintain(datasets, searches, dataset_id, wanted)
        return Upkeep(tuple(done), Figures(before=before, after=_rows(datasets.by_id(dataset_id))))

    return as_run(store, log, kind, RunRequest(cause=cause), work).done


def _rows(record: DatasetRecord) -> dict[str, JSON]:
    return {"layers": record.layers.rows, "chunks": record.chunks.rows, "tasks": record.tasks.rows}
