"""Finds the fragments of a job that was committed twice because two processes ran it at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from deployer.datasets.commit_metadata import each_commit
from deployer.datasets.dataset import Fragment, fragments_of
from deployer.datasets.lance_transactions import metadata_at, metadata_since
from deployer.state.model.entities import TableState

if TYPE_CHECKING:
    import lance


def doubled_fragments(dataset: lance.LanceDataset, state: TableState) -> frozenset[int]:
    """Returns the fragments of a job's second commit: two processes ran the job at once, and neither saw the other's
    commit.

    Both may have committed the same files; then the fragments from before the second commit stay. This decision removes
    rows. Therefore Lance itself must have the first commit; the state alone is not enough, because any program may have
    written it.
    """
    first = {job_id: job.lance_version for job_id, job in state.jobs.items()}
    doubled = set[int]()
    for version, info in each_commit(metadata_since(dataset, state.lance_version)):
        if first.setdefault(info.job_id, version) != version and info.files:
            before, paths = fragments_of(dataset.checkout_version(version - 1)), {file.path for file in info.files}
            if _holds_commit_of(dataset, info.job_id, first[info.job_id], version, before):
                doubled |= {i for i, each in fragments_of(dataset).items() if i not in before and each.paths & paths}
    return frozenset(doubled)


def _holds_commit_of(
    dataset: lance.LanceDataset, job_id: str, at: int, version: int, before: Mapping[int, Fragment]
) -> bool:
    """Returns whether the job committed version `at`, which is below `version`, and its rows are among the fragments
    `before` that version."""
    own = next((info for info in metadata_at(dataset, at) if info.job_id == job_id), None) if at < version else None
    if own is None:
        return False
    paths = {file.path for file in own.files}
    return not paths or any(each.paths & paths for each in before.values())
