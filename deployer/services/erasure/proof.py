"""The proof of an erasure: the remaining data is read again, and every file is searched for values of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import dataset_uri
from deployer.live.former_datasets import former_datasets
from deployer.platform.system.progress import OnProgress, Progress
from deployer.services.erasure.counting import Values
from deployer.services.erasure.history import has_keys
from deployer.services.erasure.planning import plan_erasure
from deployer.services.erasure.results import ErasurePlan
from deployer.services.erasure.scan import SEARCHED
from deployer.services.erasure.search_tasks import SearchTask, grouped_files, staying_tasks
from deployer.state.model.entities import TableState
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.tasks import RunTasks, first_error

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

STATE = "_state"  #: the folder of the state store below the root
#: deployer's other folders below the root that may contain texts of rows, such as logs of jobs
OTHERS = ("_jobs", "_runs", "_uploads", "_job-logs", "__manifest")


@dataclass(frozen=True, slots=True)
class SearchFigures:
    """The numbers of searched files and values. `found` are the files with a value, relative to the root."""

    files: int
    values: int
    found: tuple[str, ...]
    notes: tuple[str, ...] = ()


def proven(
    table: OpenTable, where: str, values: Values, on_progress: OnProgress, run_tasks: RunTasks
) -> tuple[ErasurePlan, SearchFigures]:
    """Returns the remains of the rows: every file is read again, and searched for values that no other row has."""
    on_progress(Progress("reading what is left", 0, None, "versions"))
    left = plan_erasure(table, where, Values(values.columns), run_tasks)
    on_progress(Progress("searching files", 0, None, "files"))
    dataset = table.dataset()
    searched = _searched(table, dataset, _only_theirs(table, dataset, values, run_tasks), run_tasks)
    if has_keys(table, frozenset(values.keys)):
        kept = ", ".join(sorted(table.state.savepoints))
        note = f"past states have row keys of the rows as bounds of files, and are kept for savepoints {kept}"
        searched = replace(searched, notes=(*searched.notes, f"{note}: delete these and run this again"))
    return left, searched


def _only_theirs(table: OpenTable, dataset: LanceDataset, values: Values, run_tasks: RunTasks) -> frozenset[bytes]:
    """Returns the values that no remaining row has."""
    there = {name: frozenset(found) for name, found in values.found.items() if name in dataset.schema.names and found}
    done = run_tasks(dataset, list(staying_tasks(table.location, dataset, there)))
    if error := first_error(done):
        raise error
    left: set[bytes] = set()
    for name, found in values.found.items():
        left |= found.difference(*(each.values.get(name, frozenset()) for each in done))
    return frozenset(left)


def _searched(table: OpenTable, dataset: LanceDataset, sought: frozenset[bytes], run_tasks: RunTasks) -> SearchFigures:
    """Searches for at most SEARCHED of the values, evenly chosen."""
    every = sorted(sought)
    chosen = frozenset(every[:: -(-len(every) // SEARCHED)] if len(every) > SEARCHED else every)
    files, groups = 0, list[tuple[str, tuple[str, ...]]]()
    for folder in _folders(table):
        of_folder = objects_at(dataset_uri(table.root, folder)).described("")
        found = [each for each in of_folder if folder != STATE or _is_of(table, each.path)]
        files += len(found)
        groups += [(folder, paths) for paths in grouped_files(found)]
    rows = table.state.files.rows // max(1, len(groups))
    tasks = [
        SearchTask(table.location, int(dataset.version), dataset_uri(table.root, folder), paths, chosen, rows)
        for folder, paths in groups
        if chosen
    ]
    done = run_tasks(dataset, tasks)
    if error := first_error(done):
        raise error
    having = tuple(f"{folder}/{path}" for (folder, _), each in zip(groups, done, strict=False) for path in each.paths)
    notes = tuple(f"{each} has a value of the rows: {_remedy(each, table.state)}" for each in having)
    return SearchFigures(files, len(chosen), having, notes)


def _folders(table: OpenTable) -> Iterator[str]:
    yield str(table.entry.location)
    yield from (str(each.location) for each in former_datasets(table.state))
    yield from (STATE, *OTHERS)


def _is_of(table: OpenTable, path: str) -> bool:
    """Returns whether a file of the state store has data of this table: its snapshots, and the common database."""
    return not path.startswith("snapshots/") or table.entry.table_id in path


def _remedy(path: str, state: TableState) -> str:
    if path.startswith(STATE):
        if state.savepoints:
            return f"past states are kept for savepoints {', '.join(sorted(state.savepoints))}"
        return "it is a split point, or a process has the state open: close it and run this again"
    if "/data/" in path:
        return "no version has the file, or running work needs it; `deployer table gc` removes it once it is old enough"
    return "look at it, and run this again when nothing uses it"
