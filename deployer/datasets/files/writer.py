"""Writes rows as Lance fragments that no version of the dataset has yet."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.commit_metadata import CommittedFile
from deployer.datasets.errors import first_line, refused_by_storage
from deployer.datasets.ordering.clustering import FileClustering
from deployer.datasets.ordering.key_ranges import KeyRange, key_kinds, key_range
from deployer.datasets.ordering.sort_order import sorted_rows
from deployer.datasets.storage.options import objects_at, storage_options
from deployer.errors import DeployerError
from deployer.specs.types.arrow import computed_of
from deployer.specs.types.computed import COMPUTED_NOTE, ComputedByUdf

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class Layout:
    """The settings that a task needs to write rows as files; they are small enough to be sent to it.

    `schema` is the schema of the written rows (IPC bytes), sizes are in rows and bytes. `root` is the root of the
    instance, below which the functions of computed columns are.
    """

    location: str
    schema: bytes
    row_keys: tuple[str, ...] = ()
    sort_keys: tuple[str, ...] = ()
    data_storage_version: str = "2.1"
    max_rows_per_file: int = 1_048_576
    max_bytes_per_file: int = 1_073_741_824
    root: str = ""

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.schema))

    @property
    def order(self) -> tuple[str, ...]:
        """The columns that rows are sorted by: row keys, then sort keys that are not among them."""
        return self.row_keys + tuple(name for name in self.sort_keys if name not in self.row_keys)


@dataclass(frozen=True, slots=True)
class WrittenFragment:
    """A fragment that was written and not committed. `metadata` is Lance's own JSON for it."""

    metadata: dict[str, Any] = field(hash=False)
    partition: str | None
    rows: int
    keys: KeyRange | None
    sorted: bool
    clustered: FileClustering | None = None
    row_ids: Any = None  #: Lance's `RowIdMeta` where rows keep the ids that they had before
    computed: str = ""  #: which definitions computed its values, as in `File`
    unset: frozenset[str] = frozenset()  #: the columns that functions compute on load and that are null in some row

    @property
    def path(self) -> str:
        """The data file, relative to the dataset's `data` folder."""
        path: str = self.metadata["files"][0]["path"]
        return path

    @property
    def bytes(self) -> int:
        return sum(file["file_size_bytes"] or 0 for file in self.metadata["files"])

    @property
    def marked(self) -> CommittedFile:
        return CommittedFile(self.path, self.partition, self.keys, self.sorted, self.clustered, self.computed)


#: a callback that gets the path of each data file, relative to the dataset, as soon as the file exists
_on_file: ContextVar[Callable[[str], None] | None] = ContextVar("_on_file", default=None)


@contextlib.contextmanager
def reported_files(on_file: Callable[[str], None]) -> Iterator[None]:
    """Calls `on_file` with the path of each data file that is written within the block, relative to the dataset, once
    the file exists. It serves writers that may be killed before they have the list of all their files."""
    token = _on_file.set(on_file)
    try:
        yield
    finally:
        _on_file.reset(token)


def write_sorted(
    layout: Layout, rows: pa.Table, partition: str | None, dataset: lance.LanceDataset | None = None
) -> list[WrittenFragment]:
    """Sorts the rows and writes them; the key ranges of the new files follow each other.

    `dataset`, if given, saves opening it.
    """
    if not rows.num_rows:
        return []
    rows = sorted_rows(rows, layout.order)
    made = _write(layout, rows.to_reader(), dataset, partition)
    return _with_ranges(layout, made, rows.select(list(layout.row_keys)))


def write_merged(
    layout: Layout,
    batches: Iterable[pa.RecordBatch],
    partition: str | None,
    dataset: lance.LanceDataset | None = None,
    *,
    in_order: bool = True,
) -> list[WrittenFragment]:
    """Writes rows in the order in which they arrive; only row keys and a few batches stay in memory. `in_order`: this
    is the table's order."""
    names = list(layout.row_keys)
    keys: list[pa.RecordBatch] = []

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            keys.append(batch.select(names))
            yield batch

    reader = pa.RecordBatchReader.from_batches(layout.arrow_schema, noted())
    made = _write(layout, reader, dataset, partition)
    of_keys = pa.schema([layout.arrow_schema.field(name) for name in names])
    return _with_ranges(layout, made, pa.Table.from_batches(keys, of_keys), in_order=in_order)


def _with_ranges(
    layout: Layout, made: Sequence[WrittenFragment], keys: pa.Table, *, in_order: bool = True
) -> list[WrittenFragment]:
    """Returns the written fragments with their key ranges, from the row keys of all rows. `in_order`: the rows are in
    the table's order."""
    kinds = key_kinds(layout.arrow_schema, layout.row_keys)
    written, start = [], 0
    for each in made:
        found = key_range(keys.slice(start, each.rows), kinds, in_order=in_order)
        start += each.rows
        written.append(replace(each, keys=found, sorted=in_order and bool(layout.order)))
    return written


