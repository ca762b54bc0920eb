"""Commits files with values of columns, by the protocol of `deployer.datasets.commit.protocol`.

The record of a commit is read from the dataset. Therefore the process itself and the roll-forward record the same. A
commit leaves out fragments that other writers rewrote, or whose inputs they changed: the run computes these again.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deployer.columns.fill.checkpoints import Checkpoint
from deployer.columns.fill.work import FragmentWork, Target, works_of
from deployer.datasets.commit.protocol import Committed, TableCommits
from deployer.datasets.commit_metadata import CommitMetadata, ComputedFragments
from deployer.datasets.dataset import dataset_location, field_ids, ids_by_column, open_dataset
from deployer.datasets.errors import first_line
from deployer.datasets.files.column_files import ColumnFile
from deployer.datasets.lance_transactions import FillColumns, InDoubt, NotTaken
from deployer.datasets.recovery.rollforward import current
from deployer.errors import Conflict, OutcomeUnknown
from deployer.platform.system.failpoints import reached
from deployer.platform.system.retry import Backoff
from deployer.specs.types.arrow import columns_of
from deployer.state.log.service_updates import FragmentsClaimed
from deployer.state.log.updates import CommitAbandoned, FilesAdded
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_claim, to_fill_columns
from deployer.tables.ingest.commit.unique_keys import dead_loads
from deployer.tables.open_table import ReadTable

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

ATTEMPTS = 30  #: attempts of a commit while other writers commit first
_BACKOFF = Backoff(first=0.04, longest=2.0)


Select = Callable[[ReadTable, "LanceDataset", Sequence[FragmentWork]], list[FragmentWork]]


@dataclass(frozen=True, slots=True)
class Filling:
    """A run that writes columns: its table, its job, and the columns. `holder` is the process that holds the run.

    `identities` are those of the definitions that compute the values, by column; empty where no definition computes
    them. `completes` returns whether these definitions have computed all rows of a fragment after its commit. `select`
    returns the fragments to write, out of the unfinished fragments; None writes all. `admit` is called before values
    are committed, and raises an error to forbid the commit.
    """

    store: StateStore
    root: str
    entry: TableEntry
    job_id: str
    run_id: str
    holder: str
    kind: str
    target: Target
    inputs: tuple[str, ...]
    identities: Mapping[str, str] = field(default_factory=dict)
    completes: Callable[[int], bool] = lambda _: True
    select: Select | None = None
    admit: Callable[[], None] = lambda: None
    asked: str = ""  #: the JSON description of the job for its record; empty for none

    @property
    def address(self) -> str:
        return f"table/{self.entry.full_name}"

    @property
    def location(self) -> str:
        """The path or URI of the Lance dataset."""
        return dataset_location(self.root, self.entry)

    def claim(self, fragment_ids: Sequence[int]) -> bool:
        """Claims these fragments instead of the fragments claimed before; returns whether all of them still exist.

        Raises Conflict where the run was ended or taken over, or the table was rewritten.
        """
        ids = tuple(sorted(fragment_ids))
        required = to_claim(self.run_id, self.holder, ids, self.entry.dataset)
        try:
            self.store.commit(self.entry.table_id, [FragmentsClaimed(self.run_id, ids)], required)
        except Conflict:
            self.require_held(self.store.table(self.entry.table_id))
            return False
        return True

    def require_held(self, state: TableState) -> None:
        """Raises Conflict where this process no longer holds the run, or the table has another dataset."""
        if state.dataset != self.entry.dataset:
            raise self.conflict("the table was rewritten meanwhile")
        run = state.runs.get(self.run_id)
        if run is None or run.status != "RUNNING" or run.holder != self.holder:
            raise self.conflict(f"run {self.run_id} was ended or taken over")

    def conflict(self, why: str) -> Conflict:
        names = ", ".join(self.target.names)
        return Conflict(
            f"job {self.job_id}, which writes {names}, cannot continue: {why}",
            where=self.address,
            remedy=f"what was committed stays; run it again with the job id {self.job_id} to resume it",
        )

    def require_columns(self, dataset: LanceDataset) -> None:
        """Raises Conflict where a column of the run was dropped or renamed, or has another type."""
        now = {column.name: column.type for column in columns_of(dataset.schema)}
        for column in self.target.columns:
            if now.get(column.name) != column.type:
                what = "has another type now" if column.name in now else "was dropped or renamed"
                raise self.conflict(f"column {column.name} {what}")
        for name in self.inputs:
            if name not in now:
                raise self.conflict(f"column {name}, which it reads, was dropped or renamed")


def commit_columns(filling: Filling, checkpoints: Sequence[Checkpoint]) -> set[int]:
    """Commits the files of fragments as one version of the dataset; returns the ids of the committed fragments.

    Where fragments have values in only some of the columns, there are two versions (see `work.column_groups`). Raises
    Conflict where the run was ended or taken over, the table was rewritten or a column was changed. Raises
    OutcomeUnknown where it is unknown whether Lance committed.
    """
    files = [(checkpoint, file) for checkpoint in checkpoints for file in checkpoint.files]
    kinds = sorted({tuple(file.metadata["fields"]) for _, file in files})
    committed = set[str]()
    for kind in kinds:
        chosen = [(checkpoint, file) for checkpoint, file in files if tuple(file.metadata["fields"]) == kind]
        committed |= _of_one_kind(filling, chosen)
    return {each.work.fragment_id for each in checkpoints if each.paths <= committed}


def _of_one_kind(filling: Filling, chosen: Sequence[tuple[Checkpoint, ColumnFile]]) -> set[str]:
    """Commits files with the same columns; returns the paths of the files that the dataset has afterwards."""
    commits = TableCommits(filling.store, filling.root, filling.entry)
    for _ in _BACKOFF.attempts(ATTEMPTS):
        with filling.store.turn(filling.entry.table_id):
            attempt = _sent(commits, filling, chosen)  # it has closed the version that it opened
            if attempt is None:
                continue
            if attempt.job_id is not None:
                commits.record_as_found(attempt.job_id)
                reached("columns.commit.after-state")
            return attempt.paths
    raise filling.conflict("other processes commit to the table faster than it can")


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The paths of the files that the dataset has afterwards, and the id of the commit to record; None where none was
    needed."""

    paths: set[str]
    job_id: str | None


