"""The adapter by which DataFusion reads a Lance dataset.

pylance's own provider supports only one major version of DataFusion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from deployer.datasets.dataset import field_ids
from deployer.tables.open_table import ReadTable
from deployer.tables.read.file_guarantees import may_hold


class Relation(pads.Dataset):  # type: ignore[misc] # Arrow's classes have no types here
    """A table's dataset as one part, which Lance reads with the columns and the condition that DataFusion passes.

    `opened` counts the fragments that may contain a matching row, `total` all fragments, over all readings.
    """

    def __init__(self, table: ReadTable) -> None:
        self._table, self._dataset = table, table.dataset()
        self.opened = self.total = 0

    @property
    def schema(self) -> pa.Schema:
        return self._dataset.schema

    @property
    def partition_expression(self) -> None:
        return None

    def scanner(self, columns: list[str] | None = None, **_: Any) -> _Projection:
        """Returns the columns of the result, which DataFusion asks for before it reads."""
        names = self.schema.names if columns is None else columns
        return _Projection(pa.schema([self.schema.field(name) for name in names]))

    def get_fragments(self, filter: Any = None) -> Iterator[_Part]:
        """Yields the fragments that DataFusion asks for once for each reading of the table in a planned query."""
        every = [each for each in self._dataset.get_fragments() if each.fragment_id not in self._table.without]
        chosen = every
        if isinstance(filter, pc.Expression):
            names = self.schema.names
            ids = dict(zip(field_ids(self._dataset, names), names, strict=True))
            files = {file.fragment_id: file for file in self._table.state.files}
            known = [files[each.fragment_id] for each in every if each.fragment_id in files]
            can = may_hold(filter, known, self.schema, self._table.row_keys, ids)
            chosen = [each for each in every if each.fragment_id not in files or each.fragment_id in can]
        self.opened += len(chosen)
        self.total += len(every)
        yield _Part(self._dataset, chosen)


@dataclass(frozen=True, slots=True)
class _Projection:
    projected_schema: pa.Schema


class _Part:
    def __init__(self, dataset: Any, fragments: Sequence[Any]) -> None:
        self._dataset, self._fragments = dataset, fragments

    def scanner(
        self, schema: pa.Schema, columns: list[str] | None = None, filter: Any = None, **_: Any
    ) -> pads.Scanner:
        """Returns the rows that hold the condition. Lance reads the columns that its text mentions, and Arrow applies
        it."""
        if isinstance(filter, pa.Scalar):  # a condition without columns, such as `on true`
            filter = pc.scalar(bool(filter.as_py()))
        names = self._dataset.schema.names
        wanted = names if columns is None else columns
        text = str(filter) if filter is not None else ""
        # A count needs no column, but Lance returns rows only with a column.
        read = [name for name in names if name in wanted or name in text] or names[:1]
        # Lance reads an empty list of fragments as all fragments.
        some, most = (self._fragments, None) if self._fragments else (self._dataset.get_fragments()[:1], 0)
        scanner = self._dataset.scanner(columns=read, fragments=list(some), limit=most, blob_handling="all_binary")
        reader = scanner.to_reader()
        return pads.Scanner.from_batches(reader, columns=list(wanted), filter=filter)
