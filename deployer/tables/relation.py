"""A Lance dataset as DataFusion reads it: pylance's own provider works with one major version of DataFusion only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads


class Relation(pads.Dataset):  # type: ignore[misc] # Arrow's classes have no types here
    """A dataset of one part, read by Lance; DataFusion hands down the columns and the condition that it needs.

    Rows of the fragments `without` are left out.
    """

    def __init__(self, dataset: Any, without: frozenset[int] = frozenset()) -> None:
        self._dataset, self._without = dataset, without

    @property
    def schema(self) -> pa.Schema:
        return self._dataset.schema

    @property
    def partition_expression(self) -> None:
        return None

    def scanner(self, columns: list[str] | None = None, **_: Any) -> _Projection:
        """What DataFusion asks before it reads: the columns that there will be."""
        names = self.schema.names if columns is None else columns
        return _Projection(pa.schema([self.schema.field(name) for name in names]))

    def get_fragments(self, filter: Any = None) -> Iterator[_Part]:
        yield _Part(self._dataset, self._without)


@dataclass(frozen=True, slots=True)
class _Projection:
    projected_schema: pa.Schema


class _Part:
    def __init__(self, dataset: Any, without: frozenset[int]) -> None:
        self._dataset, self._without = dataset, without

    def scanner(
        self, schema: pa.Schema, columns: list[str] | None = None, filter: Any = None, **_: Any
    ) -> pads.Scanner:
        """The rows that hold the condition. Lance reads the columns that its text mentions, and Arrow applies it."""
        if isinstance(filter, pa.Scalar):  # a condition without columns, such as `on true`
            filter = pc.scalar(bool(filter.as_py()))
        names = self._dataset.schema.names
        wanted = names if columns is None else columns
        said = str(filter) if filter is not None else ""
        # A count needs no column; Lance gives rows only together with one.
        read = [name for name in names if name in wanted or name in said] or names[:1]
        chosen = None  # all of them
        if self._without:
            chosen = [each for each in self._dataset.get_fragments() if each.fragment_id not in self._without]
        reader = self._dataset.scanner(columns=read, fragments=chosen, blob_handling="all_binary").to_reader()
        return pads.Scanner.from_batches(reader, columns=list(wanted), filter=filter)