def _sent(commits: TableCommits, filling: Filling, chosen: Sequence[tuple[Checkpoint, ColumnFile]]) -> _Attempt | None:
    """Commits to Lance the files that the newest version lacks. Returns None where another commit was first."""
    entry = filling.entry
    now, state = current(filling.store, filling.root, entry, filling.store.table(entry.table_id))
    if now.dataset != entry.dataset:
        raise filling.conflict("the table was rewritten meanwhile")
    dataset = open_dataset(commits.location, state.lance_version)
    filling.require_columns(dataset)
    ids = [each.work.fragment_id for each, _ in chosen]
    present = {work.fragment_id: work for work in works_of(dataset, filling.target, filling.inputs, ids)}
    same = [
        (present[each.work.fragment_id], file)
        for each, file in chosen
        if each.work.fragment_id in present and each.holds(entry.dataset, present[each.work.fragment_id])
    ]
    missing = [file for work, file in same if file.path not in work.outputs]
    paths = {file.path for _, file in same}
    if not missing:
        return _Attempt(paths, None)
    job_id = _committed(commits, filling, state, dataset, missing)
    return None if job_id is None else _Attempt(paths, job_id)


def _committed(
    commits: TableCommits, filling: Filling, state: TableState, dataset: LanceDataset, files: Sequence[ColumnFile]
) -> str | None:
    """Sends one commit, and returns its id; None where it has to be prepared again on a newer version."""
    job_id = f"{filling.job_id}-{uuid.uuid4().hex[:8]}"  # the job's own id is for the whole job; see `_dead`
    required = to_fill_columns(job_id, filling.run_id, filling.holder, state.schema, filling.entry.dataset)
    reached("columns.commit.before-intent")
    try:
        intent = commits.begin([(job_id, filling.kind)], state.lance_version, required, _dead(filling, state))
    except Conflict:
        filling.require_held(filling.store.table(filling.entry.table_id))
        return None
    reached("columns.commit.before-lance")
    info = CommitMetadata(
        job_id, filling.kind, sum(each.rows for each in files), computed=_computed(filling, dataset, files)
    )
    outcome = commits.send(commits.prepare(intent.state, dataset, FillColumns(files), [info]))
    match outcome:
        case Committed():
            reached("columns.commit.after-lance")
            return job_id
        case NotTaken(reason=reason, failure=failure):
            commits.abandon(job_id)
            if reason in ("removed", "invalid"):
                raise filling.conflict(f"Lance refuses it: {first_line(failure)}") from failure
            return None
        case InDoubt(failure):
            raise OutcomeUnknown(
                f"the commit to Lance failed, and whether it happened is unknown: {first_line(failure)}",
                where=filling.address,
                remedy=f"run it again with the job id {filling.job_id}",
            ) from failure


def _computed(filling: Filling, dataset: LanceDataset, files: Sequence[ColumnFile]) -> ComputedFragments | None:
    """Returns the definitions that computed these values, and the completed fragments; None without a definition."""
    if not filling.identities:
        return None
    written = {field_id for each in files for field_id in each.metadata["fields"]}
    below = ids_by_column(dataset)
    ids = dict(zip(filling.target.names, field_ids(dataset, filling.target.names), strict=True))
    chosen = {ids[name]: each for name, each in filling.identities.items() if not written.isdisjoint(below[ids[name]])}
    return ComputedFragments(chosen, tuple(each.fragment_id for each in files if filling.completes(each.fragment_id)))


def _dead(filling: Filling, state: TableState) -> list[str]:
    """Returns the ids of unfinished commits of dead processes: commits of earlier runs of the job, which this run
    holds, and commits that other jobs began too long ago."""
    form = re.compile(f"{re.escape(filling.job_id)}-[0-9a-f]{{8}}")
    own = [job for job, each in state.intents.items() if each.kind == filling.kind and form.fullmatch(job)]
    return [*own, *(each for each in dead_loads(state, time.time_ns() // 1_000_000) if each not in own)]


def record_done(filling: Filling, rows: int) -> None:
    """Records that the whole job is complete, so that it is never repeated. `rows` is the number of its rows."""
    state = filling.store.table(filling.entry.table_id)
    required = to_fill_columns(filling.job_id, filling.run_id, filling.holder, state.schema, filling.entry.dataset)
    done = FilesAdded((), state.lance_version, filling.job_id, rows, filling.kind, filling.asked)
    ended = map(CommitAbandoned, _dead(filling, state))
    filling.store.commit(filling.entry.table_id, [*ended, done], required)
