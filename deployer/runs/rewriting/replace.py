"""Commits rewritten fragments in place of others, by the protocol of `deployer.datasets.commit.protocol`.

Appends do not conflict. Another change of the same fragments conflicts: the other change stays, and this rewrite is
discarded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit.done_jobs import find_job
from deployer.datasets.commit.protocol import Committed, Intent, Recorded, TableCommits
from deployer.datasets.commit_metadata import CommitMetadata, CommittedFile
from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.lance_transactions import InDoubt, NotTaken, Replace, RewrittenGroup
from deployer.datasets.ordering.clustering import FileClustering
from deployer.datasets.recovery.rollforward import current
from deployer.errors import Conflict, NotFound, OutcomeUnknown
from deployer.platform.system.failpoints import reached
from deployer.platform.system.retry import Backoff
from deployer.state.model.entities import Job, TableEntry, TableState
from deployer.state.model.files.computed_by import joined
from deployer.state.transactions.tables import to_replace_files

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.store import StateStore

ATTEMPTS = 12  #: the attempts of a commit, which is sent again after others changed other fragments
_BACKOFF = Backoff(first=0.04, longest=2.0)

Fragments = Mapping[int, Any]  #: Lance's metadata by fragment id


def commit_rewritten(
    store: StateStore,
    root: str,
    entry: TableEntry,
    job_id: str,
    kind: str,
    rewritten: Sequence[RewrittenGroup],
    *,
    read_version: int,
    keep_order: bool,
) -> Job:
    """Replaces the old fragments, which belong to `read_version`, by the new ones, as one version of the dataset.

    With `keep_order`, later fragments get new numbers without being rewritten, so that Lance keeps the order. Raises
    Conflict where another process changed or removed one of the old fragments, the table was rewritten, or others
    commit continuously; then nothing is committed. Raises OutcomeUnknown where Lance did not answer and the outcome
    cannot be found.
    """
    now, state = current(store, root, entry, store.table(entry.table_id))
    if job := state.jobs.get(job_id):
        return job
    if now.dataset != entry.dataset:
        raise _moved(entry, "the table was rewritten meanwhile")
    old = {fragment.id: fragment for each in rewritten for fragment in each.old}
    commits = TableCommits(store, root, entry)
    reached("services.replace.before-intent")
    try:
        moved = [file.fragment_id for file in state.files if keep_order and file.fragment_id > min(old)]
        required = to_replace_files(job_id, sorted(old), entry.dataset, sorted(set(moved) - old.keys()))
        intent = commits.begin([(job_id, kind)], state.lance_version, required)
    except (Conflict, NotFound) as conflict:
        if not isinstance(conflict, NotFound) and (job := find_job(store, root, entry.table_id, job_id)):
            return job
        raise _moved(entry, str(conflict)) from conflict
    reached("services.replace.before-lance")
    with commits.abandoned_on_conflict(intent):
        recorded = _committed(commits, intent, kind, rewritten, old, read_version=read_version, keep_order=keep_order)
    if (found := recorded.jobs.get(job_id)) is None:
        raise OutcomeUnknown(
            "Lance took the commit, and it cannot be found again",
            where=f"table/{entry.full_name}",
            remedy="run it again",
        )
    return found


def _committed(
    commits: TableCommits,
    intent: Intent,
    kind: str,
    rewritten: Sequence[RewrittenGroup],
    old: Fragments,
    *,
    read_version: int,
    keep_order: bool,
) -> Recorded:
    """Commits the fragments, and returns the recorded commit.

    Loads on this machine wait meanwhile. Otherwise they or this commit would lose one race after another in Lance.
    """
    store, entry, state = commits.store, commits.entry, intent.state
    for attempt in _BACKOFF.attempts(ATTEMPTS):
        with store.turn(entry.table_id) as turn:
            is_stale = attempt > 0 or turn.waited  # another commit has changed the state that this one read
            now, state = current(store, commits.root, entry, store.table(entry.table_id) if is_stale else state)
            if now.dataset != entry.dataset:
                raise _moved(entry, "the table was rewritten meanwhile")
            dataset = open_dataset(commits.location, state.lance_version)
            if dataset.version != read_version:
                _require_same(entry, dataset, old)
            groups = _in_place(entry, dataset, state, rewritten) if keep_order else list(rewritten)
            rows = sum(each.rows for group in groups for each in group.new)
            info = CommitMetadata(intent.job_id, kind, rows, _committed_files(state, groups))
            outcome = commits.send(commits.prepare(state, dataset, Replace(groups), [info]))
            if not isinstance(outcome, Committed):
                _require_repeatable(entry, outcome)
                continue
            reached("services.replace.after-lance")
            recorded = commits.record(outcome)
            reached("services.replace.after-state")
            return recorded
    raise _moved(entry, "other processes commit to the table faster than it is compacted")


def _committed_files(state: TableState, groups: Sequence[RewrittenGroup]) -> tuple[CommittedFile, ...]:
    """Returns the new files in the form of commit metadata. The new files of a group record every definition that
    computed values of its old files."""
    found = []
    for group in groups:
        files = [state.files.get(fragment.id) for fragment in group.old]
        computed = joined("" if file is None else file.computed for file in files)
        found += [replace(each.marked, computed=computed) for each in group.new]
    return tuple(found)


def _require_same(entry: TableEntry, dataset: LanceDataset, old: Fragments) -> None:
    """Raises Conflict where the rows or values of a fragment have changed since it was read."""
    for number, fragment in old.items():
        found = dataset.get_fragment(number)
        if found is None or found.metadata.to_json() != fragment.to_json():
            raise _moved(entry, f"another process changed or deleted rows of fragment {number} meanwhile")


def _in_place(
    entry: TableEntry, dataset: LanceDataset, state: TableState, rewritten: Sequence[RewrittenGroup]
) -> list[RewrittenGroup]:
    """Returns the groups in the order of the dataset, with one more group for each later, unchanged fragment.

    Lance orders fragments by their numbers and gives new fragments the highest, so later fragments need still higher
    ones.
    """
    group_of = {fragment.id: group for group in rewritten for fragment in group.old}
    groups: list[RewrittenGroup] = []
    for fragment in (each.metadata for each in dataset.get_fragments()):
        group = group_of.get(fragment.id)
        if group is not None:
            if fragment.id == group.old[0].id:
                groups.append(group)
        elif groups:
            file = state.files.get(fragment.id)
            if file is None or fragment.deletion_file is not None:  # Lance finds it by the fragment's number
                raise _moved(entry, f"another process deleted rows of fragment {fragment.id} meanwhile")
            moved = WrittenFragment(
                {**fragment.to_json(), "id": 0}, file.partition, file.rows, None, file.sorted, FileClustering.of(file)
            )
            groups.append(RewrittenGroup((fragment,), (moved,)))
    return groups


def _require_repeatable(entry: TableEntry, outcome: NotTaken | InDoubt) -> None:
    """Raises the error of a commit that Lance does not have, unless it can be prepared again."""
    failure = outcome.failure
    said = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
    match outcome:
        case NotTaken(reason="removed"):
            raise _moved(entry, "the table was removed meanwhile") from failure
        case NotTaken(reason="invalid"):  # such as fragments that came into different parts of an index
            raise _moved(entry, f"Lance refuses it: {said}") from failure
        case InDoubt():
            raise OutcomeUnknown(
                f"the commit to Lance failed, and whether it happened is unknown: {said}",
                where=f"table/{entry.full_name}",
                remedy="run it again: the next process that opens the table finds out",
            ) from failure


def _moved(entry: TableEntry, why: str) -> Conflict:
    return Conflict(
        f"the rewrite lost a race, and its result was discarded: {why}",
        where=f"table/{entry.full_name}",
        remedy="run it again",
    )
