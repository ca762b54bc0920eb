"""`deployer restore`: tables as they were at a savepoint, all or none, or one table as it was at a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.app.workspace import Workspace
    from deployer.platform.system.progress import Progress
    from deployer.services.restore.catalog import CatalogUndoing
    from deployer.services.restore.planning import Undoing
    from deployer.state.store import StateStore

_JOBS_SHOWN = 10


def restore(
    name: Annotated[
        str,
        typer.Argument(
            metavar="SAVEPOINT|TABLE",
            help="The name of a savepoint; with --at the table, as `database.name` or its name alone.",
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION|TIME",
            help="Restore the table to a version that `history` lists, such as 3 or 1:3, or to a time (ISO 8601, UTC).",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            metavar="TABLE",
            help="Only this table, as `database.name`; repeatable. All that have the savepoint by default.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what the restore would undo, and change nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also undo what is committed between the preview and the restore.")
    ] = False,
    savepoint: Annotated[
        bool,
        typer.Option(
            help="First make a savepoint `before-restore-…` of the tables, by which the restore can be undone."
        ),
    ] = True,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Restore tables to a savepoint or, with --at, a table to a version or a time: rows, columns, partitions, keys,
    settings and services. A savepoint of the catalog restores its entries too, unless `--table` names tables.

    Shows what that undoes, and asks. All tables are restored, or none: also when the process is killed, or when others
    commit meanwhile. It is a new version of each table, so that it can be undone. It works while the specs have
    problems.
    """
    from deployer.app.workspace import open_workspace
    from deployer.cli.commands.deploy.up import confirm
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.table import state_to_change
    from deployer.errors import InvalidInput
    from deployer.platform.text.formatting import count
    from deployer.services.restore import restore_tables
    from deployer.services.restore.catalog import preview_catalog
    from deployer.state.model.times import as_document

    if at is not None and table:
        raise InvalidInput("--at and --table do not go together", remedy="write `deployer restore TABLE --at VERSION`")
    workspace = open_workspace(project, stack, specs)
    asked = {"savepoint": name} if at is None else {"at": at}
    with state_to_change(workspace) as (root, store):
        catalog = preview_catalog(store, name) if at is None and not table else None
        planned = (
            _planned(store, root, workspace, name, table, catalog=catalog is not None)
            if at is None
            else [_planned_at(store, root, workspace, name, at)]
        )
        if not as_json:
            for each in planned:
                _print(each)
            if catalog is not None:
                _print_catalog(catalog)
        due = [each for each in planned if not each.nothing]
        is_catalog_due = catalog is not None and not catalog.nothing
        if (due or is_catalog_due) and not as_json:
            _print_whole(due, savepoint=savepoint)
        shown = {} if catalog is None else {"catalog": as_document(catalog)}
        if preview or not (due or is_catalog_due):
            if as_json:
                print_json({**asked, "tables": [as_document(each) for each in planned], **shown, "restored": False})
            return 0
        if not yes:
            names = [each.table for each in due] + (["the catalog"] if is_catalog_due else [])
            what = names[0] if len(names) == 1 else f"{', '.join(names)}, all or none,"
            if len(due) > 1:
                what = f"{count(len(due), 'table')} ({', '.join(names)}), all or none,"
            confirm(f"Restore {what} to {due[0].point.label if due else f'savepoint {name}'}?")
        with Meter(as_json=as_json) as meter:
            meter.begin(name, name)

            def report_progress(now: Progress) -> None:
                meter.tell(name, now.doing, now.done, now.total, now.unit)

            saved, done = restore_tables(
                store,
                root,
                planned,
                force=force,
                save_first=savepoint,
                on_progress=report_progress,
                catalog=catalog,
            )
    if as_json:
        print_json({**asked, "tables": [as_document(each) for each in done], **shown, "restored": True, "undo": saved})
        return 0
    if is_catalog_due:
        stdout().print(f"the catalog: restored to savepoint {name}")
    for one in done:
        if one.status == "SUCCEEDED":
            stdout().print(f"{one.table}: restored to {one.undone.point.label}, as version {one.lance_version}")
    if saved:
        note(f"`deployer restore {saved}` undoes it, for 30 days")
    if any(one.undone.changes for one in done):
        note("differences from the specs are drift now: `deployer preview` shows what the next `up` would change back")
    return 0


