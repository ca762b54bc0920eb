"""The rows that a commit removed from a table, and those that it added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from deployer.tables.changes.commits import Commit, Part
from deployer.tables.changes.rows import FeedColumn, Version, addresses_of
from deployer.tables.changes.values import changed_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Which rows of a fragment: `all`; those that the other version does `not have`; those that are
#: `in both` and got other values.
Which = Literal["all", "not have", "in both"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one fragment. `judged`: the condition may be true in one version and not in the other, because values
    were written in place."""

    part: Part
    which: Which
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """The pieces of one of the two versions. Their rows are found one fragment at a time while they are read, and kept
    as one bit for each row."""

    version: Version
    other: Version | None
    pieces: tuple[Piece, ...]
    _found: dict[Piece, NDArray[np.uint8]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def size(self) -> int:
        """The number of rows, at most."""
        return sum(piece.part.rows for piece in self.pieces)

    def rows(
        self, columns: Sequence[FeedColumn], pieces: Sequence[Piece] | None = None, *, with_ids: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the pieces, all by default, as `Version.rows` does."""
        chosen = self.pieces if pieces is None else pieces
        whole = [piece.part for piece in chosen if piece.which == "all"]
        yield from self.version.rows(whole, columns, with_ids=with_ids)
        for piece in chosen:
            if piece.which != "all" and len(wanted := self._wanted(piece)):
                yield from self.version.rows([piece.part], columns, wanted, with_ids=with_ids)

    def _wanted(self, piece: Piece) -> NDArray[np.uint64]:
        """Returns the ascending addresses of the piece's rows. They are found once: a side is read several times."""
        if (bits := self._found.get(piece)) is None:
            bits = self._found[piece] = np.packbits(self._compared(piece))
        return addresses_of(piece.part, np.unpackbits(bits, count=piece.part.rows).view(np.bool_))

    def _compared(self, piece: Piece) -> NDArray[np.bool_]:
        assert self.other is not None  # noqa: S101 (only commits on another version have such pieces)
        own, others = self.version, self.other
        if not piece.judged:
            own, others = replace(own, condition=None), replace(others, condition=None)
        if piece.which == "not have":
            return own.there(piece.part) & ~others.there(piece.part)
        changed = changed_values(replace(own, condition=None), replace(others, condition=None), piece.part)
        return changed if own.condition is None else changed & own.there(piece.part) & others.there(piece.part)


@dataclass(frozen=True, slots=True)
class Selection:
    """The pieces of a commit: removed rows, added rows, and rows with values written in place."""

    took: tuple[Piece, ...]
    put: tuple[Piece, ...]
    written: tuple[Piece, ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (*self.took, *self.put, *self.written)


def selection_of(commit: Commit, *, judged: bool) -> Selection:
    """Returns all pieces of a commit. `judged`: there is a condition, which rows may begin or cease to match."""
    left = [Piece(part, "not have") for part in commit.masked]
    left += [Piece(part, "not have", judged=True) for part in commit.written if judged or part.masked]
    took = [*(Piece(part, "all") for part in commit.gone), *left] if commit.before is not None else []
    put = [*(Piece(part, "all") for part in commit.added), *left]
    return Selection(tuple(took), tuple(put), tuple(Piece(part, "in both", judged=True) for part in commit.written))
