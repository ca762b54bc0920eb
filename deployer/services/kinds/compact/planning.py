"""The files of a table that COMPACT rewrites.

All functions are pure: they use the table's state and the deleted rows that the dataset has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from deployer.live.services import fault_of
from deployer.runs.rewriting.pieces import placed
from deployer.runs.rewriting.tasks import Piece, Sizes, Task, is_due, is_small
from deployer.services.kinds.compact.leaf_planning import plan_by_leaf
from deployer.services.kinds.compact.options import CompactOptions
from deployer.specs.serialized.specs import storage_from_json
from deployer.state.model.entities import TableState


def own_plan(state: TableState, deleted: Mapping[int, int]) -> tuple[Task, ...]:
    """Returns the tasks of a run that begins now.

    `deleted` has the number of deleted rows by fragment, for fragments that have any. The plan takes all files as
    covered by the same indexes, since a run joins the parts of indexes first.
    """
    files = sorted(state.files, key=lambda file: file.fragment_id)
    pieces = [Piece(file, deleted.get(file.fragment_id, 0)) for file in files]
    return plan_table(state, pieces, own_sizes(state))


def small_files(state: TableState) -> int:
    """Returns the number of files that COMPACT calls small."""
    sizes = own_sizes(state)
    return sum(is_small(Piece(file), sizes) for file in state.files)


def merged_files(state: TableState) -> int:
    """Returns the number of small files that COMPACT would rewrite. It does not rewrite the only small file of a leaf.

    Facts that only the dataset has, such as deleted rows, do not count.
    """
    sizes = own_sizes(state)
    small = {file.fragment_id for file in state.files if is_small(Piece(file), sizes)}
    return sum(fragment in small for task in own_plan(state, {}) for fragment in task.fragments)


def own_sizes(state: TableState) -> Sizes:
    """Returns the sizes by the options of the table's COMPACT, or the defaults where the table has no valid one."""
    service = state.services.get("COMPACT")
    usable = service is not None and not service.unsafe_raw and not fault_of(service)
    options = CompactOptions.of(service.options if service is not None and usable else {})
    return options.sizes(storage_from_json(state.properties.storage).max_rows_per_file)


def plan_table(state: TableState, pieces: Sequence[Piece], sizes: Sizes) -> tuple[Task, ...]:
    """Plans tasks for all files of the table; `pieces` has them in the order of the dataset.

    A file without a recorded leaf is planned for the leaf that has the range of all its keys. COMPACT records it there.
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
    """Returns the piece; one that CLUSTER arranged gets a kind of its own, so that it is not joined with others."""
    file = piece.file
    return replace(piece, kind=f"{piece.kind} {file.fragment_id}") if file.keeps_clustering else piece


def plan_in_order(pieces: Sequence[Piece], leaf: str, sizes: Sizes) -> tuple[Task, ...]:
    """Returns the tasks for a table without keys. They join neighbours, so that the order of the rows does not change.

    `pieces` has all files of the table in the order of the dataset. Each task makes one file.
    """
    wanted = [is_small(piece, sizes) or is_due(piece, sizes) for piece in pieces]
    runs = [run for run in _runs(pieces, wanted) if len(run) >= sizes.min_files or any(is_due(p, sizes) for p in run)]
    first = min((run[0].file.fragment_id for run in runs), default=None)
    if first is None:
        return ()
    # Files after the first rewritten one get new numbers, so that they still follow it. A file with deleted rows cannot
    # get one, so it is rewritten.
    place = next(i for i, piece in enumerate(pieces) if piece.file.fragment_id == first)
    due = [is_due(piece, sizes) or (i > place and piece.deleted > 0) for i, piece in enumerate(pieces)]
    wanted = [want or must for want, must in zip(wanted, due, strict=True)]
    musts = {piece.file.fragment_id for piece, must in zip(pieces, due, strict=True) if must}
    tasks = []
    for run in _runs(pieces, wanted):
        must = [piece for piece in run if piece.file.fragment_id in musts]
        if len(run) < sizes.min_files and not must:
            continue
        for part in _filled(run, sizes):
            deleted = sum(piece.deleted for piece in part)
            if len(part) > 1 or part[0].file.fragment_id in musts:
                tasks.append(Task.of(part, [leaf], "deleted rows" if deleted and len(part) == 1 else "small files"))
    return tuple(tasks)


def _runs(pieces: Sequence[Piece], wanted: Sequence[bool]) -> Iterator[list[Piece]]:
    """Yields groups of neighbours that are wanted and have the same kind."""
    run: list[Piece] = []
    for piece, want in zip(pieces, wanted, strict=True):
        if run and (not want or piece.kind != run[-1].kind):
            yield run
            run = []
        if want:
            run.append(piece)
    if run:
        yield run


def _filled(run: Sequence[Piece], sizes: Sizes) -> Iterator[list[Piece]]:
    """Yields the neighbours of a run that become one file: their weight is at most 1 unless a single piece is
    larger."""
    part: list[Piece] = []
    rows = size = 0
    for piece in run:
        more = sizes.weight(rows + piece.file.rows, size + piece.live_bytes)
        if part and more > 1:
            yield part
            part, rows, size = [], 0, 0
        part.append(piece)
        rows, size = rows + piece.file.rows, size + piece.live_bytes
    if part:
        yield part
