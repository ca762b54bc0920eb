"""A request to load files into a table, and the result of the load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deployer.datasets.files.writer import WrittenFragment
from deployer.errors import InvalidInput
from deployer.platform.system.progress import OnProgress
from deployer.state.model.entities import Job, RowCounts
from deployer.tables.ingest.engine_choice import Engine
from deployer.tables.ingest.files.find import refuse_credentials
from deployer.tables.ingest.files.loaded_files import LoadedBefore
from deployer.tables.ingest.files.model import Format, ReadOptions
from deployer.tables.ingest.loading import LoadedFragments, LoadPlan
from deployer.tables.ingest.rows.bad_rows import BadRowLimit
from deployer.tables.ingest.rows.field_map import check_given_once
from deployer.tables.ingest.rows.selects import Select
from deployer.tables.layout.indexes.build import CaughtUp
from deployer.tables.layout.partitions.split import SplitResult
from deployer.tables.open_table import OpenTable

LoadWithSpark = Callable[[LoadPlan, OnProgress], LoadedFragments]
Mode = Literal["append", "upsert", "overwrite"]
#: Callback that commits written rows in a mode other than `append`. It returns the job, and whether an earlier run
#: committed it. Its arguments are the table, the mode, the columns that rows are matched by, the job's id, the rows,
#: their source files as text, and the progress callback.
CommitLoad = Callable[
    [OpenTable, str, Sequence[str], str, Sequence[WrittenFragment], str, OnProgress], tuple[Job, bool]
]


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """A request to load files. If `job_id` is omitted, a random id is used; the load is then not idempotent."""

    paths: tuple[str, ...]
    format: Format | None = None
    options: ReadOptions = ReadOptions()
    ignore_extra: bool = False
    bad_rows: str | Path | None = None  #: where bad rows are set aside; a file, or an s3:// address
    job_id: str | None = None
    engine: Engine = "auto"
    indexes: bool = True  #: bring the table's indexes up to date once the rows are committed
    services: bool = True  #: for the calling job: run the table's due services afterwards
    max_bad_rows: BadRowLimit | None = None  #: more bad rows refuse the load
    missing_as_null: bool = False  #: columns without a default that no file has become null; else they are an error
    on_duplicate: Literal["reject", "skip"] = "reject"  #: the handling of rows with existing unique keys
    renames: tuple[tuple[str, str], ...] = ()  #: pairs of a field of the files and the column that it fills
    selects: tuple[Select, ...] = ()  #: columns that are computed by expressions over the files' fields
    mode: Mode = "append"  #: the rows are added (append), replace rows with the same keys (upsert) or replace all rows
    on: tuple[str, ...] = ()  #: the columns that an upsert matches rows by; the row keys by default

    def __post_init__(self) -> None:
        """Raises InvalidInput for addresses with credentials, and for options that exclude each other."""
        if self.max_bad_rows is not None and self.bad_rows is None:
            raise InvalidInput("--max-bad-rows is given without --bad-rows", remedy="give --bad-rows FILE too")
        if self.on and self.mode != "upsert":
            raise InvalidInput("--on is given without --mode upsert", remedy="give --mode upsert too")
        if self.mode == "upsert" and self.on_duplicate == "skip":
            raise InvalidInput(
                "--on-duplicate skip is given with --mode upsert, which replaces the rows whose keys are there",
                remedy="leave one of them out",
            )
        check_given_once(self.renames, self.selects)
        refuse_credentials([*self.paths, *([self.bad_rows] if isinstance(self.bad_rows, str) else [])])


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The result of a load; `bad_rows` were set aside. `reason` explains the choice of `engine`."""

    table: str
    job_id: str
    rows: int
    files: int
    bytes: int
    bad_rows: int
    lance_version: int
    engine: str
    reason: str
    seconds: float
    already_done: bool = False
    indexes: CaughtUp = CaughtUp()
    splits: SplitResult | None = None  #: splits of leaves above the table's declared limit; None without a limit
    loaded_before: tuple[LoadedBefore, ...] = ()  #: files of this load that an earlier one had loaded
    unique: bool = False  #: the table's row keys are unique: no row is in it twice
    duplicates_skipped: int = 0  #: rows that were left out because their unique keys exist already
    mode: Mode = "append"
    counts: RowCounts | None = None  #: the changed rows, for modes other than `append`; `rows` counts the written rows
