"""Reads the properties of recordings (static values of entities below `/__properties`) as columns of segments and
layers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache

import pyarrow as pa

from deployer.catalog.protocol.dataframes import rows_in
from deployer.catalog.protocol.messages import log_msg
from deployer.catalog.recordings.recording import Recording, component_of
from deployer.catalog.recordings.row_range import RowRange, joined_ranges
from deployer.catalog.recordings.source import ByteSource

ENTITY = "/__properties"
_REPLACED = str.maketrans(dict.fromkeys(", -.\\", "_"))  #: characters that column names may not have


def properties_of(recording: Recording, source: ByteSource) -> pa.RecordBatch | None:
    """Returns one row with the recording's properties, sorted by name; None where the recording has no properties.

    Raises InvalidInput for chunks that are not rows.
    """
    found = dict[str, tuple[pa.Field, pa.Array]]()
    manifest = recording.manifest
    entities, static = (manifest[name].to_pylist() for name in ("chunk_entity_path", "chunk_is_static"))
    for place, entity in enumerate(entities):
        if static[place] and entity.startswith(f"{ENTITY}/"):
            offset, length = (manifest[name][place].as_py() for name in ("chunk_byte_offset", "chunk_byte_size"))
            for rows in rows_in(log_msg.ArrowMsg.FromString(source.read(offset, length))):
                found |= {field.name: (field, value) for field, value in _columns(rows, entity)}
    if not found:
        return None
    names = sorted(found)
    return pa.RecordBatch.from_arrays(
        [found[name][1] for name in names], schema=pa.schema([found[name][0] for name in names])
    )


def _columns(rows: pa.RecordBatch, entity: str) -> Iterable[tuple[pa.Field, pa.Array]]:
    for at, column in columns_of(rows.schema.remove_metadata(), entity):
        values = rows.column(at)
        if values.null_count:
            values = values.filter(values.is_valid())
        value = values[-1:] if len(values) else pa.nulls(1, values.type)
        yield column, value if column.type == value.type else value.cast(column.type)


Places = tuple[tuple[int, pa.Field], ...]


def columns_of(schema: pa.Schema, entity: str) -> Places:
    """Returns the columns of an entity's properties, each with its position in a chunk with the fields of `schema`."""
    known = _known_of(entity)
    for fields, found in tuple(known):  # a copy, because other threads add to `known`
        if fields.equals(schema, check_metadata=True):
            return found
    made = tuple(
        (at, _column(entity, component_of(field), field.type, frozenset((field.metadata or {}).items())))
        for at, field in enumerate(schema)
        if (field.metadata or {}).get(b"rerun:kind") == b"data"
    )
    known.append((schema, made))
    return made


@lru_cache(maxsize=1024)
def _known_of(entity: str) -> deque[tuple[pa.Schema, Places]]:
    """Returns the cache of the last schemas of an entity's chunks, with their columns; most recordings share them."""
    return deque(maxlen=4)


@lru_cache(maxsize=4096)
def _column(entity: str, component: str, kind: pa.DataType, metadata: frozenset[tuple[bytes, bytes]]) -> pa.Field:
    """Returns the column of a property."""
    about = {key: text for key, text in sorted(metadata) if key != b"rerun:is_static"}
    about[b"rerun:entity_path"] = entity.encode()
    name = _name(entity, component, about.get(b"rerun:archetype", b"").decode())
    return pa.field(name, _nullable_items(kind), metadata=about)


def _name(entity: str, component: str, archetype: str) -> str:
    """Returns the name of a property: its entity below `/__properties`, its archetype and its field."""
    short = archetype.rpartition(".")[2]
    field = component.removeprefix(f"{short}:") if short else component
    parts = ("property", entity.removeprefix(ENTITY).strip("/"), short, field)
    return ":".join(filter(None, parts)).translate(_REPLACED)


def _nullable_items(kind: pa.DataType) -> pa.DataType:
    """Returns the type of a property: the items of its fixed-size lists may be null."""
    if pa.types.is_list(kind) and pa.types.is_fixed_size_list(kind.value_type):
        items = kind.value_type
        return pa.list_(kind.value_field.with_type(pa.list_(items.value_field.with_nullable(True), items.list_size)))
    return kind


def packed_properties(layers: Sequence[RowRange | None]) -> bytes:
    """Returns a row for each layer, with the columns of all layers, as an IPC stream."""
    table = aligned(layers)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def aligned(layers: Sequence[RowRange | None]) -> pa.Table:
    """Returns a row for each layer. A property must have the same type in all layers.

    The column `_` has only nulls: it makes rows for layers without properties.
    """
    runs = list[list[RowRange | None]]()
    for each in layers:
        if runs and _has_same_columns(runs[-1][0], each):
            runs[-1].append(each)
        else:
            runs.append([each])
    return joined([_with_rows(each) for each in runs])


def _with_rows(run: Sequence[RowRange | None]) -> pa.Table:
    """Returns the rows of layers that have the same columns, with the column `_`."""
    batches = [each.rows for each in joined_ranges(each for each in run if each is not None)]
    found = pa.table({"_": pa.nulls(len(run))})
    if batches:
        for column in (properties := pa.Table.from_batches(batches).combine_chunks()).column_names:
            found = found.append_column(properties.schema.field(column), properties[column])
    return found


def _has_same_columns(one: RowRange | None, other: RowRange | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.batch is other.batch or bool(one.batch.schema.equals(other.batch.schema))


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Returns the rows of all tables, with nulls where a table lacks a column. A column has the metadata of the first
    table that has it."""
    if not tables:
        return pa.table({"_": pa.nulls(0)})
    fields = dict[str, pa.Field]()
    for each in tables:
        for field in each.schema:
            fields.setdefault(field.name, field)
    schema = pa.schema(list(fields.values()))
    return pa.concat_tables([_with(each, schema) for each in tables])


def _with(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def unpacked_properties(data: bytes) -> pa.Table:
    """Returns the rows that `packed_properties` encoded."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
