"""The text of a load's result, the same wherever the load ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.tables.ingest.files.loaded_files import LoadedBefore
    from deployer.tables.ingest.request import IngestResult
    from deployer.tables.layout.indexes.build import CaughtUp
    from deployer.tables.layout.partitions.split import SplitResult


LISTED = 5  #: the most files that are listed of those that were loaded before


def result_from(document: Mapping[str, Any]) -> IngestResult:
    """Returns the result from the document that a job's program reports."""
    from deployer.platform.files.dataclass_json import from_asdict
    from deployer.tables.ingest.request import IngestResult

    return from_asdict(IngestResult, document, skip_unknown=True)


def print_result(result: IngestResult, bad_rows: object) -> None:
    """Prints the result of a load; `bad_rows` is the place of the bad rows."""
    from rich.filesize import decimal

    from deployer.cli.console.output import stdout
    from deployer.platform.text.formatting import count

    if result.already_done:
        stdout().print(f"{result.table}: job {result.job_id} was done before, as version {result.lance_version}")
        _print_splits(result.splits)
        print_indexes(result.indexes, "loaded")
        return
    rate = result.rows / result.seconds if result.seconds else 0
    stdout().print(
        f"{result.table}: {count(result.rows, 'row')} {_verb(result)} in {count(result.files, 'file')}, "
        f"{decimal(result.bytes)}, version {result.lance_version} ({result.seconds:.1f} s, {rate:,.0f} rows/s)"
    )
    stdout().print(f"job {result.job_id}", style="dim")
    if result.bad_rows:
        bad = count(result.bad_rows, "bad row was", "bad rows were")
        stdout().print(f"{bad} set aside in {bad_rows}", style="yellow")
    if result.duplicates_skipped:
        skipped = count(result.duplicates_skipped, "row was", "rows were")
        stdout().print(f"{skipped} skipped, whose keys exist already", style="yellow")
    _print_loaded_before(result.loaded_before, unique=result.unique)
    _print_splits(result.splits)
    print_indexes(result.indexes, "loaded")


def _verb(result: IngestResult) -> str:
    """Returns what the load did with its rows: `added`, or the number of rows that it replaced."""
    if result.counts is None:
        return "added"
    counts = result.counts
    if result.mode == "overwrite":
        return f"replaced {counts.deleted:,}"
    more = f", {counts.deleted:,} more deleted that had one of their keys" if counts.deleted else ""
    return f"merged ({counts.inserted:,} inserted, {counts.updated:,} updated{more})"


def _print_loaded_before(files: Sequence[LoadedBefore], *, unique: bool) -> None:
    from deployer.cli.console.output import note

    for file in files[:LISTED]:
        note(str(file) if unique else f"{file}; its rows are in the table twice now, unless something removed them")
    if len(files) > LISTED:
        note(f"{len(files) - LISTED:,} more files were loaded before")


def _print_splits(splits: SplitResult | None) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.formatting import count

    if splits is None:
        return
    if splits.split:
        were = count(len(splits.split), "leaf", "leaves")
        stdout().print(f"{were} with more than {splits.max_rows:,} rows split: there are {splits.leaves:,} now")
    if splits.failure:
        note(f"the rows are loaded, and leaves are not split: {splits.failure}; the next load tries again")


def print_indexes(indexes: CaughtUp, verb: str) -> None:
    """Prints the result for the table's indexes. `verb` says what happened to the rows, such as "loaded"."""
    from deployer.cli.console.output import note, stdout

    if indexes.built:
        stdout().print(f"indexes built: {', '.join(indexes.built)}")
    if indexes.updated:
        stdout().print(f"indexes brought up to date: {', '.join(indexes.updated)}")
    if indexes.failure:
        note(f"the rows are {verb}, and indexes are behind: {indexes.failure}; the next load tries again")
