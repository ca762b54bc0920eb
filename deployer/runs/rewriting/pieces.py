"""The files of a table for the planning of rewrites, from the records of the state and the dataset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.runs.rewriting.tasks import Piece
from deployer.state.model.entities import File, Partition, TableState
from deployer.tables.layout.partitions.sizes import leaf_of
from deployer.tables.open_table import ReadTable

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


def pieces_of(table: ReadTable, dataset: LanceDataset, *, any_kind: bool = False) -> list[Piece]:
    """Returns the recorded files of the dataset in its order. With `any_kind`, all of them have the same kind."""
    kinds = {} if any_kind else _kinds(table, dataset)
    found = []
    for fragment in dataset.get_fragments():
        file = table.state.files.get(fragment.fragment_id)
        if file is not None:
            kind = kinds.get(fragment.fragment_id, "")
            found.append(Piece(file, fragment.metadata.num_deletions, kind))
    return found


def unclaimed(table: ReadTable, pieces: Sequence[Piece], *, in_order: bool) -> list[Piece]:
    """Returns the pieces whose columns no running run writes.

    With `in_order`, returns only pieces after the last one whose columns are written, since files after a rewritten one
    get new numbers.
    """
    claimed = claimed_fragments(table.state)
    if not claimed:
        return list(pieces)
    last = max((i for i, piece in enumerate(pieces) if piece.file.fragment_id in claimed), default=-1)
    if in_order:
        return list(pieces[last + 1 :])
    return [piece for piece in pieces if piece.file.fragment_id not in claimed]


def claimed_fragments(state: TableState) -> frozenset[int]:
    """Returns the fragments whose columns running runs write."""
    return frozenset(number for run in state.runs.values() if run.status == "RUNNING" for number in run.claims)


def _kinds(table: ReadTable, dataset: LanceDataset) -> dict[int, str]:
    """Returns the parts of indexes that cover each fragment, if they limit which fragments can be joined (see
    `by_indexes`)."""
    from deployer.runs.rewriting.run import by_indexes  # it sets up Lance for work on all cores

    if not by_indexes(table, dataset):
        return {}
    indexes = [index for index in dataset.describe_indices() if not index.name.startswith("__lance_")]
    kinds: dict[int, str] = {}
    for segment in sorted((part for index in indexes for part in index.segments), key=lambda part: str(part.uuid)):
        for number in segment.fragment_ids:
            kinds[number] = f"{kinds.get(number, '')} {segment.uuid}"
    return kinds


def placed(state: TableState, piece: Piece) -> Piece:
    """Returns the piece with the leaf whose range has all of its keys. A run records this leaf before it plans."""
    leaf = leaf_of(state, piece.file)
    return piece if leaf is None else replace(piece, file=replace(piece.file, partition=leaf.partition_id))


def reach_of(file: File, leaves: Sequence[Partition]) -> tuple[int, int]:
    """Returns the positions of the first and last leaf that can hold a row of the file."""
    found = [i for i, leaf in enumerate(leaves) if file.overlaps(leaf.lower, leaf.upper)]
    return (found[0], found[-1]) if found else (0, len(leaves) - 1)


def joined_across(across: Iterable[tuple[int, int, Piece]]) -> list[tuple[int, int, list[Piece]]]:
    """Returns groups of files that have a leaf in common, each with its first and last leaf."""
    found: list[tuple[int, int, list[Piece]]] = []
    for first, last, piece in sorted(across, key=lambda each: (each[0], each[1], each[2].file.fragment_id)):
        if found and first <= found[-1][1]:
            before = found[-1]
            found[-1] = (before[0], max(before[1], last), [*before[2], piece])
        else:
            found.append((first, last, [piece]))
    return found
