"""The text and the JSON of a restore: what it would undo, and what it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployer.cli.console.output import note, stdout
from deployer.platform.text.formatting import count, size
from deployer.services.restore.catalog import CatalogUndoing
from deployer.services.restore.planning import RestorePlan, Undoing
from deployer.services.restore.restoring import Restored
from deployer.state.model.times import as_document

_JOBS_SHOWN = 10


def as_json_document(tables: Sequence[Undoing | Restored], catalog: CatalogUndoing | None) -> dict[str, Any]:
    """Returns the tables, and the catalog where it is restored too, in the form of `--json`."""
    shown = {} if catalog is None else {"catalog": as_document(catalog)}
    return {"tables": [as_document(each) for each in tables], **shown}


def print_restore_plan(plan: RestorePlan, *, savepoint: bool) -> None:
    """Prints what the restore would undo. `savepoint` says whether it first makes a savepoint that can undo it."""
    for each in plan.tables:
        _print_table(each)
    if plan.catalog is not None:
        _print_catalog(plan.catalog)
    if plan.nothing:
        return
    if len(plan.changed_tables) > 1:
        note(f"all {count(len(plan.changed_tables), 'table')} are restored, or none")
    if savepoint:
        note("a savepoint `before-restore-…` is made first: `deployer restore` of it undoes this, for 30 days")
    else:
        note("no savepoint is made first: `deployer restore TABLE --at VERSION` undoes this until a clean-up")


def question_of(plan: RestorePlan) -> str:
    """Returns the question, `Restore 2 tables (air.planes, air.flights), all or none, to savepoint weekly?`."""
    tables = [each.table for each in plan.changed_tables]
    names = [*tables, *(["the catalog"] if plan.changes_catalog else [])]
    if len(tables) > 1:
        what = f"{count(len(tables), 'table')} ({', '.join(names)}), all or none,"
    else:
        what = names[0] if len(names) == 1 else f"{', '.join(names)}, all or none,"
    name = plan.catalog.name if plan.catalog is not None else ""
    return f"Restore {what} to {plan.changed_tables[0].point.label if tables else f'savepoint {name}'}?"


def print_restored(plan: RestorePlan, done: Sequence[Restored], undo: str) -> None:
    """Prints what was restored. `undo` is the savepoint that was made first; empty without one."""
    if plan.catalog is not None and plan.changes_catalog:
        stdout().print(f"the catalog: restored to savepoint {plan.catalog.name}")
    for each in done:
        if each.status == "SUCCEEDED":
            stdout().print(f"{each.table}: restored to {each.undone.point.label}, as version {each.lance_version}")
    if undo:
        note(f"`deployer restore {undo}` undoes it, for 30 days")
    if any(each.undone.changes for each in done):
        note("differences from the specs are drift now: `deployer preview` shows what the next `up` would change back")


def _print_catalog(undone: CatalogUndoing) -> None:
    if undone.nothing:
        stdout().print(f"the catalog: the same as at savepoint {undone.name}")
        return
    stdout().print("the catalog: recordings and the data of external tables stay as they are")
    for names, what in ((undone.removed, "is removed"), (undone.back, "comes back"), (undone.changed, "changes back")):
        for each in names:
            stdout().print(f"  {each} {what}")


def _print_table(undone: Undoing) -> None:
    out, point = stdout(), undone.point
    if undone.nothing:
        out.print(f"{undone.table}: the same as at {point.label}")
        return
    (rows, rows_then), (files, files_then), (held, held_then) = undone.rows, undone.files, undone.bytes
    since = "its rewrite" if undone.versions is None else count(undone.versions, "version")
    out.print(
        f"{undone.table}: undoes {since}: {rows:,} → {count(rows_then, 'row')}, {files:,} → "
        f"{count(files_then, 'file')}, {size(held)} → {size(held_then)}"
    )
    version = f"{point.dataset}:{point.lance_version}" if undone.versions is None else point.lance_version
    out.print(f"  goes from version {undone.base.lance_version} to the content of version {version}")
    out.print(
        f"  removes files with {count(undone.removed, 'row')}, brings back files with {count(undone.back, 'row')}"
    )
    leaves, leaves_then = undone.leaves
    if leaves != leaves_then:
        out.print(f"  {leaves:,} → {count(leaves_then, 'leaf', 'leaves')}")
    for change in undone.changes:
        out.print(f"  {change}")
    loads = sorted((job for job in undone.jobs if job.added), key=lambda job: -job.at)
    for job in loads[:_JOBS_SHOWN]:
        out.print(f"  forgets {job.kind} {job.job_id} of {count(job.rows, 'row')}", style="dim")
    if len(loads) > _JOBS_SHOWN:
        note(f"and {len(loads) - _JOBS_SHOWN:,} older ones")
