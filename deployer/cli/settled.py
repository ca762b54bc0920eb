"""When a preview need not ask the engine: Pulumi's state holds what the plan starts from, and the program adds nothing.

Running a program costs the SDK about a millisecond and a half for each resource, most of a preview's time. The program
that projects start with only declares the lake when its root is on a disk, so that the engine would find the plan's
changes and nothing else. In every other case it is asked, and when anything is applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.cli.workspace import Workspace
from deployer.engine.backend import read_checkpoint, stack_files
from deployer.engine.project import StackRef
from deployer.errors import DeployerError
from deployer.live.model import LiveLake
from deployer.plan import Plan
from deployer.provider.urn import INSTANCE_TYPE, address_of, type_of
from deployer.starter.write import PROGRAM, packaged

_OF_PULUMI = ("pulumi:pulumi:Stack", "pulumi:providers:lake")
_UNSETTLED = ("delete", "external", "initErrors", "pendingReplacement", "taint")


@dataclass(frozen=True, slots=True)
class Settled:
    """What Pulumi's state of a stack holds, and nothing else: the lake's root and its resources' ids by address."""

    root: str | None  #: as the instance's inputs say it; None without an instance
    ids: Mapping[str, str]


def engine_would_agree(workspace: Workspace, root: str, plan: Plan, live: LiveLake, settled: Settled | None) -> bool:
    """Whether a preview by the engine would find what the plan says and no more.

    A table under a new name is not in Pulumi's state by that name, so the engine is asked.
    """
    if "://" in root or not _is_packaged_program(workspace) or settled is None:
        return False
    addresses = {resource.address for resource in plan.resources if resource.action != "create"}
    return settled.ids.keys() == addresses and all(
        settled.ids[address] == table.table_id for address, table in live.tables.items() if address in addresses
    )


def read_settled(stack: StackRef) -> Settled | None:
    """Pulumi's state of a stack; None when there is none, or anything in it is unfinished or of another provider."""
    try:
        files = stack_files(stack)
        deployment, _ = read_checkpoint(files)
    except DeployerError:
        return None  # the engine says what is wrong with it
    if files.journal.exists() or not deployment or deployment.get("pending_operations"):
        return None
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    if any(resource.get(mark) for resource in resources for mark in _UNSETTLED):
        return None
    root: str | None = None
    ids: dict[str, str] = {}
    for resource in resources:
        kind = type_of(resource["urn"])
        if kind in _OF_PULUMI:
            continue
        address = address_of(resource["urn"])
        if address is None or address in ids:
            return None
        ids[address] = str(resource.get("id"))
        if kind == INSTANCE_TYPE:
            root = (resource.get("inputs") or {}).get("root")
    return Settled(root, ids)


def _is_packaged_program(workspace: Workspace) -> bool:
    """Whether the program is, byte for byte, the one that `deployer init` writes, and nothing beside it."""
    folder = workspace.project.main
    try:
        return {file.name for file in folder.glob("*.py")} == PROGRAM.keys() and all(
            (folder / name).read_bytes() == packaged(source) for name, source in PROGRAM.items()
        )
    except OSError:
        return False
