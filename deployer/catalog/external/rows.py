"""Reads the rows of an external table batch by batch, and writes each stream of rows by one of Lance's own commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.catalog.batches import is_index, spooled
from deployer.catalog.external.place import Place
from deployer.datasets.commit.unmanaged import append_rows, overwrite_rows, upsert_rows
from deployer.datasets.dataset import create_dataset, newest_manifest, open_dataset
from deployer.datasets.errors import lance_errors
from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError, InvalidInput, NotFound, Refused
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.system.failpoints import reached
from deployer.platform.text.formatting import count
from deployer.specs.model import Storage
from deployer.state.records.document import FOLDER
from deployer.tables.ingest.request import Mode

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

_MANAGED = f"{FOLDER}/"  #: the folder in each dataset that an instance of deployer manages


@dataclass(frozen=True, slots=True)
class ExternalRows:
    """The rows of the dataset at `place`; `name` is the name of its entry."""

    name: str
    place: Place

    def schema(self) -> pa.Schema:
        """Returns the columns with their metadata. Raises NotFound where the dataset no longer exists."""
        return self._opened().schema

    def count(self) -> int:
        """Returns the number of rows of the newest version. Raises as `schema` does."""
        with lance_errors(self.place.location):
            return int(self._opened().count_rows())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the newest version; a dataset without rows yields one empty batch."""
        dataset = self._opened()
        read = 0
        with lance_errors(self.place.location):
            for batch in dataset.to_batches():
                read += 1
                yield pa.RecordBatch.from_arrays(batch.columns, schema=dataset.schema)
        if not read:
            yield pa.RecordBatch.from_pylist([], dataset.schema)

    def write(self, batches: Iterable[pa.RecordBatch], mode: Mode) -> int:
        """Writes all rows as one version of the dataset, or writes none, and returns the number of rows.

        Raises InvalidInput for an upsert into a table without index columns, for two rows of an upsert with the same
        key, and for rows that do not fit; Conflict when the dataset was changed meanwhile; Refused for a table of
        another instance.
        """
        dataset = self._opened()
        if objects_at(self.place.location).list(_MANAGED):
            raise Refused(
                "the dataset is a table of another instance of deployer and cannot be written here",
                where=self.name,
                remedy="write it through the catalog of that instance",
            )
        keys = [field.name for field in dataset.schema if is_index(field)]
        if mode == "upsert" and not keys:
            raise InvalidInput(
                "the table has no index column, so that no row can be matched",
                where=self.name,
                remedy='append the rows, or create the table with a column with the metadata "rerun:is_table_index"',
            )
        schema = dataset.schema
        with temporary_folder("catalog") as folder:
            path = folder / "rows.arrow"
            rows = spooled(path, _fitted(batches, schema, self.name), schema, self.name)
            if not rows and mode != "overwrite":
                return 0
            with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
                if mode == "upsert":
                    self._refuse_repeated(reader, keys)
                fitted = pa.RecordBatchReader.from_batches(schema, _batches(reader))
                reached("catalog.write.spooled")
                match mode:
                    case "append":
                        append_rows(self.place.location, fitted)
                    case "overwrite":
                        overwrite_rows(self.place.location, fitted)
                    case "upsert":
                        upsert_rows(self.place.location, fitted, keys)
                reached("catalog.write.committed")
        return rows

    def _opened(self) -> LanceDataset:
        try:
            return open_dataset(self.place.location)
        except NotFound:
            raise no_dataset(self.place, self.name) from None

    def _refuse_repeated(self, reader: Any, keys: list[str]) -> None:
        table = pa.Table.from_batches([batch.select(keys) for batch in _batches(reader)])
        try:
            repeated = table.num_rows - table.group_by(keys).aggregate([]).num_rows
        except pa.ArrowException as failure:
            raise InvalidInput(
                f"the index columns {', '.join(keys)} cannot be compared: {failure}",
                where=self.name,
                remedy="append the rows, or create the table with other index columns",
            ) from None
        if repeated:
            raise InvalidInput(
                f"{count(repeated, 'row')} of the upsert {'has' if repeated == 1 else 'have'} the key of another one, "
                "so the row to keep is unknown; nothing was changed",
                where=self.name,
                remedy="send one row for each key",
            )


def create(place: Place, schema: pa.Schema) -> None:
    """Creates the dataset of an external table, without rows. Keeps the dataset that another client created meanwhile.

    Raises InvalidInput for columns that Lance cannot store, and for a place that Lance cannot write to.
    """
    try:
        with lance_errors(place.location):
            create_dataset(place.location, schema, Storage().data_storage_version, stable_row_ids=False)
    except DeployerError as failure:
        if not has_dataset(place):
            raise InvalidInput(
                f"a table cannot be created at {place.location}: {failure.what}",
                remedy="choose another URL, or other columns",
            ) from failure


def has_dataset(place: Place) -> bool:
    """Returns whether there is a dataset at the place."""
    try:
        newest_manifest(place.location)
    except NotFound:
        return False
    return True


def is_empty_with(place: Place, schema: pa.Schema) -> bool:
    """Returns whether the dataset at the place has the columns of `schema` and never had rows."""
    found = open_dataset(place.location)
    return found.version == 1 and _described(found.schema) == _described(schema) and not found.get_fragments()


def _described(schema: pa.Schema) -> list[object]:
    return [(field.name, field.type, field.nullable, is_index(field)) for field in schema]


def no_dataset(place: Place, name: str) -> NotFound:
    """Returns the error for an entry whose data does not exist."""
    return NotFound(
        f"there is no Lance table at {place.location}",
        where=name,
        remedy="check the URL; if the data was removed, delete the entry",
    )


def _columns(schema: pa.Schema, wanted: pa.Schema, name: str) -> list[str]:
    """Returns the names of the columns in the table's order. Raises InvalidInput where the rows, of `schema`, lack a
    column, have another column, or have a column twice."""
    given, known = list(schema.names), list(wanted.names)
    if extra := [each for each in given if each not in known]:
        raise InvalidInput(f"the table has no column {', '.join(extra)}", where=name, remedy="leave it out")
    if absent := [each for each in known if each not in given]:
        raise InvalidInput(f"the rows lack the column {', '.join(absent)}", where=name, remedy="send all columns")
    if len(given) != len(known):
        raise InvalidInput("the rows have a column twice", where=name, remedy="send each column once")
    return known


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    return (reader.get_batch(place) for place in range(reader.num_record_batches))


def _fitted(batches: Iterable[pa.RecordBatch], schema: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
    """Yields the batches with the table's columns. Raises InvalidInput for columns and values that do not fit."""
    given = None
    for batch in batches:
        if given is not None and not batch.schema.equals(given):
            raise InvalidInput(
                "the batches have several schemas", where=name, remedy="send batches with the same columns"
            )
        given = batch.schema
        yield _cast(batch.select(_columns(given, schema, name)), schema, name)


def _cast(batch: pa.RecordBatch, schema: pa.Schema, name: str) -> pa.RecordBatch:
    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        try:
            fitting = column if column.type == field.type else column.cast(field.type)
        except (pa.ArrowException, NotImplementedError) as failure:
            raise _unfit(field, f"its values are {column.type}, and not {field.type}: {failure}", name) from None
        if fitting.null_count and not field.nullable:
            raise _unfit(field, f"{count(fitting.null_count, 'value')} of it are null", name)
        columns.append(fitting)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _unfit(field: pa.Field, what: str, name: str) -> InvalidInput:
    return InvalidInput(f"column {field.name}: {what}", where=name, remedy="send values that fit the table's columns")
