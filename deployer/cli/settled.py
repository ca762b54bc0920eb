"""When a preview need not ask the engine: Pulumi's state holds what the plan starts from, and the program adds nothing.

Running a program costs the SDK about a millisecond and a half for each resource, most of a preview's time. The program
that projects start with only declares the lake when its root is on a disk, so that the engine would find the plan's
changes and nothing else. In every other case it is asked, and when anything is applied.
"""

from __future__ import annotations

from typing import Any

from deployer.cli.workspace import Workspace
from deployer.engine.backend import read_checkpoint, stack_files
from deployer.errors import DeployerError
from deployer.live.model import LiveLake
from deployer.plan import Plan
from deployer.provider.urn import address_of, type_of
from deployer.starter.write import PROGRAM, packaged

_OF_PULUMI = ("pulumi:pulumi:Stack", "pulumi:providers:lake")
_UNSETTLED = ("delete", "external", "initErrors", "pendingReplacement", "taint")


def engine_would_agree(workspace: Workspace, root: str, plan: Plan, live: LiveLake) -> bool:
    """Whether a preview by the engine would find what the plan says and no more."""
    return "://" not in root and _is_packaged_program(workspace) and _is_settled(workspace, plan, live)


def _is_packaged_program(workspace: Workspace) -> bool:
    """Whether the program is, byte for byte, the one that `deployer init` writes, and nothing beside it."""
    folder = workspace.project.main
    try:
        return {file.name for file in folder.glob("*.py")} == PROGRAM.keys() and all(
            (folder / name).read_bytes() == packaged(source) for name, source in PROGRAM.items()
        )
    except OSError:
        return False


def _is_settled(workspace: Workspace, plan: Plan, live: LiveLake) -> bool:
    """Whether Pulumi's state holds the resources that the plan finds, with their live ids, and nothing unfinished.

    A table under a new name is not in the state by that name, so the engine is asked.
    """
    try:
        files = stack_files(workspace.stack_ref)
        deployment, _ = read_checkpoint(files)
    except DeployerError:
        return False  # the engine says what is wrong with it
    if files.journal.exists() or not deployment or deployment.get("pending_operations"):
        return False
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    own = [resource for resource in resources if type_of(resource["urn"]) not in _OF_PULUMI]
    if any(resource.get(mark) for resource in resources for mark in _UNSETTLED):
        return False
    ids = {address_of(resource["urn"]): str(resource.get("id")) for resource in own}
    addresses = {resource.address for resource in plan.resources if resource.action != "create"}
    return (
        len(own) == len(ids)
        and ids.keys() == addresses
        and all(ids[address] == table.table_id for address, table in live.tables.items() if address in addresses)
    )
