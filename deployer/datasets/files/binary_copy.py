"""Joins neighbouring fragments of a table without keys.

Lance copies their pages unchanged where it can, unless the pages are so small that a reader of the new file would
request thousands of them. Lance's own task does the work, in the JSON form that Lance has for other processes. This
module chooses the fragments.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.ordering.clustering import FileClustering
from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError

if TYPE_CHECKING:
    import lance

_ALL_ROWS = 1 << 62  # with this size, Lance does not skip any fragment
_SMALL_PAGE = 32 << 10  # bytes of a column in a file; for smaller columns, rewriting the rows in larger pages is faster


@dataclass(frozen=True, slots=True)
class Copy:
    """A task on a table without keys: Lance's task and the leaf of its rows, which is all that a process needs to run
    it."""

    version: int
    lance_task: str
    partition: str
    rows: int
    clustered: FileClustering | None = None

    def done(self, dataset: lance.LanceDataset, on_rows: Callable[[int], None], threads: int) -> list[WrittenFragment]:
        written = copied(dataset, self)
        on_rows(self.rows)
        return written


def lance_tasks(dataset: lance.LanceDataset, groups: Sequence[Sequence[int]], data_storage_version: str) -> list[str]:
    """Returns Lance's task for each group of fragments, in JSON. A task makes one file of its group."""
    from lance.optimize import Compaction

    options: Any = {
        "target_rows_per_fragment": _ALL_ROWS,
        "materialize_deletions_threshold": 0.0,
        "data_storage_version": data_storage_version,
    }
    found = [json.loads(task.json()) for task in Compaction.plan(dataset, options).tasks]
    fragments = {each["id"]: each for task in found for each in task["task"]["fragments"]}
    missing = sorted({number for group in groups for number in group} - fragments.keys())
    if missing:
        raise DeployerError(
            f"Lance does not plan to rewrite fragments {', '.join(map(str, missing))}",
            where=dataset.uri,
            remedy="bring the table's indexes up to date, and run it again",
        )
    return [_lance_task(found[0], [fragments[number] for number in group]) for group in groups]


def _lance_task(like: dict[str, Any], fragments: Sequence[dict[str, Any]]) -> str:
    mode = "Reencode" if _page_bytes(fragments) < _SMALL_PAGE else "TryBinaryCopy"
    return json.dumps(
        {
            **like,
            "task": {**like["task"], "fragments": fragments},
            "options": {**like["options"], "compaction_mode": mode},
        }
    )


def _page_bytes(fragments: Sequence[dict[str, Any]]) -> float:
    """Returns the mean bytes of a column in a file; the largest possible where files lack their size."""
    files = [file for each in fragments for file in each["files"]]
    if not all(file["file_size_bytes"] for file in files):
        return float("inf")
    size: int = sum(file["file_size_bytes"] for file in files)
    return size / max(1, sum(len(file["fields"]) for file in files))


def copied(dataset: lance.LanceDataset, task: Copy) -> list[WrittenFragment]:
    """Writes the task's rows as one fragment, in their order; commits nothing. `dataset`: at the task's version."""
    from lance.fragment import FragmentMetadata
    from lance.optimize import CompactionTask

    try:
        done = json.loads(CompactionTask.from_json(task.lance_task).execute(dataset).json())
    except (OSError, ValueError, RuntimeError) as failure:
        raise DeployerError(
            f"Lance cannot join fragments: {str(failure).splitlines()[0]}", where=dataset.uri, remedy="run it again"
        ) from failure
    made = [FragmentMetadata.from_json(json.dumps(each)).to_json() for each in done["new_fragments"]]
    return [WrittenFragment(each, task.partition, each["physical_rows"], None, False, task.clustered) for each in made]


def with_sizes(location: str, written: Sequence[WrittenFragment]) -> None:
    """Adds file sizes to the metadata of fragments where Lance omits them, which it does for copied pages."""
    unknown = [file for each in written for file in each.metadata["files"] if not file["file_size_bytes"]]
    objects = objects_at(location) if unknown else None
    for file in unknown:
        if objects is not None:
            file["file_size_bytes"] = objects.size(f"data/{file['path']}")
