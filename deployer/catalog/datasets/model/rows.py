"""The rows of a dataset's tables: one for each layer, chunk and task. docs/catalog.md describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deployer.catalog.datasets.model.properties import packed_properties
from deployer.catalog.recordings.recording import Recording
from deployer.catalog.recordings.row_range import RowRange, joined_ranges

#: The columns of the table of layers. `source` numbers the files of a dataset in the order of their registration. Only
#: the dataset's first layer with certain columns has the `schema` (IPC). Only the first layer of a registration call
#: has `properties` (IPC), with one row for each layer of the call.
LAYERS = pa.schema(
    [
        pa.field("source", pa.int64(), nullable=False),
        pa.field("segment", pa.utf8(), nullable=False),
        pa.field("layer", pa.utf8(), nullable=False),
        pa.field("url", pa.utf8(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),  # bytes of the file; `tag` is the file's too
        pa.field("tag", pa.utf8(), nullable=False),
        pa.field("registered_at", pa.int64(), nullable=False),  # ns since 1970
        pa.field("chunks", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),  # of the layer's chunks, uncompressed
        pa.field("schema_sha256", pa.binary(32), nullable=False),
        pa.field("schema_number", pa.int64(), nullable=False),  # the `source` of the row that has the schema
        pa.field("schema", pa.large_binary()),
        pa.field("properties", pa.large_binary()),
    ]
)
RANGE = pa.struct([pa.field("timeline", pa.utf8()), pa.field("first", pa.int64()), pa.field("last", pa.int64())])
LAST = pa.struct([pa.field("timeline", pa.utf8()), pa.field("component", pa.utf8()), pa.field("last", pa.int64())])

#: The columns of the table of chunks. `last` has, for each timeline and component, the last time at which the chunk has
#: a value of the component.
CHUNKS = pa.schema(
    [
        pa.field("source", pa.int64(), nullable=False),
        pa.field("chunk_id", pa.binary(16), nullable=False),
        pa.field("entity", pa.utf8(), nullable=False),
        pa.field("static", pa.bool_(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("ranges", pa.list_(RANGE), nullable=False),
        pa.field("last", pa.list_(LAST), nullable=False),
    ]
)
TASKS = pa.schema(
    [
        pa.field("task", pa.utf8(), nullable=False),
        pa.field("url", pa.utf8(), nullable=False),
        pa.field("layer", pa.utf8(), nullable=False),
        pa.field("segment", pa.utf8(), nullable=False),  # empty where the registration failed
        pa.field("error", pa.utf8()),
        pa.field("at", pa.int64(), nullable=False),  # ns since 1970
    ]
)

_MANIFEST = {
    "chunk_id": "chunk_id",
    "entity": "chunk_entity_path",
    "static": "chunk_is_static",
    "rows": "chunk_num_rows",
    "offset": "chunk_byte_offset",
    "length": "chunk_byte_size",
    "bytes": "chunk_byte_size_uncompressed",
}
Labels = Mapping[str, Mapping[str, str]]  #: texts by the name of an item's field, and then by key

_CELLS = 1 << 22  #: most cells (chunks times timelines and components) that are in memory at a time


@dataclass(frozen=True, slots=True)
class NewLayer:
    """A recording to be added as a layer. `size` (bytes) and `tag` are those of its file; `properties` has one row."""

    layer: str
    url: str
    size: int
    tag: str
    recording: Recording
    properties: RowRange | None

    @property
    def key(self) -> tuple[str, str]:
        return self.recording.segment, self.layer


@dataclass(frozen=True, slots=True)
class Task:
    """The registration of one file; `error` is None where it succeeded."""

    task: str
    url: str
    layer: str
    segment: str = ""
    error: str | None = None


def layer_rows(
    layers: Sequence[NewLayer], first_source: int, at: int, known: Mapping[bytes, int] | None = None
) -> pa.Table:
    """Returns the rows of layers; their sources are numbered from `first_source` on. `at` is the time of registration,
    in ns since 1970. `known` has the sources of the dataset's schemas, by the schema's IPC bytes."""
    if not layers:
        return LAYERS.empty_table()
    numbers = dict(known or {})
    schemas_by_id = {id(each.recording.schema): each.recording.schema for each in layers}
    written = {key: schema.serialize().to_pybytes() for key, schema in schemas_by_id.items()}
    data = [written[id(each.recording.schema)] for each in layers]
    places = [numbers.setdefault(each, source) for source, each in enumerate(data, first_source)]
    schemas = [each if places[at] == first_source + at else None for at, each in enumerate(data)]
    columns = {
        "source": list(range(first_source, first_source + len(layers))),
        "segment": [each.recording.segment for each in layers],
        "layer": [each.layer for each in layers],
        "url": [each.url for each in layers],
        "size": [each.size for each in layers],
        "tag": [each.tag for each in layers],
        "registered_at": [at] * len(layers),
        "chunks": [each.recording.chunks for each in layers],
        "bytes": [each.recording.size for each in layers],
        "schema_sha256": [each.recording.schema_sha256 for each in layers],
        "schema_number": places,
        "schema": schemas,
        "properties": [packed_properties([each.properties for each in layers]), *[None] * (len(layers) - 1)],
    }
    return pa.table(columns, schema=LAYERS)


def task_rows(tasks: Sequence[Task], at: int) -> pa.Table:
    columns = {name: [getattr(each, name) for each in tasks] for name in TASKS.names if name != "at"}
    return pa.table({**columns, "at": [at] * len(tasks)}, schema=TASKS)


def chunk_rows(layers: Sequence[NewLayer], first_source: int) -> pa.Table:
    """Returns the rows of the layers' chunks, in the order of the layers, whose sources are numbered from
    `first_source` on."""
    found, manifests = list[pa.Table](), list[pa.RecordBatch]()
    sources = np.repeat(np.arange(first_source, first_source + len(layers)), [each.recording.chunks for each in layers])
    written = 0
    for each in joined_ranges(layer.recording.rows for layer in layers):
        manifest = each.rows
        if manifests and not manifest.schema.equals(manifests[0].schema):
            count = sum(each.num_rows for each in manifests)
            found.append(_chunks(manifests, sources[written : written + count]))
            written, manifests = written + count, []
        manifests.append(manifest)
    if manifests:
        found.append(_chunks(manifests, sources[written:]))
    return pa.concat_tables(found) if found else CHUNKS.empty_table()


def _chunks(manifests: Sequence[pa.RecordBatch], sources: npt.NDArray[np.int64]) -> pa.Table:
    """Returns the rows of the chunks in manifests that have the same columns; `sources` has the source of each
    chunk."""
    table = pa.Table.from_batches(manifests).combine_chunks()
    columns = {name: table[column].cast(CHUNKS.field(name).type) for name, column in _MANIFEST.items()}
    ranges, last = _timelines(table.schema), _components(table.schema)
    first_of = {name: f"{name}:start" for name in ranges}
    last_of = {name: f"{name}:end" for name in ranges}
    columns["ranges"] = _lists(table, RANGE, {"timeline": ranges}, {"first": first_of, "last": last_of})
    names = {f"{timeline}\0{component}": (timeline, component) for timeline, component in last.values()}
    ends = {f"{timeline}\0{component}": column for column, (timeline, component) in last.items()}
    labels = {"timeline": {key: pair[0] for key, pair in names.items()}}
    labels["component"] = {key: pair[1] for key, pair in names.items()}
    columns["last"] = _lists(table, LAST, labels, {"last": ends})
    return pa.table({"source": pa.array(sources, pa.int64()), **columns}, schema=CHUNKS)


def _timelines(schema: pa.Schema) -> dict[str, str]:
    """Returns the names of a manifest's timelines, as a mapping of each name to itself."""
    found = dict[str, str]()
    for field in schema:
        name = field.name.removesuffix(":start")
        if name != field.name and set(field.metadata or {}) == {b"rerun:index"} and f"{name}:end" in schema.names:
            found[name] = name
    return found


