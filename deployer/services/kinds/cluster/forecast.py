"""The files that a run of CLUSTER would rewrite, by the state and the dataset's manifest; no rows are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deployer.datasets.ordering.clustering import Bounds, key_bounds
from deployer.runs.rewriting.pieces import pieces_of, placed
from deployer.runs.rewriting.tasks import Piece, Task
from deployer.services.kinds.cluster.layout import Arrangement
from deployer.services.kinds.cluster.options import ClusterOptions
from deployer.services.kinds.cluster.planning import Selection, covered_leaf, outlook, plan_clusters, whole_leaves
from deployer.state.model.entities import File
from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class Forecast:
    """The tasks that rewrite files, and those whose effect is only known during a run."""

    better: tuple[Task, ...]
    unknown: tuple[Task, ...]

    @property
    def tasks(self) -> Sequence[Task]:
        return (*self.better, *self.unknown)


def forecast(table: ReadTable, options: ClusterOptions, arrangement: Arrangement) -> Forecast:
    """Forecasts a run that begins now."""
    state, sizes = table.state, options.sizes(table.layout().max_rows_per_file)
    names = {leaf.partition_id for leaf in state.leaves()}
    pieces = pieces_of(table, table.dataset(), any_kind=True)
    pieces = [piece if piece.file.partition in names else placed(state, piece) for piece in pieces]
    by_number = {piece.file.fragment_id: piece.file for piece in pieces}
    chosen = Selection(arrangement.name, None if options.incremental else frozenset(by_number))

    def bounds(file: File) -> Bounds | None:
        if file.clustering == arrangement.name:
            return file.cluster_min, file.cluster_max
        return key_bounds(file, state.properties.row_keys, arrangement.columns)

    def place(piece: Piece) -> Any:
        found = bounds(piece.file)
        return (found is None, found or (), piece.file.fragment_id)

    whole = whole_leaves(state, arrangement, sizes)
    found: dict[str, list[Task]] = {"better": [], "same": [], "unknown": []}
    for task in plan_clusters(pieces, state.leaves(), chosen, sizes, options.portion, place):
        if not task.deleted and covered_leaf(state, task) in whole:
            continue
        files = [by_number[number] for number in task.fragments]
        found[outlook(task, files, [bounds(file) for file in files], arrangement, sizes)].append(task)
    return Forecast(tuple(found["better"]), tuple(found["unknown"]))
