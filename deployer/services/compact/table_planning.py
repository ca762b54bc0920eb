"""What COMPACT rewrites of a whole table: pure, from the table's state and what the dataset says of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deployer.services.compact.leaf_planning import plan_by_leaf
from deployer.services.rewriting.tasks import Piece, Sizes, Task, is_due, plan_in_order
from deployer.state.model.entities import TableState
from deployer.tables.partitions.sizes import leaf_of


def plan_table(state: TableState, pieces: Sequence[Piece], sizes: Sizes) -> tuple[Task, ...]:
    """The tasks for all of the table's files, which are given in the order of the dataset.

    A file that is recorded in no leaf is planned for the leaf that holds all of its keys: COMPACT records it there.
    """
    leaves = state.leaves()
    if not (state.properties.row_keys or state.properties.sort_keys):
        return plan_in_order([_apart(piece) for piece in pieces], leaves[0].partition_id, sizes)
    names = {leaf.partition_id for leaf in leaves}
    pieces = [piece if piece.file.partition in names else placed(state, piece) for piece in pieces]
    kept = [piece for piece in pieces if piece.file.keeps_clustering and piece.file.partition in names]
    alone = tuple(Task.of([each], [str(each.file.partition)], "deleted rows") for each in kept if is_due(each, sizes))
    apart_from = {piece.file.fragment_id for piece in kept}
    pieces = [piece for piece in pieces if piece.file.fragment_id not in apart_from]
    kinds = sorted({piece.kind for piece in pieces})
    groups = [[piece for piece in pieces if piece.kind == kind] for kind in kinds]
    return (*(task for group in groups for task in plan_by_leaf(group, leaves, sizes)), *alone)


def _apart(piece: Piece) -> Piece:
    """One that CLUSTER arranged is joined with no other: its rows are near each other."""
    file = piece.file
    return replace(piece, kind=f"{piece.kind} {file.fragment_id}") if file.keeps_clustering else piece


def placed(state: TableState, piece: Piece) -> Piece:
    """A piece in no leaf as a run has it, which first records files in the leaf that holds all of their keys."""
    leaf = leaf_of(state, piece.file)
    return piece if leaf is None else replace(piece, file=replace(piece.file, partition=leaf.partition_id))