def _components(schema: pa.Schema) -> dict[str, tuple[str, str]]:
    """Returns the timeline and the component of each manifest column with the last times of a component."""
    found = dict[str, tuple[str, str]]()
    for field in schema:
        metadata = field.metadata or {}
        if field.name.endswith(":end") and {b"rerun:component", b"rerun:index"} <= metadata.keys():
            found[field.name] = (metadata[b"rerun:index"].decode(), metadata[b"rerun:component"].decode())
    return found


def _lists(table: pa.Table, item: pa.StructType, labels: Labels, values: Labels) -> pa.ChunkedArray:
    """Returns a list for each chunk, with an item for each label of which the chunk has values.

    `labels` has the item's texts, and `values` the names of the columns with its numbers; both by field and key.
    """
    keys = list(next(iter(labels.values())))
    step = max(1, _CELLS // max(1, len(keys)))
    pieces = [_list(table.slice(start, step), item, keys, labels, values) for start in range(0, table.num_rows, step)]
    return pa.chunked_array(pieces, pa.list_(item))


def _list(
    table: pa.Table,
    item: pa.StructType,
    keys: list[str],
    labels: Labels,
    values: Labels,
) -> pa.ListArray:
    count = table.num_rows
    present = np.zeros((count, len(keys)), bool)
    numbers = {name: np.zeros((count, len(keys)), np.int64) for name in values}
    for name, columns in values.items():
        for at, key in enumerate(keys):
            column = table[columns[key]].cast(pa.int64())
            numbers[name][:, at] = column.fill_null(0).to_numpy()
            valid = column.is_valid().to_numpy()
            present[:, at] = valid if name == next(iter(values)) else present[:, at] & valid
    which = np.broadcast_to(np.arange(len(keys)), present.shape)[present]
    texts = {
        name: pa.array([texts[key] for key in keys], pa.utf8()).take(pa.array(which)) for name, texts in labels.items()
    }
    arrays = {**texts, **{name: pa.array(table[present]) for name, table in numbers.items()}}
    items = pa.StructArray.from_arrays([arrays[field.name] for field in item], fields=list(item))
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(present.sum(axis=1), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=pa.list_(item))


def schemas_in(layers: pa.Table) -> dict[bytes, int]:
    """Returns the sources of the rows of layers that have a schema, by the schema's IPC bytes."""
    holding = layers.filter(layers["schema"].is_valid())
    return dict(zip(holding["schema"].to_pylist(), holding["source"].to_pylist(), strict=True))


@lru_cache(maxsize=1024)
def schema_of(data: bytes) -> pa.Schema:
    """Returns the schema of IPC bytes."""
    return pa.ipc.read_schema(pa.py_buffer(data))
