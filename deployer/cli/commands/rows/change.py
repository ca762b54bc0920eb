"""`deployer rows delete`, `update` and `merge`: change rows, each call as one version."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.commands.data.ingest import FileFormat
from deployer.cli.commands.rows.engine import tasks_by
from deployer.cli.commands.rows.options import DryRun, Engine, JobId, NoIndexes, Yes
from deployer.cli.inputs.text_options import (
    DateFormats,
    Delimiter,
    Encoding,
    NoHeader,
    NullValues,
    TimeZone,
    read_options,
)
from deployer.cli.options import (
    DEFAULT_STACK,
    AllowDestroy,
    AsJson,
    EngineName,
    ProjectDir,
    SpecsPath,
    StackName,
    TableName,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from deployer.platform.system.progress import OnProgress
    from deployer.tables.open_table import OpenTable
    from deployer.tables.rows.change import RowChange

    #: Makes the change, or only counts its rows. It receives the table, whether it is a dry run, and the progress
    #: callback.
    Change = Callable[[OpenTable, bool, OnProgress], RowChange]


class WhenMatched(StrEnum):
    """The action for rows whose key the table has."""

    UPDATE = "update"
    DELETE = "delete"
    IGNORE = "ignore"


class WhenNotMatched(StrEnum):
    """The action for rows whose key the table does not have."""

    INSERT = "insert"
    IGNORE = "ignore"


class WhenNotMatchedBySource(StrEnum):
    """The action for rows of the table whose key no row has."""

    KEEP = "keep"
    DELETE = "delete"


def delete(
    table: TableName,
    where: Annotated[
        str | None,
        typer.Option(
            help="Delete the rows for which this SQL condition is true, such as \"carrier = 'AA'\".", show_default=False
        ),
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="Delete all rows.")] = False,
    allow_destroy: AllowDestroy = None,
    engine: Engine = EngineName.AUTO,
    dry_run: DryRun = False,
    job_id: JobId = None,
    yes: Yes = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Delete rows, as one version. Earlier versions and savepoints keep them.

    Asks first, and shows how many rows of which leaves change. A table that is protected from deletion keeps at least
    one row, unless --allow-destroy names it.
    """
    from deployer.errors import InvalidInput
    from deployer.tables.rows.delete import delete_rows

    if (where is None) != all_rows:
        what = "--where and --all are both given" if all_rows else "no rows to delete are named"
        raise InvalidInput(what, remedy="give --where CONDITION, or --all")

    own_id = _id_of_change(job_id)

    def change(opened: OpenTable, is_dry: bool, on_progress: OnProgress) -> RowChange:
        allowed = opened.address in (allow_destroy or ())
        return delete_rows(
            opened,
            where,
            job_id=own_id,
            dry_run=is_dry,
            allow_destroy=allowed,
            on_progress=on_progress,
            run_tasks=tasks_by(engine, project, stack, specs, on_progress),
        )

    return _run(table, change, own_id, project, stack, specs, dry_run=dry_run, yes=yes, as_json=as_json)


