"""Infers columns of data: types and nullability of files that no spec declares yet, and possible row keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.arrow import column_of
from deployer.specs.types.column_names import is_source, legal_names, listed
from deployer.specs.types.lance_support import type_findings
from deployer.specs.types.types import Column
from deployer.tables.conversion.text_values import parsed
from deployer.tables.importing.json_columns import document_note, joined_json, json_rows
from deployer.tables.importing.key_candidates import key_candidate
from deployer.tables.importing.text_columns import type_of_texts, typed, usual_nulls
from deployer.tables.ingest.files.columnar import read_units, schema_of
from deployer.tables.ingest.files.dialects import notes_on, with_dialects
from deployer.tables.ingest.files.find import find_sources, splits_of
from deployer.tables.ingest.files.model import Format, ReadOptions, Source
from deployer.tables.ingest.readers.csv import read_csv
from deployer.tables.ingest.rows.bad_rows import BadRows
from deployer.tables.ingest.rows.headers import check_header
from deployer.tables.ingest.rows.time_texts import DateFormats

SAMPLE_ROWS = 1_000_000
_FOLDER_TYPES = (pa.int64(), pa.date32())


@dataclass(frozen=True, slots=True)
class InferredColumns:
    """Columns as the rows that were read need them; `complete`: those were all.

    `row_keys` are columns that are never null and together unique in these rows, and that are likely to stay so; empty
    when none are. `options` read the files as these columns; `notes` say what was assumed.
    """

    columns: tuple[Column, ...]
    rows: int
    complete: bool
    row_keys: tuple[str, ...]
    options: ReadOptions = ReadOptions()
    notes: tuple[str, ...] = ()


def infer(
    paths: Sequence[str], format_name: Format | None, options: ReadOptions, limit: int = SAMPLE_ROWS
) -> InferredColumns:
    """Looks at the first `limit` rows of files, as they would be loaded.

    Raises NotFound and InvalidInput for files that cannot be read, and for columns that no table can have.
    """
    sources = with_dialects(find_sources(paths, format_name), options)
    notes = notes_on(sources)
    sample, originals = _with_legal_names(_sample(sources, options, limit))
    if sample.csv is not None and (nulls := usual_nulls(_parted(sample.csv, sample.folders)[0])):
        options = replace(options, null_values=(*options.null_values, *nulls))
        notes += [_null_note(text, columns) for text, columns in nulls.items()]
        sample, _ = _with_legal_names(_sample(sources, options, limit))
    notes += sample.notes
    found: list[pa.Table] = list(sample.others)
    formats: DateFormats = ()
    for rows, numbers in ((sample.csv, True), (sample.json, False)):
        if rows is not None:
            in_files, in_folders = _parted(rows, sample.folders)
            text = typed(in_files, options.date_formats, numbers=numbers)
            found.append(_with_columns(text.rows, in_folders))
            formats += text.date_formats
            notes += text.notes
            if numbers and options.header and (doubt := check_header(as_in_files(text.rows.schema, originals))):
                notes.append(doubt)
    options = replace(options, date_formats=tuple(dict.fromkeys((*options.date_formats, *formats))))
    rows = _joined(found)
    columns = tuple(
        replace(_column(rows, name, sample.complete), source=originals.get(name)) for name in rows.schema.names
    )
    notes += [f"column {name} is called {original!r} in the files" for name, original in originals.items()]
    keys = key_candidate(rows, columns) if sample.complete else ()
    return InferredColumns(columns, rows.num_rows, sample.complete, keys, options, tuple(dict.fromkeys(notes)))


@dataclass(frozen=True, slots=True)
class _Sample:
    """The first rows of sources: those of CSV as text, those of JSON with types where JSON has them, and others.

    `folders` are the columns that folders give, which have their types.
    """

    csv: pa.Table | None
    json: pa.Table | None
    others: tuple[pa.Table, ...]
    folders: tuple[str, ...]
    complete: bool
    notes: tuple[str, ...]


def _with_legal_names(sample: _Sample) -> tuple[_Sample, Mapping[str, str]]:
    """Returns the sample with names that columns can have, and the names in the files of those that have another
    one."""
    tables = [table for table in (sample.csv, sample.json, *sample.others) if table is not None]
    legal = legal_columns(tables)
    originals = {new: old for old, new in legal.items() if new != old}
    if not originals:
        return sample, originals
    csv, json = (None if table is None else with_names(table, legal) for table in (sample.csv, sample.json))
    others = tuple(with_names(table, legal) for table in sample.others)
    folders = tuple(legal[name] for name in sample.folders)
    return replace(sample, csv=csv, json=json, others=others, folders=folders), originals


def _sample(sources: Sequence[Source], options: ReadOptions, limit: int) -> _Sample:
    found: dict[Format, list[pa.Table]] = {}
    left, complete = limit, True
    notes: list[str] = []
    types = _folder_types(sources)
    for source in sources:
        rows = _with_folders(_rows(source, options, left + 1, notes), source, types)
        complete = complete and rows.num_rows <= left
        rows = rows.slice(0, left)
        left -= rows.num_rows
        found.setdefault(source.format, []).append(rows)
    csv, json = found.pop(Format.CSV, []), found.pop(Format.JSON, [])
    others = tuple(rows for tables in found.values() for rows in tables)
    text, documents = _joined(csv) if csv else None, joined_json(json) if json else None
    notes += document_note(documents) if documents else []
    return _Sample(text, documents, others, tuple(types), complete, tuple(notes))


def _parted(rows: pa.Table, folders: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Returns the columns that are not of folders, and those that are."""
    there = [name for name in folders if name in rows.schema.names]
    return rows.drop_columns(there), rows.select(there)


