"""The model of files to load: their formats, the options to read them, and the splits that are read independently."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from deployer.tables.ingest.files.folder_names import FolderValues


class Format(StrEnum):
    """The format of a file. `ARROW` is the IPC format, both its file and its stream form."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
    LANCE = "lance"

    @property
    def is_text(self) -> bool:
        """Returns whether values are written as text, so that their type is the declared one."""
        return self in (Format.CSV, Format.JSON)


SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
    ".lance": Format.LANCE,
}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading text.

    `null_values` are the texts that mean null. `delimiter` separates the values of a CSV line (None: by the file's
    name, or detected; `whitespace`: runs of spaces and tabs). `encoding` is Python's name of the text's encoding; a
    byte order mark takes precedence. `header` says that the first line of a CSV file has the names of its columns.
    `date_formats` are pairs of a column (None: all others) and its format of dates and times for strptime. `timezone`
    is the time zone of times without an offset.
    """

    null_values: tuple[str, ...] = ("",)
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool = True
    date_formats: tuple[tuple[str | None, str], ...] = ()
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """The dialect of one text file; `deployer.tables.ingest.files.dialects` finds it.

    `names` are the distinct names of the fields of a CSV file. `header` says that the first line has the names;
    otherwise they are `column_1` and so on. `detected` says that the delimiter is neither given nor usual for the
    file's name. `runs` says that several delimiters (spaces, tabs) count as one. `repeated` says that the header line
    repeats names; a number is then appended to these. `row_names` says that the header line has no name for the first
    value of each row; the name of that field is empty.
    """

    encoding: str = "utf-8"
    delimiter: str = ","
    header: bool = True
    names: tuple[str, ...] = ()
    detected: bool = False
    runs: bool = False
    repeated: bool = False
    row_names: bool = False

    @property
    def names_header(self) -> bool:
        """Returns whether the names are exactly those of the header line."""
        return self.header and not self.repeated and not self.row_names


@dataclass(frozen=True, slots=True)
class Source:
    """One file or Lance dataset. `name` is its name in messages.

    `compressed` says that it is compressed with the codec that its suffix names. `version` is Lance's version (None:
    the newest). `folders` has the columns from the names of its folders.
    """

    path: str
    format: Format
    name: str
    compressed: bool = False
    version: int | None = None
    folders: FolderValues = ()
    dialect: Dialect = Dialect()

    @property
    def is_one_stream(self) -> bool:
        """Returns whether a text file can be read only from its start, because it is compressed or not UTF-8."""
        return self.compressed or self.dialect.encoding != "utf-8"


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source that is read independently; `number` orders the parts of all sources.

    `start` and `stop` count row groups (Parquet), record batches (Arrow), fragments (Lance) or bytes (CSV, JSON);
    `rows` and `bytes` are estimates.
    """

    number: int
    source: Source
    start: int
    stop: int
    rows: int
    bytes: int
