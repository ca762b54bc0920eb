"""The text of a backfill's result, the same wherever the backfill ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.columns.backfill.results import BackfillJobResult


def result_from(document: Mapping[str, Any]) -> BackfillJobResult:
    """Returns the result from the document that a job's program reports."""
    from deployer.columns.backfill.results import BackfillJobResult
    from deployer.platform.files.dataclass_json import from_asdict

    return from_asdict(BackfillJobResult, document, skip_unknown=True)


def print_backfill(name: str, done: BackfillJobResult) -> None:
    """Prints what a backfill computed in the table of that name."""
    from deployer.cli.console.output import note, stdout

    stdout().print(_summary(name, done))
    if done.errors:
        note(f"`deployer column errors {name} --job-id {done.job_id}` lists the rows that failed")


def _summary(name: str, done: BackfillJobResult) -> str:
    from deployer.platform.text.formatting import count, size

    if done.already_done:
        return f"{name}: job {done.job_id} was done before; nothing was written"
    if not done.stats.fragments:
        return f"{name}: all rows of {done.column} are computed; nothing was written (job {done.job_id})"
    stats = done.stats
    reused = f", {stats.reused:,} of them from checkpoints" if stats.reused else ""
    failed = f"; {count(done.errors, 'row')} failed" if done.errors else ""
    written = f"{count(done.rows, 'row')} in {count(stats.fragments, 'fragment')}{reused}, {size(stats.bytes)}"
    columns = ", ".join((done.column, *done.siblings))
    return f"{name}: computed {columns} of {written}{failed} (job {done.job_id})"
