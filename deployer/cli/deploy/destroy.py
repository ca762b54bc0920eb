"""`deployer destroy`: delete what a stack manages."""

from __future__ import annotations

from deployer.cli.deploy.up import Yes
from deployer.cli.options import (
    DEFAULT_STACK,
    AllowDestroy,
    AsJson,
    DeleteSavepoints,
    LockTimeout,
    ProjectDir,
    SpecsPath,
    StackName,
)


def destroy(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    allow_destroy: AllowDestroy = None,
    delete_savepoints: DeleteSavepoints = False,
    yes: Yes = False,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> int:
    """Delete every table that the stack manages, and the instance. Asks for the instance's name first.

    Tables that hold rows are protected until `--allow-destroy` names them or `deletion_protection: false` was applied;
    the bucket and the state's table of a lake on S3 until `--allow-destroy` names them. Those stay in AWS even then.
    Savepoints of tables are named, and need `--delete-savepoints`.
    A table that cannot be read is deleted too; where its log cannot be read, `--allow-destroy` has to name it.
    """
    from dataclasses import replace

    from deployer.app.planning.addresses import check_addresses
    from deployer.app.planning.foreign_resources import foreign_resources, refuse_protected
    from deployer.app.planning.orphaned_tables import delete_unknown, end_deletions
    from deployer.app.planning.plan import plan_destroy
    from deployer.app.stack.lock_wait import held_in_time
    from deployer.app.workspace import open_workspace
    from deployer.cli.deploy.plugin_offer import offer_aws_provider
    from deployer.cli.deploy.up import refuse, show
    from deployer.cli.summaries.unreadable import note_unreadable
    from deployer.console.output import note, print_json, stdout
    from deployer.console.step_view import StepView
    from deployer.plan.render.json_form import plan_as_json

    workspace = replace(open_workspace(project, stack, specs), delete_savepoints=delete_savepoints)
    lake = workspace.lake()
    offer_aws_provider(workspace, lake, may_ask=not (yes or as_json))
    with held_in_time(workspace, lake, lock_timeout):
        planned = plan_destroy(workspace, lake, allow_destroy or ())
        standing = foreign_resources(workspace, planned.engine())
        planned = replace(planned, plan=replace(planned.plan, foreign=tuple(each.destroyed() for each in standing)))
        check_addresses("--allow-destroy", allow_destroy or (), planned.plan)
        if not as_json:
            show(planned)
        note_unreadable(planned.live.unreadable.values())
        if planned.plan.is_refused:
            return refuse(planned, as_json=as_json)
        refuse_protected(standing, allow_destroy or ())
        if not yes:
            _ask_for_name(planned.plan.instance)
        for address in end_deletions(workspace, planned).values():
            note(f"ended the deletion of {address}, which was cut off")
        for line in delete_unknown(workspace, planned):
            note(line)
        with StepView(as_json=as_json) as view:
            result = planned.engine().destroy(
                workspace.stack_ref, on_event=view, allow_destroy=frozenset(allow_destroy or ())
            )
    if as_json:
        print_json({"plan": plan_as_json(planned.plan), "summary": dict(result.summary)})
    elif not result.summary.get("delete"):
        note(f"stack {stack} manages nothing")
    else:
        stdout().print(view.summary(result.operations))
        if kept := [each.name for each in standing if each.protected and each.kept]:
            note(f"still in AWS, and no part of the stack any more: {', '.join(kept)}")
    return 0


def _ask_for_name(name: str) -> None:
    import sys

    from deployer.console.output import ask
    from deployer.errors import Interrupted, InvalidInput

    if not sys.stdin.isatty():
        raise InvalidInput("nobody can be asked here", remedy="give --yes to go on without asking")
    if ask(f"This deletes all of it. Type the instance's name ({name}) to go on") != name:
        raise Interrupted("that is not the instance's name, nothing was changed")
