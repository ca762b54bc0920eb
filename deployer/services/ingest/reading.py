"""Reads the files of one commit: the good rows of those that can be loaded, and why the others cannot.

A file is taken whole or not at all: its rows are passed on once all of them were checked. Small columnar files of one
schema are read side by side and checked together, since a check of each would take longer than reading it; where
anything is wrong with one of them, each is checked by itself, and so has the messages that `ingest` has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deployer.errors import DeployerError, InvalidInput
from deployer.platform.storage.objects import Missing
from deployer.services.ingest.landing import LandedFile, content_hash
from deployer.services.ingest.options import IngestOptions
from deployer.tables.ingest.files.columnar import ALIGNED
from deployer.tables.ingest.files.dialects import with_dialects
from deployer.tables.ingest.files.find import known_format, source_of, splits_of
from deployer.tables.ingest.files.folder_names import folder_values
from deployer.tables.ingest.files.model import Format, Source, Split
from deployer.tables.ingest.files.source_files import SCHEME, is_on_s3
from deployer.tables.ingest.readers.splits import Reading, SplitReport, checked_rows, plan_reading
from deployer.tables.ingest.rows.bad_rows import BadRows
from deployer.tables.ingest.rows.check import SourceRows, check
from deployer.tables.ingest.rows.field_map import FieldMap, field_map
from deployer.tables.ingest.rows.mapped_rows import fields_to_read, in_columns
from deployer.tables.ingest.rows.missing_columns import unnamed_columns
from deployer.tables.open_table import OpenTable

SMALL_BYTES = 1 << 20  #: of a file that is read together with others
GROUP_FILES, GROUP_BYTES = 256, 32 << 20  #: that are checked together
READ_HERE, READ_ON_S3 = 2, 16  #: small files that are read at the same time, on the disk and on S3
HELD_BYTES = 256 << 20  #: of a file whose rows are held until all are checked; a larger one is read twice
READ_PART = 16  #: small files that one thread reads after another
SHOWN = 3  #: problems of a file that its reason names

#: What messages of `ingest` call options, and how `ingest:` of a spec does.
_DECLARED = {
    "--ignore-extra": "`ignore_extra: true`",
    "--missing-as-null": "`missing_as_null: true`",
    "--no-header": "`header: false`",
    "--null-value": "`null_values`",
    "--delimiter": "`delimiter`",
    "--encoding": "`encoding`",
    "--timezone": "`timezone`",
    "--format": "`format`",
}

Groups = Iterator[list[LandedFile]]


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file whose fields fit the table, and how it is read."""

    file: LandedFile
    reading: Reading
    splits: tuple[Split, ...]


