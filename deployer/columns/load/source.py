"""The files of a load as one sequence of rows: finds and checks the files, reads them in parts, and detects changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from deployer.columns.load.request import LoadRequest
from deployer.datasets.dataset import open_dataset
from deployer.errors import Conflict, DeployerError, InvalidInput
from deployer.tables.ingest.files.columnar import read_units, schema_of, units
from deployer.tables.ingest.files.find import find_sources, refuse_credentials
from deployer.tables.ingest.files.loaded_files import identified
from deployer.tables.ingest.files.model import Format, Source
from deployer.tables.ingest.files.source_files import is_on_s3

PART_ROWS = 262_144  #: number of rows from which a part is complete
PART_BYTES = 32_000_000  #: number of bytes from which a part is complete

_FORMATS = {"parquet": Format.PARQUET, "lance": Format.LANCE, "ipc": Format.ARROW, None: None}


@dataclass(frozen=True, slots=True)
class Part:
    """A range of units (row groups, record batches or fragments) of one file that are read together. `rows` and `bytes`
    are estimates."""

    source: Source
    start: int
    stop: int
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LoadSource:
    """The files of a load, in order. `schema` has the primary key and the columns, `identity` is a digest of the files'
    content, and `changed` has the times of the last changes of local files, in ns."""

    sources: tuple[Source, ...]
    parts: tuple[Part, ...]
    schema: pa.Schema
    identity: str
    changed: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Returns the estimated number of rows."""
        return sum(part.rows for part in self.parts)

    @property
    def bytes(self) -> int:
        """Returns the estimated number of bytes of the rows, with all columns of the files."""
        return sum(part.bytes for part in self.parts)

    def read(self, part: Part, columns: Sequence[str]) -> pa.Table:
        """Returns the rows of a part. Raises InvalidInput for a file that cannot be read completely."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        with _readable(part.source):
            batches = list(read_units(part.source, part.start, part.stop, columns))
            return (
                pa.Table.from_batches([each.select(list(columns)) for each in batches]).cast(schema)
                if batches
                else schema.empty_table()
            )

    def require_unchanged(self) -> None:
        """Raises Conflict where a file has changed since the load began."""
        try:
            same = (identified(self.sources).digest, _changed(self.sources)) == (self.identity, self.changed)
        except (OSError, DeployerError):
            same = False
        if not same:
            raise Conflict(
                "the source was changed while it was read; nothing was written",
                where=self.sources[0].name,
                remedy="run it again when nothing writes to the source",
            )


def find_load_source(request: LoadRequest) -> LoadSource:
    """Finds and checks the files of a request.

    Raises NotFound and InvalidInput for files that do not exist, cannot be read or have no rows. Raises InvalidInput
    for a file that lacks a column, or in which a column has another type than in the first file.
    """
    refuse_credentials(request.source)
    found = find_sources(request.source, _FORMATS[request.source_format])
    wanted = (request.pk, *request.columns)
    for each in found:
        if each.format.is_text:
            raise InvalidInput(
                f"columns are not loaded from {each.format}",
                where=each.name,
                remedy="use Parquet, Lance or Arrow IPC files",
            )
    if len(found) > 1 and any(each.format is Format.LANCE for each in found):
        raise InvalidInput(
            f"{len(found)} sources are given, and a Lance dataset is among them", remedy="give a Lance dataset alone"
        )
    sources = tuple(_pinned(each) for each in found)
    before = _changed(sources)
    identity = identified(sources).digest
    schema: pa.Schema | None = None
    parts: list[Part] = []
    for each in sources:
        with _readable(each):
            own = _schema_of(each, wanted)
            parts += _parts(each)
        if schema is not None and not own.equals(schema):
            other = next(name for name in wanted if own.field(name).type != schema.field(name).type)
            raise InvalidInput(
                f"column {other} is {own.field(other).type} here, and {schema.field(other).type} in {sources[0].name}",
                where=each.name,
                remedy="load files with the same types",
            )
        schema = own
    if schema is None or not parts:
        raise InvalidInput("the source has no rows", where=request.source[0], remedy="give files with rows")
    return LoadSource(sources, tuple(parts), schema, identity, before)


def _pinned(source: Source) -> Source:
    """Returns a source that all processes read in the same way: with an absolute path, and a Lance dataset with its
    present version, so that later commits to it are not read."""
    path = source.path if "://" in source.path else str(Path(source.path).absolute())
    if source.format is Format.LANCE:
        return replace(source, path=path, version=int(open_dataset(path).version))
    return replace(source, path=path)


def _schema_of(source: Source, wanted: Sequence[str]) -> pa.Schema:
    schema = schema_of(source)
    if missing := [name for name in wanted if name not in schema.names]:
        raise InvalidInput(
            f"the source has no column {missing[0]}",
            where=source.name,
            remedy=f"name one that it has: {', '.join(schema.names[:10])}",
        )
    return pa.schema([pa.field(name, schema.field(name).type) for name in wanted])


def _parts(source: Source) -> Iterator[Part]:
    start = rows = size = 0
    found = units(source)
    for number, (unit_rows, unit_bytes) in enumerate(found):
        rows, size = rows + unit_rows, size + unit_bytes
        if rows >= PART_ROWS or size >= PART_BYTES or (number == len(found) - 1 and number >= start):
            yield Part(source, start, number + 1, rows, size)
            start, rows, size = number + 1, 0, 0


def _changed(sources: Sequence[Source]) -> tuple[int, ...]:
    """Returns the times of the last changes of local files, in ns."""
    local = (each.path for each in sources if each.format is not Format.LANCE and not is_on_s3(each.path))
    return tuple(Path(path).stat().st_mtime_ns for path in local)


@contextmanager
def _readable(source: Source) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as failure:
        reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        raise InvalidInput(
            f"it cannot be read as {source.format}: {reason}",
            where=source.name,
            remedy="check that it is complete, and that no program writes to it",
        ) from None