def update(
    table: TableName,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="COLUMN=EXPR",
            help="Set the column to the value of this SQL expression over the old row, such as "
            '"delay=delay + 1"; repeatable.',
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Only rows for which this SQL condition is true; all rows by default.", show_default=False),
    ] = None,
    engine: Engine = EngineName.AUTO,
    no_indexes: NoIndexes = False,
    dry_run: DryRun = False,
    job_id: JobId = None,
    yes: Yes = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Update columns of rows, as one version. Rows whose row keys change move to the leaf of their new key.

    Asks first, and shows how many rows of which leaves change.
    """
    from deployer.tables.rows.update import update_rows

    values = _assignments(set_ or [])

    own_id = _id_of_change(job_id)

    def change(opened: OpenTable, is_dry: bool, on_progress: OnProgress) -> RowChange:
        return update_rows(
            opened,
            where,
            values_sql=values,
            job_id=own_id,
            dry_run=is_dry,
            indexes=not no_indexes,
            on_progress=on_progress,
            run_tasks=tasks_by(engine, project, stack, specs, on_progress),
        )

    return _run(table, change, own_id, project, stack, specs, dry_run=dry_run, yes=yes, as_json=as_json)


def merge(
    table: TableName,
    files: Annotated[
        list[str], typer.Argument(help="Files, folders or globs, here or at s3:// addresses.", metavar="FILE…")
    ],
    on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Match rows by this column; repeatable. The row keys by default.",
            show_default=False,
        ),
    ] = None,
    when_matched: Annotated[
        WhenMatched, typer.Option(help="Action for rows whose key the table has.")
    ] = WhenMatched.UPDATE,
    when_not_matched: Annotated[
        WhenNotMatched, typer.Option(help="Action for rows whose key the table does not have.")
    ] = WhenNotMatched.INSERT,
    when_not_matched_by_source: Annotated[
        WhenNotMatchedBySource, typer.Option(help="Action for the table's rows whose key no row of the files has.")
    ] = WhenNotMatchedBySource.KEEP,
    where: Annotated[
        str | None,
        typer.Option(
            help="With --when-not-matched-by-source delete: only rows for which this SQL condition is true.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", "-f", help="By default, the format that the suffix shows.", show_default=False),
    ] = None,
    null_value: NullValues = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    no_header: NoHeader = False,
    date_format: DateFormats = None,
    timezone: TimeZone = None,
    allow_destroy: AllowDestroy = None,
    engine: Engine = EngineName.AUTO,
    no_indexes: NoIndexes = False,
    dry_run: DryRun = False,
    job_id: JobId = None,
    yes: Yes = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Merge the rows of files into a table by their keys, as one version. More than a million rows go through files
    in the folder of temporary files (TMPDIR), which then has to hold them twice.

    Columns that the files do not have keep their values in rows that are updated. Asks first, and shows how many rows
    of which leaves change.
    """
    from contextlib import ExitStack

    from deployer.tables.ingest.files.model import Format
    from deployer.tables.rows.merging.files import read_files
    from deployer.tables.rows.merging.merge import merge_rows
    from deployer.tables.rows.merging.rules import MergeRules
    from deployer.tables.rows.merging.source_parts import MergeInput, merge_input

    options = read_options(null_value, delimiter, encoding, no_header, date_format, timezone)
    rules = MergeRules(when_matched.value, when_not_matched.value, when_not_matched_by_source.value, where)

    own_id = _id_of_change(job_id)

    with ExitStack() as reading:
        rows: list[MergeInput] = []  #: read once, so that the rows that are merged are those that were counted

        def change(opened: OpenTable, is_dry: bool, on_progress: OnProgress) -> RowChange:
            if not rows:
                given = read_files(opened, files, Format(format.value) if format else None, options)
                rows.append(reading.enter_context(merge_input(given, on or None, opened)))
            return merge_rows(
                opened,
                rows[0],
                on or None,
                rules,
                job_id=own_id,
                dry_run=is_dry,
                allow_destroy=opened.address in (allow_destroy or ()),
                indexes=not no_indexes,
                on_progress=on_progress,
                run_tasks=tasks_by(engine, project, stack, specs, on_progress),
            )

        return _run(table, change, own_id, project, stack, specs, dry_run=dry_run, yes=yes, as_json=as_json)


def _assignments(given: list[str]) -> dict[str, str]:
    """Returns the expressions of `COLUMN=EXPR` by column. Raises InvalidInput for another form, or for a column that
    occurs twice."""
    from deployer.errors import InvalidInput

    values: dict[str, str] = {}
    for text in given:
        name, equals, expression = text.partition("=")
        name, expression = name.strip(), expression.strip()
        if not equals or not name or not expression:
            raise InvalidInput(f"--set {text!r} is not COLUMN=EXPR", remedy='write for example --set "delay=delay + 1"')
        if name in values:
            raise InvalidInput(f"--set gives column {name!r} two values", remedy="give it one")
        values[name] = expression
    return values


def _id_of_change(job_id: str | None) -> str:
    """Returns the id of a change: the given one, or a random one. The message of an interrupted change names it."""
    from deployer.platform.system.clock import Clock

    return job_id if job_id is not None else Clock().new_id()


def _run(
    table: str,
    change: Change,
    job_id: str,
    project: Path | None,
    stack: str,
    specs: Path | None,
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Counts the rows and asks, unless `--yes` is given; then makes the change."""
    from deployer.cli.commands.deploy.up import confirm
    from deployer.cli.console.output import print_json
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.table import changed_by_state
    from deployer.cli.summaries.row_change import document_of, in_words, print_change
    from deployer.errors import Interrupted
    from deployer.platform.system.progress import no_progress

    with changed_by_state(project, stack, specs, table) as opened:
        name = opened.entry.full_name
        if dry_run or not yes:
            foreseen = change(opened, True, no_progress)
            if dry_run and as_json:
                print_json(document_of(opened, foreseen))
            elif not as_json and (dry_run or foreseen.rows):
                print_change(opened, foreseen)
            if dry_run:
                return 0
            if foreseen.rows:
                confirm(f"{in_words(foreseen.counts).capitalize()} of {name}?")
        with Meter(as_json=as_json) as meter:
            try:
                done = change(opened, False, meter.begin(name))
            except KeyboardInterrupt:
                raise Interrupted(
                    "interrupted; all rows are changed, or none",
                    where=opened.address,
                    remedy=f"run it again with --job-id {job_id}: what was changed is not changed again",
                ) from None
        if as_json:
            print_json(document_of(opened, done))
        else:
            print_change(opened, done)
    return 0