@dataclass
class FileReader:
    """Reads files for one table. `bad` fills up with the reasons of those that cannot be loaded, by path, and `splits`
    with the files by the numbers of their splits. `places`: rows get the columns by which duplicates are found."""

    table: OpenTable
    options: IngestOptions
    places: bool
    on_files: Callable[[int], None]
    bad: dict[str, str] = field(default_factory=dict)
    splits: dict[int, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)  #: hashes of files on the disk that were read whole
    files: int = 0
    _fitting: dict[bytes, bool] = field(default_factory=dict)
    _fitting_last: pa.Schema | None = None
    _has_folders: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def _fields(self) -> FieldMap:
        return field_map(self.table.schema, (), ())

    def rows(self, files: Sequence[LandedFile]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of all good files, in the order of the files."""
        at_once = READ_ON_S3 if files and is_on_s3(files[0].path) else READ_HERE
        with ThreadPoolExecutor(at_once) as pool:
            for group in self._groups(files):
                together = self._together(group, pool) if len(group) > 1 else None
                if together is not None:
                    yield from together
                else:
                    for each in group:
                        yield from self._checked(each)
                self.files += len(group)
                self.on_files(self.files)

    def plan(self, file: LandedFile) -> PlannedFile | None:
        """Returns how the file is read; None for one that cannot be, which is bad then."""
        try:
            given = source_of(file.path, self.options.format, file.is_lance)
            source = replace(given, folders=folder_values(file.path, self.options.files))
            [source] = with_dialects([source], self.options.read)
            fields = self._fields
            reading = plan_reading(
                [source],
                self.table.schema,
                self.table.row_keys,
                self.options.read,
                ignore_extra=self.options.ignore_extra,
                listed=SHOWN,
                fields=fields,
            )
            if not self.options.missing_as_null and source.format is not Format.JSON:
                unnamed = unnamed_columns(self.table.schema, [source], reading.names, fields)
                if unnamed:
                    raise InvalidInput(
                        f"it has no column {', '.join(map(repr, unnamed))}",
                        remedy="add the column to the file, declare `default:` for it, or `missing_as_null: true`",
                    )
            first = len(self.splits)
            splits = tuple(replace(split, number=first + split.number) for split in splits_of([source]))
        except (DeployerError, OSError, pa.ArrowException) as failure:
            self.bad[file.path] = reason_of(failure)
            return None
        self.splits.update((split.number, file.path) for split in splits)
        return PlannedFile(file, replace(reading, places=self.places), splits)

    def reading_of(self, planned: Sequence[PlannedFile]) -> Reading:
        """Returns how several files are read together."""
        table = self.table
        names = {path: own for each in planned for path, own in each.reading.names.items()}
        inputs = {path: own for each in planned for path, own in each.reading.inputs.items()}
        schema, fields = table.schema.serialize().to_pybytes(), self._fields
        return Reading(
            schema, table.row_keys, names, self.options.read, self.options.ignore_extra, SHOWN, (), fields, inputs,
            self.places,
        )  # fmt: skip

    def _checked(self, file: LandedFile) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a file once all of them are found good."""
        planned = self.plan(file)
        if planned is None:
            return
        reports: list[SplitReport] = []
        batches = self._batches(planned, reports)
        if sum(split.bytes for split in planned.splits) <= HELD_BYTES:
            held = [*batches]
            if not self._is_bad(file, reports):
                yield from held
            return
        for _ in batches:
            pass
        if not self._is_bad(file, reports):
            yield from self._batches(planned, [])

    def _batches(self, planned: PlannedFile, reports: list[SplitReport]) -> Iterator[pa.RecordBatch]:
        for split in planned.splits:
            reports.append(report := SplitReport(split.number))
            try:
                yield from checked_rows(split, planned.reading, report)
            except (OSError, pa.ArrowException) as failure:
                self.bad[planned.file.path] = reason_of(failure)
            if report.error or planned.file.path in self.bad:
                return

    def _is_bad(self, file: LandedFile, reports: Sequence[SplitReport]) -> bool:
        if (reason := bad_reason(reports)) and file.path not in self.bad:
            self.bad[file.path] = reason
        return file.path in self.bad

    def _groups(self, files: Sequence[LandedFile]) -> Groups:
        """Yields small columnar files together, all others one by one."""
        for small, run in groupby(files, self._is_small):
            group: list[LandedFile] = []
            size = 0
            for each in run:
                if group and (not small or len(group) >= GROUP_FILES or size >= GROUP_BYTES):
                    yield group
                    group, size = [], 0
                group.append(each)
                size += each.bytes
            yield group

    def _is_small(self, file: LandedFile) -> bool:
        if self.places or file.is_lance or file.bytes > SMALL_BYTES or self._format(file) is None:
            return False
        folder = file.path.rpartition("/")[0]
        if (has_folders := self._has_folders.get(folder)) is None:
            try:
                has_folders = bool(folder_values(file.path, self.options.files))
            except DeployerError:
                has_folders = True
            self._has_folders[folder] = has_folders
        return not has_folders

    def _format(self, file: LandedFile) -> Format | None:
        """Returns the format of a columnar file; None for any other."""
        found = self.options.format or known_format(file.path.rpartition("/")[2])
        return found if found in (Format.PARQUET, Format.ARROW) else None

    def _together(self, group: Sequence[LandedFile], pool: ThreadPoolExecutor) -> list[pa.RecordBatch] | None:
        """Returns the rows of all files of the group; None where anything is wrong with one of them."""
        try:
            parts = [group[first : first + READ_PART] for first in range(0, len(group), READ_PART)]
            tables = [each for part in pool.map(self._read_all, parts) for each in part]
        except (DeployerError, Missing, OSError, pa.ArrowException):
            return None
        schema = tables[0].schema
        if any(each.schema is not schema and not each.schema.equals(schema) for each in tables):
            return None
        found = list[pa.RecordBatch]()
        for batch in pa.concat_tables(tables).combine_chunks().to_batches():
            rows = SourceRows(batch, np.arange(1, batch.num_rows + 1, dtype=np.int64))
            rows = in_columns(rows, self.table.schema, self._fields)
            checked = check(rows, self.table.schema, self.table.row_keys, text=False, listed=0)
            if checked.bad.rows:
                return None
            found.append(checked.rows)
        return found

    def _read_all(self, files: Sequence[LandedFile]) -> list[pa.Table]:
        return [self._read_small(each) for each in files]

    def _read_small(self, file: LandedFile) -> pa.Table:
        """Returns all rows of a file with the fields that are needed, which is read once."""
        if is_on_s3(file.path):
            data = _object(file.path)
        else:
            data = Path(file.path).read_bytes()
            self.contents[file.path] = content_hash(data)
        source = pa.BufferReader(data)
        if self._format(file) is Format.PARQUET:
            opened = pq.ParquetFile(source)
            schema = opened.schema_arrow
            names = self._needed(file, schema)
            is_whole = len(names) == len(schema.names)  # to look columns up by name takes as long as to read them
            table = opened.read(use_threads=False) if is_whole else opened.read(names, use_threads=False)
        else:
            is_file = data.startswith(b"ARROW1")
            reader = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source, options=ALIGNED)
            names = self._needed(file, reader.schema)
            table = reader.read_all()
        if table.schema.names != names:
            table = table.select(names)
        return table.replace_schema_metadata(None) if table.schema.metadata else table

    def _needed(self, file: LandedFile, schema: pa.Schema) -> list[str]:
        if not self._fits(file, schema):
            raise DeployerError("its fields do not fit", where=file.path, remedy="it is looked at by itself")
        return fields_to_read(schema.names, self.table.schema, self._fields)

    def _fits(self, file: LandedFile, schema: pa.Schema) -> bool:
        """Returns whether a file with these fields can be loaded, which is found out once for all such files."""
        last = self._fitting_last
        if last is not None and schema.equals(last):
            return True
        key = schema.serialize().to_pybytes()
        if key not in self._fitting:
            self._fitting[key] = self._fields_fit(file, schema)
        if self._fitting[key]:
            self._fitting_last = schema
        return self._fitting[key]

    def _fields_fit(self, file: LandedFile, schema: pa.Schema) -> bool:
        from deployer.tables.ingest.rows.check import match_columns
        from deployer.tables.ingest.rows.field_map import check_one_field_each

        table, fields = self.table.schema, self._fields
        source = Source(file.path, Format.ARROW, file.path)
        try:
            check_one_field_each(schema.names, fields, file.path)
            match_columns(
                schema, table, where=file.path, text=False, ignore_extra=self.options.ignore_extra, fields=fields
            )
        except DeployerError:
            return False
        return self.options.missing_as_null or not unnamed_columns(table, [source], {file.path: schema.names}, fields)


def _object(path: str) -> bytes:
    """Returns an object in one request."""
    from deployer.datasets.storage.options import objects_at

    bucket, _, key = path.removeprefix(SCHEME).partition("/")
    return objects_at(f"{SCHEME}{bucket}").get(key)


def bad_reason(reports: Sequence[SplitReport]) -> str:
    """Returns why the splits of one file cannot be loaded; empty where they can."""
    if error := next((report.error for report in reports if report.error), None):
        return reason_of(error.as_error())
    bad, before = BadRows(), 0
    for report in reports:
        bad = bad.joined(report.bad.moved(before))
        before += report.rows
    if not bad.rows:
        return ""
    shown = "; ".join(str(each) for each in bad.problems[:SHOWN])
    return f"{bad.rows:,} of {before:,} rows cannot be loaded: {shown}"


def reason_of(failure: BaseException) -> str:
    """Returns an error as the reason of its file, whose name stands beside it."""
    if isinstance(failure, DeployerError):
        text = f"{failure.what}; {failure.remedy}" if failure.remedy else failure.what
        for option, declared in _DECLARED.items():
            text = text.replace(option, declared)
        return text
    return f"it cannot be read: {str(failure).splitlines()[0] if str(failure) else type(failure).__name__}"
