"""The text of a refresh's result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.platform.text.formatting import count

if TYPE_CHECKING:
    from deployer.views.refresh.results import RefreshJobResult


def refreshed(done: RefreshJobResult) -> str:
    """Returns what a refresh did, as one line."""
    if done.already_done:
        return f"{done.table}: the job was done before"
    if done.status == "SKIPPED":
        return f"{done.table}: nothing to do: {done.why}"
    how = f"computed again, since {done.reason}" if done.mode == "full" else "refreshed from what changed"
    rows = ", ".join(
        f"{number:,} {what}"
        for number, what in (
            (done.rows_inserted, "inserted"),
            (done.rows_updated, "updated"),
            (done.rows_deleted, "deleted"),
        )
        if number
    )
    read = count(done.rows_read, "row")
    return f"{done.table}: {how}: {read} read; {rows or 'no row changed'} ({done.seconds:.1f} s)"


def failures(done: RefreshJobResult) -> str:
    """Returns how many rows a function failed for, and the command that lists them; empty without failures."""
    if not done.errors:
        return ""
    return f"{count(done.errors, 'row')} failed: `deployer column errors {done.table} --job-id {done.job_id}`"