def write_stream(
    layout: Layout,
    batches: Iterable[pa.RecordBatch],
    partition: str | None,
    dataset: lance.LanceDataset | None = None,
) -> list[WrittenFragment]:
    """Writes rows of a table without keys in the order in which they arrive; never holds more than a few batches."""
    first = next(stream := iter(batches), None)
    if first is None:
        return []
    reader = pa.RecordBatchReader.from_batches(layout.arrow_schema, _chain(first, stream))
    return _write(layout, reader, dataset, partition)


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _write(
    layout: Layout, reader: pa.RecordBatchReader, dataset: lance.LanceDataset | None, partition: str | None
) -> list[WrittenFragment]:
    """Writes the fragments and returns them, without ranges and without an order."""
    from lance.fragment import write_fragments

    report = _on_file.get()
    unset: set[str] = set()
    if names := _computed_on_load(layout):
        reader = pa.RecordBatchReader.from_batches(reader.schema, _noting_nulls(reader, names, unset))
    try:
        fragments: Sequence[Any] = write_fragments(
            _without_slices(reader),
            layout.location if dataset is None else dataset,
            schema=layout.arrow_schema,
            mode="append",
            max_rows_per_file=layout.max_rows_per_file,
            max_bytes_per_file=layout.max_bytes_per_file,
            data_storage_version=layout.data_storage_version,
            storage_options=storage_options(layout.location),
            progress=None if report is None else _progress(report),
        )
    except (OSError, ValueError) as failure:
        raise _unwritten(layout, failure) from failure
    except BaseException as failure:
        if type(failure).__name__ != "PanicException":  # Rust's panics are not an Exception
            raise
        raise _unwritten(layout, failure) from failure
    if report is not None and fragments:
        for file in fragments[-1].files:
            report(f"data/{file.path}")
    return [
        WrittenFragment(each.to_json(), partition, each.physical_rows, None, False, unset=frozenset(unset))
        for each in fragments
        if each.physical_rows
    ]


def _computed_on_load(layout: Layout) -> Sequence[str]:
    """Returns the columns that functions compute as rows are loaded; most tables have none."""
    if COMPUTED_NOTE not in layout.schema:
        return ()
    found = {field.name: computed_of(field) for field in layout.arrow_schema}
    return [name for name, each in found.items() if isinstance(each, ComputedByUdf) and each.on_load]


def _noting_nulls(batches: Iterable[pa.RecordBatch], names: Sequence[str], unset: set[str]) -> Iterator[pa.RecordBatch]:
    """Yields the batches, and adds to `unset` the columns that are null in some row."""
    for batch in batches:
        unset.update(name for name in names if batch.column(name).null_count)
        yield batch


def _progress(report: Callable[[str], None]) -> Any:
    """Lance's observer of a writing, which reports each file but the last one."""
    from lance.progress import FragmentWriteProgress

    class Reported(FragmentWriteProgress):  # type: ignore[misc]
        def begin(self, fragment: Any, **_: Any) -> None:
            pass

        def complete(self, fragment: Any, **_: Any) -> None:
            for file in fragment.files:
                report(f"data/{file.path}")

    return Reported()


def _without_slices(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Returns the reader unchanged where no column is nested: Lance then reads the rows from Arrow, without a call of
    Python."""
    if not any(pa.types.is_nested(field.type) for field in reader.schema):
        return reader
    return pa.RecordBatchReader.from_batches(reader.schema, map(_unsliced, reader))


def _unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the batch with its nested columns copied where they begin inside of others: Lance panics on slices of
    structs in structs."""
    if not any(array.offset and pa.types.is_nested(array.type) for array in batch.columns):
        return batch
    return batch.take(pa.array(range(batch.num_rows), pa.int64()))


def _unwritten(layout: Layout, failure: BaseException) -> DeployerError:
    if (refused := refused_by_storage(failure, layout.location)) is not None:
        return refused
    return DeployerError(
        f"Lance cannot write the rows: {first_line(failure)}",
        where=layout.location,
        remedy="check whether the disk is full or the folder was removed, and run it again",
    )


def read_written(
    layout: Layout, written: WrittenFragment, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Reads columns of a fragment's first file, in batches of this many rows."""
    from lance.file import LanceFileReader

    names, path = list(columns), f"{layout.location}/data/{written.path}"
    reader = LanceFileReader(path, storage_options=storage_options(layout.location), columns=names)
    for batch in reader.read_all(batch_size=batch_rows).to_batches():
        yield batch.select(names)


def discard(location: str, written: Sequence[WrittenFragment]) -> None:
    """Removes files of fragments that are known not to be committed."""
    paths = [f"data/{file['path']}" for each in written for file in each.metadata["files"]]
    with contextlib.suppress(OSError, DeployerError):  # they do no harm
        objects_at(location).delete(paths)
