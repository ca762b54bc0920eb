"""The root of a lake, for commands that read its data: from the specs, or as it was last applied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.app.workspace import Workspace
    from deployer.errors import InvalidSpecs
    from deployer.specs.model import InstanceSpec


def instance_of(project: Path | None, stack: str, specs: Path | None) -> tuple[str, InstanceSpec]:
    """Returns the root of the declared instance, and the instance's spec."""
    from deployer.app.workspace import open_workspace

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    return workspace.root(lake), lake.instance


def root_to_read(project: Path | None, stack: str, specs: Path | None) -> str:
    """Returns the root of the declared instance, for a command that reads live data. Other problems of the specs are
    noted.

    Raises InvalidSpecs when the problems may concern the root, and the stack's state has no root.
    """
    from deployer.app.workspace import open_workspace
    from deployer.errors import InvalidSpecs

    workspace = open_workspace(project, stack, specs)
    try:
        return workspace.root(workspace.lake())
    except InvalidSpecs as problems:
        return root_despite(workspace, problems, "reads")


def root_despite(workspace: Workspace, problems: InvalidSpecs, verb: str) -> str:
    """Returns the root of the declared instance although the specs have problems, which are noted.

    `verb` is what the command does: `reads` or `changes`. Raises the problems when they may concern the root, and the
    stack's state has no root.
    """
    from deployer.cli.console.output import note
    from deployer.platform.text.formatting import count
    from deployer.specs import declared_root
    from deployer.specs.values.root import resolve_root

    declared = declared_root(workspace.dir, workspace.specs, workspace.stack, workspace.values)
    root = declared or _applied_root(workspace)
    if root is None:
        raise problems
    where = "what is live" if declared else f"what stack {workspace.stack} applied"
    note(f"the specs have {count(len(problems.problems), 'problem')} (see `deployer validate`); this {verb} {where}")
    return resolve_root(workspace.dir, root)


def _applied_root(workspace: Workspace) -> str | None:
    """Returns the root in the stack's state; None if this process cannot read it."""
    from deployer.engine.persistence.backend import read_checkpoint, stack_files
    from deployer.errors import DeployerError
    from deployer.provider.urn import INSTANCE_TYPE, type_of

    try:
        deployment = read_checkpoint(stack_files(workspace.stack_ref)).deployment
    except DeployerError:
        return None
    resources = (deployment or {}).get("resources") or ()
    roots = ((each.get("inputs") or {}).get("root") for each in resources if type_of(each["urn"]) == INSTANCE_TYPE)
    return next((root for root in roots if isinstance(root, str) and root), None)
