"""The target of a search: a table at one version, with its columns of vectors and text, and their indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.errors import is_of_lance, lance_errors
from deployer.datasets.indexes.read import ObservedIndex, live_indexes, observed_indexes
from deployer.errors import InvalidInput
from deployer.live.reader import declared_embedding
from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.specs.declarations.indexes import find_column
from deployer.specs.model import Embedding
from deployer.specs.schema.index_kinds import VECTOR_KINDS, type_remedy
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.column_names import listed
from deployer.specs.types.types import Column, FixedSizeList, Scalar, Struct, format_type
from deployer.tables.open_table import ReadTable
from deployer.tables.read.key_values import unknown_column

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True)
class OpenVersion:
    """A version of a table's dataset that stays open, so that Lance keeps the read parts of its indexes."""

    location: str
    number: int
    dataset: LanceDataset

    @cached_property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return columns_of(self.schema)

    @cached_property
    def indexes(self) -> tuple[ObservedIndex, ...]:
        with lance_errors(self.location):
            return tuple(observed_indexes(self.dataset).values())


@dataclass(frozen=True)
class SearchTarget:
    """A table at one state. All results belong to that state."""

    table: ReadTable
    version: OpenVersion
    trusted: TrustedFunctions = NONE_TRUSTED

    @staticmethod
    def of(
        table: ReadTable, trusted: TrustedFunctions = NONE_TRUSTED, before: SearchTarget | None = None
    ) -> SearchTarget:
        """Returns the opened table; it reuses the open version of `before`, a former state of the table."""
        if before is not None and before.table.state is table.state and before.table.entry == table.entry:
            return before  # it keeps the read parts of its indexes
        return SearchTarget(table, _opened(table, before.version if before is not None else None), trusted)

    @property
    def address(self) -> str:
        return self.table.address

    @property
    def dataset(self) -> LanceDataset:
        return self.version.dataset

    @property
    def schema(self) -> pa.Schema:
        return self.version.schema

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return self.table.state.files.rows

    @property
    def embedding(self) -> Embedding | None:
        """The declared embedding function."""
        return declared_embedding(self.table.state)

    def metric_of(self, column: str) -> str | None:
        """Returns the metric of the column's vector index; None without one."""
        of_column = (each for each in self.version.indexes if each.index.columns == (column,))
        return next(
            (str(each.parameters.get("metric", "l2")) for each in of_column if each.index.kind in VECTOR_KINDS), None
        )

    def vector_column(self, name: str | None, size: int | None = None) -> str:
        """Returns the column of vectors of that name; without a name, the declared embedding column, the only one, or
        the only one whose vectors have `size` values.

        Raises InvalidInput for a column that does not hold vectors, and when several columns are possible.
        """
        if name is not None:
            self.vector_size(name)
            return name
        if (embedding := self.embedding) is not None:
            if find_column(self.version.columns, embedding.vector) is None:
                raise InvalidInput(
                    f"the declared embedding names column {embedding.vector!r}, which the table does not have",
                    where=self.address,
                    remedy="correct `embedding:` in the spec and run `deployer up`, or name a column of vectors",
                )
            self.vector_size(embedding.vector)
            return embedding.vector
        found = dict(self._of_kind("ivf_flat"))
        fitting = {path: kind for path, kind in found.items() if size is not None and _size(kind) == size}
        if len(chosen := fitting or found) == 1:
            return next(iter(chosen))
        if not found:
            raise InvalidInput(
                "the table has no column of vectors",
                where=self.address,
                remedy="add a column of a type such as vector<float32, 384>",
            )
        sizes = ", ".join(f"{path} ({_size(kind)} values)" for path, kind in found.items())
        raise InvalidInput(
            f"the table has {len(found)} columns of vectors: {sizes}",
            where=self.address,
            remedy="name one as `vector_column_name`",
        )

    def vector_size(self, name: str) -> int:
        """Returns the number of values of the column's vectors. Raises InvalidInput for a column without vectors."""
        column = self._column(name)
        if type_remedy("ivf_flat", column.type) is not None:
            of_vectors = listed(path for path, _ in self._of_kind("ivf_flat"))
            raise InvalidInput(
                f"column {name!r} of type {format_type(column.type)} does not hold vectors",
                where=self.address,
                remedy=f"columns of vectors: {of_vectors}" if of_vectors else "the table has no column of vectors",
            )
        return _size(column)

    def vector_item(self, name: str) -> str:
        """Returns the type of the values of the column's vectors, such as float32."""
        kind = self._column(name).type
        item = kind.item.type if isinstance(kind, FixedSizeList) else None
        return item.name if isinstance(item, Scalar) else "float32"

    def text_columns(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Returns the columns that a full-text search reads: the named ones, otherwise all with a full-text index.

        Raises InvalidInput for a column that does not hold text, and for one without a full-text index.
        """
        indexed = self.text_indexes
        for name in names or ():
            column = self._column(name)
            if type_remedy("inverted", column.type) is not None:
                of_text = listed(path for path, _ in self._of_kind("inverted"))
                raise InvalidInput(
                    f"column {name!r} of type {format_type(column.type)} does not hold text",
                    where=self.address,
                    remedy=f"columns of text: {of_text}" if of_text else "the table has no column of text",
                )
            if name not in indexed:
                raise self._without_index(f"column {name!r} has no full-text index", name)
        if names is not None:
            return tuple(dict.fromkeys(names))
        if not indexed:
            of_text = next((path for path, _ in self._of_kind("inverted")), "COLUMN")
            raise self._without_index("no column has a full-text index", of_text)
        return tuple(sorted(indexed))

    @cached_property
    def text_indexes(self) -> Mapping[str, ObservedIndex | None]:
        """The full-text index of each column that has one; None for one that waits for rows."""
        pending = {each.columns[0]: None for each in live_indexes(self.table.state) if each.kind == "inverted"}
        observed = [each for each in self.version.indexes if each.index.kind == "inverted"]
        return {**pending, **{each.index.columns[0]: each for each in observed}}

    def require_ordered(self, name: str) -> None:
        """Raises InvalidInput for a column that the table does not have, and for one whose values have no order."""
        column = self._column(name)
        if "." in name or type_remedy("btree", column.type) is not None:
            raise InvalidInput(
                f"rows cannot be ordered by column {name!r} of type {format_type(column.type)}",
                where=self.address,
                remedy="name a column of numbers, text, dates or times that is not in a struct",
            )

    def _without_index(self, what: str, column: str) -> InvalidInput:
        return InvalidInput(
            what,
            where=self.address,
            remedy=f'create one: table.create_fts_index("{column}"), or declare an index of kind `inverted` in the '
            "spec and run `deployer up`",
        )

    def _column(self, name: str) -> Column:
        column = find_column(self.version.columns, name) if isinstance(name, str) else None
        if column is None:
            raise unknown_column(str(name), self.schema.names, self.address)
        return column

    def _of_kind(self, kind: str) -> Iterator[tuple[str, Column]]:
        """Returns the columns and fields of structs, by path, that can have an index of that kind."""
        return (each for each in _paths(self.version.columns) if type_remedy(kind, each[1].type) is None)


def _paths(columns: Sequence[Column], prefix: str = "") -> Iterator[tuple[str, Column]]:
    for column in columns:
        yield prefix + column.name, column
        if isinstance(column.type, Struct):
            yield from _paths(column.type.fields, f"{prefix}{column.name}.")


def _size(column: Column) -> int:
    return column.type.size if isinstance(column.type, FixedSizeList) else 0


def _opened(table: ReadTable, before: OpenVersion | None) -> OpenVersion:
    number, version = table.entry.dataset, table.state.lance_version
    if before is None or before.number != number or before.location != table.location:
        return OpenVersion(table.location, number, table.dataset())
    if before.dataset.version == version:
        return before
    try:
        dataset = before.dataset.checkout_version(version)  # it shares Lance's memory
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        dataset = table.dataset()  # it raises readable errors
    return OpenVersion(table.location, number, dataset)