def _planned(
    store: StateStore, root: str, workspace: Workspace, name: str, tables: list[str] | None, *, catalog: bool
) -> list[Undoing]:
    """Returns what restoring the savepoint undoes of the tables that have it. Raises NotFound where a named table has
    none."""
    from deployer.cli.groups.savepoint import chosen_entries
    from deployer.errors import NotFound
    from deployer.services.restore.planning import preview_restore
    from deployer.tables.admin.ownership import require_owner

    entries = chosen_entries(store, tables)
    try:
        planned = preview_restore(store, root, entries, name, catalog=catalog)
    except NotFound as failure:
        if name not in {text for each in entries for text in (each.name, each.full_name)}:
            raise
        raise NotFound(failure.what, remedy=f"a table needs --at: `deployer restore {name} --at VERSION`") from None
    by_id = {each.table_id: each for each in planned}
    for entry in entries:
        if tables and entry.table_id not in by_id:
            raise NotFound(f"there is no savepoint {name} of it", where=f"table/{entry.full_name}")
        if entry.table_id in by_id:
            require_owner(entry, store.table(entry.table_id), workspace.owner)
    return planned


def _planned_at(store: StateStore, root: str, workspace: Workspace, table: str, at: str) -> Undoing:
    """Returns what restoring the table to a version or a time undoes."""
    from deployer.cli.groups.savepoint import chosen_entries
    from deployer.services.restore.planning import preview_restore_at
    from deployer.tables.admin.ownership import require_owner

    [entry] = chosen_entries(store, [table])
    require_owner(entry, store.table(entry.table_id), workspace.owner)
    return preview_restore_at(store, root, entry, at)


def _print_whole(due: list[Undoing], *, savepoint: bool) -> None:
    """Prints what concerns all tables together, and how the restore can be undone."""
    from deployer.cli.console.output import note
    from deployer.platform.text.formatting import count

    if len(due) > 1:
        note(f"all {count(len(due), 'table')} are restored, or none")
    if savepoint:
        note("a savepoint `before-restore-…` is made first: `deployer restore` of it undoes this, for 30 days")
    else:
        note("no savepoint is made first: `deployer restore TABLE --at VERSION` undoes this until a clean-up")


def _print_catalog(undone: CatalogUndoing) -> None:
    from deployer.cli.console.output import stdout

    if undone.nothing:
        stdout().print(f"the catalog: the same as at savepoint {undone.name}")
        return
    stdout().print("the catalog: recordings and the data of external tables stay as they are")
    for names, what in ((undone.removed, "is removed"), (undone.back, "comes back"), (undone.changed, "changes back")):
        for each in names:
            stdout().print(f"  {each} {what}")


def _print(undone: Undoing) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.formatting import count, size

    out = stdout()
    if undone.nothing:
        out.print(f"{undone.table}: the same as at {undone.point.label}")
        return
    (rows, then), (files, files_then), (held, held_then), (leaves, leaves_then) = (
        undone.rows,
        undone.files,
        undone.bytes,
        undone.leaves,
    )
    since = "its rewrite" if undone.versions is None else count(undone.versions, "version")
    out.print(
        f"{undone.table}: undoes {since}: {rows:,} → {count(then, 'row')}, {files:,} → {count(files_then, 'file')}, "
        f"{size(held)} → {size(held_then)}"
    )
    point = undone.point
    version = f"{point.dataset}:{point.lance_version}" if undone.versions is None else point.lance_version
    out.print(f"  goes from version {undone.base.lance_version} to the content of version {version}")
    out.print(
        f"  removes files with {count(undone.removed, 'row')}, brings back files with {count(undone.back, 'row')}"
    )
    if leaves != leaves_then:
        out.print(f"  {leaves:,} → {count(leaves_then, 'leaf', 'leaves')}")
    for change in undone.changes:
        out.print(f"  {change}")
    loads = [job for job in undone.jobs if job.added]
    for job in sorted(loads, key=lambda each: -each.at)[:_JOBS_SHOWN]:
        out.print(f"  forgets {job.kind} {job.job_id} of {count(job.rows, 'row')}", style="dim")
    if len(loads) > _JOBS_SHOWN:
        note(f"and {len(loads) - _JOBS_SHOWN:,} older ones")
