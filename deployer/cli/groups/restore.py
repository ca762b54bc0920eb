"""`deployer restore`: restores tables to a savepoint, all or none, or one table to a version."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


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
    from deployer.cli.console.output import print_json
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.restore import plan_restore
    from deployer.cli.inputs.table import state_to_change
    from deployer.cli.summaries.restore import as_json_document, print_restore_plan, print_restored, question_of
    from deployer.errors import InvalidInput
    from deployer.services.restore import restore_tables

    if at is not None and table:
        raise InvalidInput("--at and --table do not go together", remedy="write `deployer restore TABLE --at VERSION`")
    workspace = open_workspace(project, stack, specs)
    target = {"savepoint": name} if at is None else {"at": at}
    with state_to_change(workspace) as (root, store):
        plan = plan_restore(store, root, workspace.owner, name, at, table)
        if not as_json:
            print_restore_plan(plan, savepoint=savepoint)
        if preview or plan.nothing:
            if as_json:
                print_json({**target, **as_json_document(plan.tables, plan.catalog), "restored": False})
            return 0
        if not yes:
            confirm(question_of(plan))
        with Meter(as_json=as_json) as meter:
            undo, done = restore_tables(
                store,
                root,
                plan.tables,
                force=force,
                save_first=savepoint,
                on_progress=meter.begin(name),
                catalog=plan.catalog,
            )
    if as_json:
        print_json({**target, **as_json_document(done, plan.catalog), "restored": True, "undo": undo})
    else:
        print_restored(plan, done, undo)
    return 0
