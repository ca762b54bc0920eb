"""`deployer catalog datasets`, `segments`, `layers` and `manifest`: datasets of recordings, without Rerun's client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    import pyarrow as pa

    from deployer.catalog.datasets.reads.index import DatasetIndex

#: columns with the catalog's own times, in nanoseconds since 1970
_TIMES = ("registered_at", "rerun_registration_time", "rerun_last_updated_at")
DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="The dataset's name.")]


def datasets(
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the datasets of recordings, with how many segments and layers they have."""
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.filesize import decimal
    from rich.table import Table

    from deployer.catalog.datasets.model.registry import Datasets
    from deployer.catalog.datasets.reads.index import Indexes
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.platform.system.clock import utc
    from deployer.state import open_store
    from deployer.state.model.times import iso_utc

    address = root_of(root, project, stack, specs)
    with closing(open_store(address)) as store:
        indexes = Indexes(address)
        found = [
            (each, len(indexes.of(each).numbers), indexes.of(each).layers)
            for each in Datasets(store, address).all()
            if each.kind == "dataset"
        ]
    documents = [
        {
            "id": record.dataset_id,
            "name": record.name,
            "segments": segments,
            "layers": layers.num_rows,
            "chunks": sum(layers["chunks"].to_pylist()),
            "bytes": sum(layers["bytes"].to_pylist()),
            "blueprints": record.blueprints,
            "default_blueprint": record.default_blueprint,
            "created_at": iso_utc(record.created_at),
            "updated_at": iso_utc(record.updated_at),
        }
        for record, segments, layers in found
    ]
    if as_json:
        print_json({"datasets": documents})
        return 0
    if not documents:
        note("there are no datasets of recordings; `deployer catalog register --create DATASET FILE…` makes one")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("dataset", "id", "updated (UTC)"):
        shown.add_column(name)
    for name in ("segments", "layers", "chunks", "size"):
        shown.add_column(name, justify="right")
    for (record, *_), each in zip(found, documents, strict=True):
        numbers = [f"{each[name]:,}" for name in ("segments", "layers", "chunks")]
        shown.add_row(
            str(each["name"]), str(each["id"]), utc(record.updated_at), *numbers, decimal(int(str(each["bytes"])))
        )
    stdout().print(shown)
    return 0


def segments(
    dataset: DatasetName,
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the segments of a dataset, with their layers and properties."""
    from deployer.catalog.datasets.reads.tables import segment_table

    with _opened(dataset, root, project, stack, specs) as index:
        rows = segment_table(index)
    columns = ("rerun_segment_id", "rerun_layer_names", "rerun_num_chunks", "rerun_size_bytes")
    return _show("segments", rows, columns, as_json)


def layers(
    dataset: DatasetName,
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the layers of a dataset, with their files and the size and etag that these had at registration."""
    with _opened(dataset, root, project, stack, specs) as index:
        kept = ("segment", "layer", "url", "size", "tag", "chunks", "bytes", "registered_at")
        rows = index.layers.select(kept)
    return _show("layers", rows, ("segment", "layer", "url", "chunks", "bytes"), as_json)


def manifest(
    dataset: DatasetName,
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the layers of a dataset as clients see them, with their properties and the hash of their columns."""
    from deployer.catalog.datasets.reads import tables

    with _opened(dataset, root, project, stack, specs) as index:
        rows = tables.manifest(index)
    columns = ("rerun_segment_id", "rerun_layer_name", "rerun_num_chunks", "rerun_registration_time")
    return _show("manifest", rows, columns, as_json)


@contextmanager
def _opened(dataset: str, root: Any, project: Any, stack: str, specs: Any) -> Iterator[DatasetIndex]:
    from contextlib import closing

    from deployer.catalog.datasets.model.registry import Datasets
    from deployer.catalog.datasets.reads.index import Indexes
    from deployer.cli.commands.catalog.options import root_of
    from deployer.state import open_store

    address = root_of(root, project, stack, specs)
    with closing(open_store(address)) as store:
        yield Indexes(address).of(Datasets(store, address).by_name(dataset))


def rows_as_json(rows: pa.Table) -> list[dict[str, Any]]:
    """Returns all rows as JSON objects. The catalog's own times have the form that all commands use."""
    import pyarrow as pa

    from deployer.state.model.times import iso_utc
    from deployer.tables.read.export import plain_values

    def values(name: str, column: pa.ChunkedArray) -> list[Any]:
        if name in _TIMES:
            return [iso_utc(ns // 1_000_000) for ns in column.cast(pa.int64()).to_pylist()]
        return plain_values(column.combine_chunks())

    columns = [values(name, column) for name, column in zip(rows.column_names, rows.columns, strict=True)]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _show(name: str, rows: Any, columns: tuple[str, ...], as_json: bool) -> int:
    """Prints all columns as JSON, or only `columns` as a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout

    if as_json:
        print_json({name: rows_as_json(rows)})
        return 0
    if not rows.num_rows:
        note("nothing is registered; `deployer catalog register DATASET FILE…` registers recordings")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for each in columns:
        shown.add_column(each.removeprefix("rerun_"))
    for row in rows.select(columns).to_pylist():
        shown.add_row(*(", ".join(value) if isinstance(value, list) else str(value) for value in row.values()))
    stdout().print(shown)
    return 0