def _with_columns(rows: pa.Table, more: pa.Table) -> pa.Table:
    for name in more.schema.names:
        rows = rows.append_column(name, more.column(name))
    return rows


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as failure:
        raise InvalidInput(
            f"the files have columns of different types: {str(failure).splitlines()[0]}",
            remedy="infer the spec from one of them",
        ) from None


def _null_note(text: str, columns: Sequence[str]) -> str:
    more = ", …" if len(columns) > 3 else ""
    return f"{text!r} is null: without it, the values of {listed(columns[:3])}{more} are numbers, dates or booleans"


def _rows(source: Source, options: ReadOptions, limit: int, notes: list[str]) -> pa.Table:
    match source.format:
        case Format.CSV:
            return _csv(source, options, limit, notes)
        case Format.JSON:
            return json_rows(source, limit)
        case Format.PARQUET | Format.ARROW | Format.LANCE:
            return _columnar(source, limit)
        case _:
            assert_never(source.format)


def _folder_types(sources: Sequence[Source]) -> dict[str, pa.DataType]:
    """Returns the types of the columns that folders give: int64, date32 or string, by the values in all of their
    names."""
    values: dict[str, set[str]] = {}
    for source in sources:
        for name, text in source.folders:
            values.setdefault(name, set()).update([] if text is None else [text])
    return {
        name: (type_of_texts(pa.array(sorted(texts), pa.string()), _FOLDER_TYPES) if texts else None) or pa.string()
        for name, texts in values.items()
    }


def _with_folders(rows: pa.Table, source: Source, types: Mapping[str, pa.DataType]) -> pa.Table:
    for name, text in source.folders:
        if name not in rows.schema.names:
            value = pa.chunked_array([parsed(pa.array([text], pa.string()), types[name])[0]])
            rows = rows.append_column(name, value.take(pa.array([0] * rows.num_rows, pa.int64())))
    return rows


def _csv(source: Source, options: ReadOptions, limit: int, notes: list[str]) -> pa.Table:
    """Returns the first rows, as text. Rows of another width than the header are left out, with a note."""
    names = source.dialect.names
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    unreadable = BadRows()

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal unreadable
        for split in splits_of([source]):
            for each in read_csv(split, names, names, options):
                unreadable = unreadable.joined(each.unreadable)
                yield each.rows

    rows = pa.Table.from_batches(_first(batches(), limit), schema)
    if unreadable.rows:
        first = unreadable.problems[0]
        if not rows.num_rows:
            raise InvalidInput(
                f"all rows differ from the header line in their number of values: {first}",
                where=source.name,
                remedy="name every column in the first line (R leaves out the name of row names); check --delimiter",
            )
        notes.append(f"{unreadable.rows:,} rows of {source.name} were left out, and cannot be loaded: {first}, …")
    return rows


def _require_distinct(names: Sequence[str], source: Source, remedy: str) -> None:
    """Raises InvalidInput for data that has several columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidInput(f"{count} columns are called {name!r}", where=source.name, remedy=remedy)


def _columnar(source: Source, limit: int) -> pa.Table:
    schema = schema_of(source)
    _require_distinct(schema.names, source, "rename it in the data")
    batches = (
        batch for split in splits_of([source]) for batch in read_units(source, split.start, split.stop, schema.names)
    )
    read = _first(batches, limit)
    plain = pa.schema([field.with_type(_plain(field.type)) for field in schema])
    return pa.Table.from_batches(read, read[0].schema if read else schema).cast(plain)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Types that only say how values are held in memory, as the types that they hold."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _first(batches: Iterator[pa.RecordBatch], limit: int) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    for batch in batches:
        found.append(batch.slice(0, limit))
        limit -= found[-1].num_rows
        if limit <= 0:
            break
    return found


def _column(rows: pa.Table, name: str, complete: bool) -> Column:
    field = rows.schema.field(name)
    if pa.types.is_null(field.type):
        field = field.with_type(pa.string())
    column = column_of(field)
    has_nulls = rows.column(name).null_count > 0
    known = rows.num_rows > 0 and complete
    column = replace(column, nullable=has_nulls or (field.nullable and not known))
    for finding in type_findings(column):
        raise InvalidInput(f"column `{name}`: {finding.what}", remedy=finding.remedy)
    return column


def legal_columns(tables: Sequence[pa.Table]) -> dict[str, str]:
    """Returns a name that a column can have for each name of a column in the tables, itself where it can.

    Raises InvalidInput for another name that no spec can have as `source:`.
    """
    legal = legal_names(list(dict.fromkeys(name for table in tables for name in table.schema.names)))
    for old, new in legal.items():
        if new != old and not is_source(old):
            raise InvalidInput(f"the data has a column {old!r}, which no spec can name", remedy="rename it in the data")
    return legal


def with_names(table: pa.Table, legal: Mapping[str, str]) -> pa.Table:
    """Returns the table with the names of `legal`."""
    return table.rename_columns([legal[name] for name in table.schema.names])


def as_in_files(columns: pa.Schema, originals: Mapping[str, str]) -> pa.Schema:
    """Returns the columns with the names that the files have, which are in `originals` where they are other ones."""
    return pa.schema([field.with_name(originals.get(field.name, field.name)) for field in columns])
