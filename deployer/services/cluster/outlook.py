"""Whether a task of CLUSTER can improve anything, as far as that is known before rows are written. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from deployer.datasets.clustering import Bounds
from deployer.services.cluster.layout import Arrangement
from deployer.services.cluster.shuffle_task import HELD_BYTES
from deployer.services.rewriting.tasks import Sizes, Task, files_of
from deployer.state.model.entities import File

#: `same`: the new files would lie as the old ones do; `unknown`: only the new files tell.
Outlook = Literal["better", "same", "unknown"]


def outlook(
    task: Task, files: Sequence[File], bounds: Sequence[Bounds | None], arrangement: Arrangement, sizes: Sizes
) -> Outlook:
    """What the task comes to. `files` are those of the task that are recorded, with their bounds where these are known.

    Files that are as many as the new ones would be, and follow each other by the columns already, are `same`, and so is
    one file alone, and files whose rows are one point of the columns' space.
    """
    if task.deleted or len(task.leaves) > 1 or len(files) < len(task.fragments) or not all(each.rows for each in files):
        return "better"
    if arrangement.keeps_order and not all(each.sorted for each in files):
        return "better"
    count = files_of(task.rows, task.bytes, sizes)
    if len(files) == count == 1:
        return "same"
    known = [each for each in bounds if each is not None]
    is_known = len(known) == len(files)
    even = sorted(each.rows for each in files) == sorted(
        task.rows // count + (number < task.rows % count) for number in range(count)
    )
    if len(files) == count and arrangement.is_sort and (not is_known or _follow_each_other(known)):
        return "same" if is_known else "unknown"
    if even:
        return "same" if is_known and _are_one_point(known) else "unknown"
    return "unknown" if task.bytes > HELD_BYTES else "better"  # what is shuffled has files of other sizes


def _follow_each_other(bounds: Sequence[Bounds]) -> bool:
    """Whether no two files have a value of the first column in common."""
    return all(before[1][0] < after[0][0] for before, after in pairwise(sorted(bounds)))


def _are_one_point(bounds: Sequence[Bounds]) -> bool:
    return all(low == high and (low, high) == bounds[0] for low, high in bounds)
