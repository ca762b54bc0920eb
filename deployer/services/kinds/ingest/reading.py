"""Reads the files of one commit: the rows of files that can be loaded, and the reasons why others cannot.

A file is loaded as a whole or not at all: its rows are yielded once all of them are checked. Small columnar files of
one schema are read in parallel and checked together, since a check of each would take longer than reading it. If one of
them has a problem, each is checked by itself, which gives the same messages as `ingest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from deployer.errors import DeployerError, InvalidInput
from deployer.services.kinds.ingest.landing import LandedFile
from deployer.services.kinds.ingest.options import IngestOptions
from deployer.services.kinds.ingest.small_files import SmallFiles
from deployer.tables.ingest.files.dialects import with_dialects
from deployer.tables.ingest.files.find import source_of, splits_of
from deployer.tables.ingest.files.folder_names import folder_values
from deployer.tables.ingest.files.model import Format, Split
from deployer.tables.ingest.files.source_files import is_on_s3
from deployer.tables.ingest.readers.splits import Reading, SplitReport, checked_rows, plan_reading
from deployer.tables.ingest.rows.bad_rows import BadRows
from deployer.tables.ingest.rows.field_map import FieldMap, field_map
from deployer.tables.ingest.rows.missing_columns import unnamed_columns
from deployer.tables.open_table import OpenTable

READ_HERE, READ_ON_S3 = 2, 16  #: how many small files are read at the same time, on the disk and on S3
HELD_BYTES = 256 << 20  #: rows of files up to this size are held until all are checked; larger files are read twice
SHOWN = 3  #: the most problems of a file that its reason names

#: the names of options in messages of the command `ingest`, with their names in `ingest:` of a spec
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


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file whose fields fit the table, with its `Reading` and its splits."""

    file: LandedFile
    reading: Reading
    splits: tuple[Split, ...]


@dataclass
class FileReader:
    """A reader of files for one table.

    With `places`, rows get the columns by which duplicates are found. The reader adds to `bad` the reasons of files
    that cannot be loaded, by path, and to `splits` the path of each split, by its number.
    """

    table: OpenTable
    options: IngestOptions
    places: bool
    on_files: Callable[[int], None]
    bad: dict[str, str] = field(default_factory=dict)
    splits: dict[int, str] = field(default_factory=dict)
    files: int = 0

    @cached_property
    def small_files(self) -> SmallFiles:
        return SmallFiles(self.table, self.options)

    @cached_property
    def _fields(self) -> FieldMap:
        return field_map(self.table.schema, (), ())

    def rows(self, files: Sequence[LandedFile]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of all good files, in the order of the files."""
        small = self.small_files
        at_once = READ_ON_S3 if files and is_on_s3(files[0].path) else READ_HERE
        with ThreadPoolExecutor(at_once) as pool:
            for group in [[each] for each in files] if self.places else small.groups(files):
                together = small.together(group, pool) if len(group) > 1 else None
                if together is not None:
                    yield from together
                else:
                    for each in group:
                        yield from self._checked(each)
                self.files += len(group)
                self.on_files(self.files)

    def plan(self, file: LandedFile) -> PlannedFile | None:
        """Returns the plan for reading the file. For a file that cannot be read it adds the reason to `bad` and returns
        None."""
        try:
            given = source_of(file.path, self.options.format, file.is_lance)
            source = replace(given, folders=folder_values(file.path, file.place))
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
        """Returns the `Reading` of several files together."""
        table = self.table
        names = {path: own for each in planned for path, own in each.reading.names.items()}
        inputs = {path: own for each in planned for path, own in each.reading.inputs.items()}
        schema, fields = table.schema.serialize().to_pybytes(), self._fields
        return Reading(
            schema=schema,
            row_keys=table.row_keys,
            names=names,
            options=self.options.read,
            ignore_extra=self.options.ignore_extra,
            listed=SHOWN,
            unnamed=(),
            fields=fields,
            inputs=inputs,
            places=self.places,
        )

    def _checked(self, file: LandedFile) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a file after all of them have passed the checks. Yields nothing for a bad file."""
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


def bad_reason(reports: Sequence[SplitReport]) -> str:
    """Returns the reason why the splits of one file cannot be loaded; empty where they can."""
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
    """Returns the text of an error as the reason of its file. The text does not name the file."""
    if isinstance(failure, DeployerError):
        text = f"{failure.what}; {failure.remedy}" if failure.remedy else failure.what
        for option, declared in _DECLARED.items():
            text = text.replace(option, declared)
        return text
    return f"it cannot be read: {str(failure).splitlines()[0] if str(failure) else type(failure).__name__}"
