"""Plans COMPACT from an open dataset, and makes planned tasks into jobs with all that a process needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.datasets.binary_copy import Copy, lance_tasks
from deployer.datasets.clustering import Clustered, joined
from deployer.services.compact.merge_task import Merge
from deployer.services.compact.planning import plan_table
from deployer.services.rewriting.executor import Job
from deployer.services.rewriting.pieces import pieces_of
from deployer.services.rewriting.tasks import Sizes, Task
from deployer.tables.open_table import ReadTable
from deployer.tables.partitions.key_ranges import Ranges

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


def planned(table: ReadTable, dataset: LanceDataset, sizes: Sizes, *, any_kind: bool = False) -> tuple[Task, ...]:
    """What there is to do. `dataset` is the table's at its recorded version. `any_kind`: as if its indexes had all."""
    return plan_table(table.state, pieces_of(table, dataset, any_kind=any_kind), sizes)


def as_work(table: ReadTable, dataset: LanceDataset, tasks: Sequence[Task], sizes: Sizes) -> list[Job]:
    """The tasks with all that a process needs to do them."""
    layout, state = table.layout(), table.state
    if not layout.order:
        groups = [task.fragments for task in tasks]
        made = lance_tasks(dataset, groups, layout.data_storage_version)
        return [
            Copy(dataset.version, text, task.leaves[0], task.rows, _clustered(table, task))
            for text, task in zip(made, tasks, strict=True)
        ]
    points = dict(zip((leaf.partition_id for leaf in state.leaves()[1:]), table.splits, strict=True))
    return [
        Merge(
            dataset.version,
            task.fragments,
            frozenset(number for number in task.fragments if _is_sorted(table, number)),
            Ranges(tuple(points[name] for name in task.leaves[1:]), task.leaves),
            replace(layout, max_rows_per_file=sizes.file_rows),
            sizes,
            task.rows,
            task.bytes,
            _clustered(table, task),
        )
        for task in tasks
    ]


def _clustered(table: ReadTable, task: Task) -> Clustered | None:
    """How the rows stay arranged: only files in an order of their own are rewritten in it."""
    files = [table.state.files.get(number) for number in task.fragments]
    if len(task.leaves) > 1 or any(file is None or not file.keeps_clustering for file in files):
        return None
    return joined([Clustered.of(file) for file in files if file is not None])


def _is_sorted(table: ReadTable, number: int) -> bool:
    file = table.state.files.get(number)
    return file is not None and file.sorted
