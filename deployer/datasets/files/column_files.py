"""Writes values of columns as one more data file of a fragment, which no version of the dataset has yet."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.errors import first_line, refused_by_storage
from deployer.datasets.schema.fields import FieldTree, SchemaField
from deployer.datasets.storage.options import objects_at, storage_options
from deployer.errors import DeployerError

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class ColumnFile:
    """A data file with the values of columns for all physical rows of a fragment. `metadata` is Lance's own JSON for
    the file."""

    fragment_id: int
    rows: int
    metadata: Mapping[str, Any] = field(hash=False)

    @property
    def path(self) -> str:
        """The file, relative to the dataset's `data` folder."""
        path: str = self.metadata["path"]
        return path

    @property
    def bytes(self) -> int:
        return int(self.metadata["file_size_bytes"] or 0)


def field_ids_of(dataset: lance.LanceDataset, columns: Sequence[str]) -> tuple[int, ...]:
    """Returns Lance's ids of the columns and of all fields below them, depth first. Raises KeyError for unknown
    columns."""
    top = {each.name: each for each in FieldTree.of(dataset.lance_schema).fields}
    return tuple(number for name in columns for number in _ids(top[name]))


def _ids(top: SchemaField) -> Iterator[int]:
    yield top.id
    for child in top.children:
        yield from _ids(child)


def write_column_file(
    dataset: lance.LanceDataset,
    location: str,
    fragment_id: int,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> ColumnFile:
    """Writes the values of the schema's columns, which the dataset has, for every physical row of the fragment in
    order: rows that are deleted have placeholders.

    Raises DeployerError where the number of values differs from the number of rows, or the values cannot be written.
    """
    from lance.fragment import LanceFragment

    try:
        # "create" gives the fields ids from 0, which are put right below; "append" takes rows with all columns only.
        made = LanceFragment.create(
            location,
            pa.RecordBatchReader.from_batches(schema, _unsliced(schema, batches)),
            schema=schema,
            mode="create",
            data_storage_version=dataset.data_storage_version,
            storage_options=storage_options(location),
        )
    except (OSError, ValueError) as failure:
        raise _unwritten(location, failure) from failure
    document = made.to_json()
    ids = field_ids_of(dataset, schema.names)
    [metadata] = document["files"]
    metadata["fields"] = [ids[number] for number in metadata["fields"]]
    written = ColumnFile(fragment_id, int(document["physical_rows"]), metadata)
    expected = int(dataset.get_fragment(fragment_id).metadata.physical_rows)
    if written.rows != expected:
        remove_column_files(location, [written])
        raise DeployerError(f"{written.rows:,} values were made for the {expected:,} rows of fragment {fragment_id}")
    return written


def _unsliced(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """Returns the batches, copied where structs are in nested columns: Lance panics on slices of structs in structs."""
    if not any(_holds_struct(each.type) for each in schema):
        return batches
    return (each.take(pa.array(range(each.num_rows), pa.int64())) for each in batches)


def _holds_struct(kind: pa.DataType) -> bool:
    inner = (kind.field(number).type for number in range(kind.num_fields))
    return bool(pa.types.is_struct(kind) or pa.types.is_map(kind)) or any(map(_holds_struct, inner))


def remove_column_files(location: str, files: Sequence[ColumnFile]) -> None:
    """Removes files that are known not to be committed."""
    with contextlib.suppress(OSError, DeployerError):  # they do no harm
        objects_at(location).delete([f"data/{each.path}" for each in files])


def to_data_file(written: ColumnFile) -> Any:
    """Returns the file in the form that Lance's operations take."""
    from lance.fragment import FragmentMetadata

    document = {"id": 0, "files": [dict(written.metadata)], "physical_rows": written.rows}
    return FragmentMetadata.from_json(json.dumps(document)).files[0]


def _unwritten(location: str, failure: BaseException) -> DeployerError:
    if (refused := refused_by_storage(failure, location)) is not None:
        return refused
    return DeployerError(
        f"Lance cannot write the column: {first_line(failure)}",
        where=location,
        remedy="check whether the disk is full or the folder was removed, and run it again",
    )
