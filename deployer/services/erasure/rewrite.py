"""Rewrites files of the newest version that hold erased rows, and no other files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deployer.platform.system.progress import OnProgress
from deployer.runs.rewriting.pieces import pieces_of
from deployer.runs.rewriting.run import Engine, RewriteRun
from deployer.runs.rewriting.tasks import Sizes, Task
from deployer.services.kinds.compact.job import Merging
from deployer.services.kinds.compact.options import CompactOptions
from deployer.tables.open_table import OpenTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset


def rewrite_files(
    table: OpenTable,
    paths: frozenset[str],
    on_progress: OnProgress,
    engine: Engine,
    session: Callable[[], SparkSession],
) -> int:
    """Rewrites each fragment with one of these data files, without its deleted rows; returns the number of fragments.

    Raises Conflict where others change these fragments again and again.
    """

    def plan(table: OpenTable, dataset: LanceDataset, sizes: Sizes, *, any_kind: bool) -> Sequence[Task]:
        return _tasks(table, dataset, paths)

    options = CompactOptions()
    sizes = options.sizes(table.layout().max_rows_per_file)
    merging = Merging(options.portion_bytes, sizes, plan, "writing files without the rows")
    run = RewriteRun(merging, session, engine, on_progress, None)
    run.rounds(table)
    return run.work.tasks


def _tasks(table: OpenTable, dataset: LanceDataset, paths: frozenset[str]) -> list[Task]:
    """Returns a task for each file that has one of the `paths`."""
    held = {
        fragment.fragment_id
        for fragment in dataset.get_fragments()
        if paths.intersection(file.path for file in fragment.metadata.files)
    }
    leaves = [leaf.partition_id for leaf in table.state.leaves()]
    found = [piece for piece in pieces_of(table, dataset, any_kind=True) if piece.file.fragment_id in held]
    ordered = table.layout().order
    return [
        Task.of(
            [each],
            [str(each.file.partition)] if each.file.partition in leaves else leaves if ordered else leaves[:1],
            "erased rows",
        )
        for each in found
    ]
