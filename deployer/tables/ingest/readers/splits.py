"""Converts splits of sources to checked rows of the table, in the same way in the driver and in Spark's tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

import numpy as np
import pyarrow as pa

from deployer.errors import DeployerError, InvalidInput
from deployer.tables.ingest.files.model import Format, ReadOptions, Source, Split
from deployer.tables.ingest.keys.unique import with_places
from deployer.tables.ingest.rows.bad_rows import BadRows
from deployer.tables.ingest.rows.check import SourceRows, check, match_columns
from deployer.tables.ingest.rows.computed_values import Computing, computed_columns
from deployer.tables.ingest.rows.field_map import FieldMap, check_one_field_each, check_renamed
from deployer.tables.ingest.rows.folder_columns import (
    check_folder_columns,
    folder_columns,
    schema_with_folders,
    with_folder_columns,
)
from deployer.tables.ingest.rows.headers import names_of_csv, with_header_question
from deployer.tables.ingest.rows.kept_rows import REASONS, with_rows, without_reasons
from deployer.tables.ingest.rows.mapped_rows import fields_to_read, in_columns
from deployer.tables.ingest.rows.missing_columns import columns_with_values, columns_without_values
from deployer.tables.ingest.rows.selects import selected_types
from deployer.tables.ingest.rows.time_texts import as_iso, check_times, with_remarks


@dataclass(frozen=True, slots=True)
class Reading:
    """The settings to read the sources for one table; they are small enough to be sent to tasks.

    `schema` is the table's schema (IPC bytes). `names` has the fields of each source by its path, and `fields` maps
    them to columns. `inputs` has, by path, the fields of a JSON source that only expressions read, with the types in
    its first rows (IPC bytes). `listed` limits how many bad rows of a split are described (None: all, and the rows are
    kept); all of them are counted. `unnamed` are columns of which only the rows show whether any of them has a value.
    `places` says that rows also have the columns of `with_places`. `root` is the root of the instance, below which the
    functions of computed columns are.
    """

    schema: bytes
    row_keys: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    options: ReadOptions = ReadOptions()
    ignore_extra: bool = False
    listed: int | None = None
    unnamed: tuple[str, ...] = ()
    fields: FieldMap = FieldMap()
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    places: bool = False
    root: str = ""

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.schema))

    def absent(self, reports: Iterable[SplitReport]) -> list[str]:
        """Returns the `unnamed` columns that have no value in any row; none where there are no rows."""
        found = [*reports]
        named = {name for report in found for name in report.named}
        return [name for name in self.unnamed if name not in named and any(report.rows for report in found)]


@dataclass(frozen=True, slots=True)
class SplitError:
    """An error as a value that tasks can send, because exceptions with keyword arguments cannot be pickled."""

    kind: type[DeployerError]
    what: str
    where: str | None
    remedy: str

    @staticmethod
    def of(error: DeployerError) -> SplitError:
        return SplitError(type(error), error.what, None if error.where is None else str(error.where), error.remedy)

    def as_error(self) -> DeployerError:
        return self.kind(self.what, where=self.where, remedy=self.remedy)


@dataclass(slots=True)
class SplitReport:
    """The result of a split: the number of its data rows, the bad ones, and the error that ended it early.

    `named` has those of the reading's `unnamed` columns that have a value in a row of the split.
    """

    number: int
    rows: int = 0
    bad: BadRows = field(default_factory=BadRows)
    error: SplitError | None = None
    named: set[str] = field(default_factory=set)


def plan_reading(
    sources: Sequence[Source],
    table: pa.Schema,
    row_keys: tuple[str, ...],
    options: ReadOptions,
    *,
    ignore_extra: bool,
    listed: int | None,
    fields: FieldMap = FieldMap(),  # noqa: B008 (it is frozen)
) -> Reading:
    """Checks the fields of every source and of its folders, and returns the settings.

    Raises InvalidInput for the first source whose fields do not fit the table's columns, or for which an expression
    cannot be computed.
    """
    check_times(options, table)
    names, inputs = {}, {}
    types: dict[pa.Schema, pa.Schema] = {}
    found = [_columns(source, table, fields) for source in sources]
    if all(source.format is not Format.JSON for source in sources):  # a field of JSON may first appear in any row
        folders = {name for source in sources for name, _ in source.folders}
        check_renamed(fields, folders.union(*(columns.names for columns in found)))
    for source, columns in zip(sources, found, strict=True):
        folder_columns(source, table, fields)
        if source.format is not Format.JSON:
            check_one_field_each(columns.names, fields, source.name)
        check_one_field_each([name for name, _ in source.folders], fields, source.name)
        if fields.selects and columns not in types:
            types[columns] = selected_types(columns, fields.selects, source.name)
        try:
            match_columns(
                schema_with_folders(columns, source, table, fields),
                table,
                where=source.name,
                text=source.format.is_text,
                ignore_extra=ignore_extra,
                absent_is_null=source.format is Format.JSON,
                fields=fields,
                selected=types.get(columns),
            )
        except InvalidInput as error:
            raise with_header_question(error, source, table) from None
        names[source.path] = tuple(columns.names)
        if fields.selects and source.format is Format.JSON:
            known = fields.as_in_files(table).names
            only = pa.schema([each for each in columns if each.name in fields.mentioned and each.name not in known])
            inputs[source.path] = only.serialize().to_pybytes()
    schema = table.serialize().to_pybytes()
    return Reading(
        schema=schema,
        row_keys=row_keys,
        names=names,
        options=options,
        ignore_extra=ignore_extra,
        listed=listed,
        unnamed=(),
        fields=fields,
        inputs=inputs,
    )


def _columns(source: Source, table: pa.Schema, fields: FieldMap) -> pa.Schema:
    """Returns the fields of a source."""
    match source.format:
        case Format.CSV:
            return pa.schema([pa.field(name, pa.string()) for name in names_of_csv(source, table, fields)])
        case Format.JSON:
            from deployer.tables.ingest.readers.json import schema_of_sample

            known = fields.as_in_files(table)
            found = schema_of_sample(source, known, fields.mentioned)
            return pa.schema([field for field in found if field.name != REASONS or REASONS in known.names])
        case Format.PARQUET | Format.ARROW | Format.LANCE:
            from deployer.tables.ingest.files.columnar import schema_of

            return schema_of(source)
        case _:
            assert_never(source.format)


def checked_rows(split: Split, reading: Reading, report: SplitReport) -> Iterator[pa.RecordBatch]:
    """Yields the good rows of a split, with the table's schema, and adds the results to `report` while it reads.

    An error of the source ends the split and is stored in the report, because Spark would lose it.
    """
    table = reading.arrow_schema
    text = split.source.format.is_text
    try:
        columns = folder_columns(split.source, table, reading.fields)
        for source in with_folder_columns(_source_rows(split, reading, table), columns):
            report.named |= columns_with_values(source.rows, reading.unnamed)
            if text:
                source = replace(source, rows=as_iso(source.rows, table, reading.options))
            seen = [int(source.numbers[-1])] if len(source.numbers) else []
            seen += [problem.row for problem in source.unreadable.problems]
            report.rows = max(report.rows, *seen) if seen else report.rows
            found = check(
                source,
                table,
                reading.row_keys,
                text=text,
                listed=reading.listed,
                absent_is_null=split.source.format is Format.JSON,
                computing=Computing(reading.root),
            )
            bad = with_remarks(found.bad, table, reading.options) if text else found.bad
            bad = bad.named(source.fields)
            if reading.listed is not None:
                report.bad = report.bad.joined(bad).first(reading.listed)
            elif bad.rows:
                report.bad = report.bad.joined(with_rows(bad, source, table, columns, reading.fields))
            if found.rows.num_rows:
                check_folder_columns(found.rows, columns, split.source)
                yield with_places(found.rows, split.number, found.numbers) if reading.places else found.rows
    except DeployerError as error:
        report.error = SplitError.of(error)


def key_sample(split: Split, reading: Reading) -> pa.Table:
    """Returns a sample of row keys, for an estimate of their distribution. The sample is the first batch of a split,
    without bad rows."""
    table = pa.schema([reading.arrow_schema.field(name) for name in reading.row_keys])
    schema = table.serialize().to_pybytes()
    keys = replace(reading, schema=schema, ignore_extra=True, listed=0, unnamed=())
    first = next(checked_rows(split, keys, SplitReport(split.number)), None)
    return pa.Table.from_batches([first] if first is not None else [], table)


def _source_rows(split: Split, reading: Reading, table: pa.Schema) -> Iterator[SourceRows]:
    """Yields the rows of a split with those columns of the table that the file has."""
    for read in _rows_of_file(split, reading, table):
        yield in_columns(read, table, reading.fields)


def _rows_of_file(split: Split, reading: Reading, table: pa.Schema) -> Iterator[SourceRows]:
    """Yields the rows of a split with the names of the file's fields. Only the needed fields are read."""
    source = split.source
    names = reading.names[source.path]
    columns = fields_to_read(names, table, reading.fields)
    match source.format:
        case Format.CSV:
            from deployer.tables.ingest.readers.csv import read_csv

            yield from read_csv(split, names, columns, reading.options)
        case Format.JSON:
            from deployer.tables.ingest.readers.json import read_json

            known = reading.fields.as_in_files(table)
            if more := reading.inputs.get(source.path):
                known = pa.schema([*known, *pa.ipc.read_schema(pa.py_buffer(more))])
            for read in read_json(split, known, known.names, ignore_extra=reading.ignore_extra):
                rows = without_reasons(read, known)
                match_columns(
                    _with_values(rows.rows, table, reading.fields),
                    table,
                    where=source.name,
                    text=True,
                    ignore_extra=reading.ignore_extra,
                    absent_is_null=True,
                    fields=reading.fields,
                )
                yield rows
        case Format.PARQUET | Format.ARROW | Format.LANCE:
            from deployer.tables.ingest.files.columnar import read_units

            start = 1
            for batch in read_units(source, split.start, split.stop, columns):
                yield SourceRows(batch, np.arange(start, start + batch.num_rows, dtype=np.int64))
                start += batch.num_rows
        case _:
            assert_never(source.format)


def _with_values(rows: pa.RecordBatch, table: pa.Schema, fields: FieldMap) -> pa.Schema:
    """Returns the fields of rows of JSON, without computed columns that are null in all rows."""
    computed = computed_columns(table)
    if not computed:
        return rows.schema
    absent = {name for name in columns_without_values(rows) if fields.column_of(name) in computed}
    return pa.schema([field for field in rows.schema if field.name not in absent])


def bad_by_file(splits: Sequence[Split], reports: Mapping[int, SplitReport]) -> dict[str, BadRows]:
    """Returns the bad rows by the name of their file, with row numbers within the file. Files without bad rows are left
    out."""
    found: dict[str, BadRows] = {}
    before: dict[str, int] = {}
    for split in splits:
        report, name = reports[split.number], split.source.name
        if report.bad.rows:
            moved = report.bad.moved(before.get(name, 0))
            found[name] = found[name].joined(moved) if name in found else moved
        before[name] = before.get(name, 0) + report.rows
    return found
