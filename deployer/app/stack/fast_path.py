"""The conditions under which a preview need not ask the engine: Pulumi's state agrees with the plan's starting point,
and the program adds nothing.

Running a program takes the SDK about 1.5 ms for each resource, which is most of a preview's time. The program of a new
project only declares the lake when the root is on a disk, so the engine would find exactly the plan's changes. In all
other cases the engine is asked, and whenever anything is applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deployer.app.starter.packaged import PROGRAM, packaged
from deployer.app.workspace import Workspace
from deployer.engine import choose_engine
from deployer.engine.persistence.backend import read_checkpoint, stack_files
from deployer.engine.project.backend_url import is_known
from deployer.engine.project.project import StackRef
from deployer.engine.values.urns import is_provider_type, package_of
from deployer.errors import DeployerError
from deployer.plan import Plan
from deployer.provider.urn import INSTANCE_TYPE, address_of, type_of
from deployer.specs.model import AwsSettings

_OF_PULUMI = ("pulumi:pulumi:Stack", "pulumi:providers:lake")
_UNSETTLED = ("delete", "external", "initErrors", "pendingReplacement", "taint")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The lake in Pulumi's state of a stack: its instance's root, and its resources' ids and URNs by address.

    `settled`: nothing in the state is unfinished or belongs to another provider. `aws` are the settings that the stack
    was applied with, as far as its resources show them; None where there is no state.
    """

    roots: Mapping[str, str]  #: by the instance's address, in the form of the instance's inputs
    ids: Mapping[str, str]
    settled: bool
    aws: AwsSettings | None = None
    urns: Mapping[str, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()  #: the providers that the state names
    unfinished: bool = False  #: a run was interrupted, so the state may have resources that no longer exist


NOTHING = Recorded({}, {}, settled=False)


def engine_would_agree(workspace: Workspace, root: str, plan: Plan, recorded: Recorded) -> bool:
    """Returns whether a preview by the engine would find exactly what the plan has.

    A table that the specs rename is not in Pulumi's state by its new name, so the engine is asked.
    """
    if "://" in root or not recorded.settled or not is_packaged_program(workspace):
        return False
    planned = {each.address: each.table_id for each in plan.resources if each.action != "create"}
    left_alone = {table.table_id for table in plan.unreadable}
    known = {address: id_ for address, id_ in recorded.ids.items() if id_ not in left_alone}
    return known.keys() == planned.keys() and all(known[address] == id_ for address, id_ in planned.items() if id_)


def read_recorded(stack: StackRef) -> Recorded:
    """Returns Pulumi's state of a stack, including what an interrupted run did; NOTHING where it cannot be read."""
    try:
        deployment, unfinished = _deployment(stack)
    except DeployerError:
        return NOTHING  # the engine reports what is wrong with it
    if not deployment:
        return NOTHING
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    settled = not deployment.get("pending_operations") and not unfinished
    roots: dict[str, str] = {}
    ids: dict[str, str] = {}
    urns: dict[str, str] = {}
    for resource in resources:
        kind = type_of(resource["urn"])
        settled = settled and not any(resource.get(mark) for mark in _UNSETTLED)
        if kind in _OF_PULUMI:
            continue
        address = address_of(resource["urn"])
        if address is None or address in ids or resource.get("delete"):
            settled = False
            continue
        ids[address], urns[address] = str(resource.get("id")), resource["urn"]
        root = (resource.get("inputs") or {}).get("root")
        if kind == INSTANCE_TYPE and isinstance(root, str):
            roots[address] = root
    kinds = (type_of(resource["urn"]) for resource in resources)
    packages = frozenset(package_of(kind) for kind in kinds if is_provider_type(kind))
    pending = unfinished or bool(deployment.get("pending_operations"))
    return Recorded(roots, ids, settled, _aws_settings(resources), urns, packages, pending)


def _deployment(stack: StackRef) -> tuple[dict[str, Any] | None, bool]:
    """Returns the state that the engine starts from, and whether a run was interrupted. For backends that only the
    Pulumi CLI supports, the CLI exports the state."""
    if not is_known(stack.project.backend_url):
        exported: dict[str, Any] = choose_engine(stack.project, "cli").export(stack)
        return exported.get("deployment"), False
    files = stack_files(stack)
    if not files.journal.exists():
        return read_checkpoint(files).deployment, False
    from deployer.engine.persistence.store import StackStore
    from deployer.engine.project.config import (
        read_keys,  # interrupted runs are rare, and these modules load the libraries of the keys
    )

    replayed: dict[str, Any] | None = StackStore(files, read_keys(stack)).export()["deployment"]
    return replayed, True


def _aws_settings(resources: Iterable[Mapping[str, Any]]) -> AwsSettings:
    key, capacity = None, None
    for resource in resources:
        kind = type_of(resource["urn"])
        if kind == "aws:kms/key:Key":
            key = "managed"
        elif kind == "aws:dynamodb/table:Table":
            inputs = resource.get("inputs") or {}
            read, write = inputs.get("readCapacity"), inputs.get("writeCapacity")
            if isinstance(read, int | float) and isinstance(write, int | float):
                capacity = int(read), int(write)
    return AwsSettings(key, capacity)


def is_packaged_program(workspace: Workspace) -> bool:
    """Returns whether the program is, byte for byte, the one that `deployer init` writes, with nothing beside it that
    Python could import instead: another module, a package, bytecode."""
    folder = workspace.project.main
    try:
        return {file.name for file in folder.iterdir() if not file.name.startswith(".")} == PROGRAM.keys() and all(
            (folder / name).read_bytes() == packaged(source) for name, source in PROGRAM.items()
        )
    except OSError:
        return False
