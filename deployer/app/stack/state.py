"""The applied resources in Pulumi's state of a stack, and applying single resources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from deployer.app.stack.engine import engine_for
from deployer.app.workspace import SPECS_KEY, Workspace
from deployer.engine import Engine
from deployer.provider.urn import address_of, type_of, urn_of
from deployer.specs import known_lake


@dataclass(frozen=True, slots=True)
class Applied:
    """A resource as it was last applied: its inputs and its id. The id of a table is that of the state store."""

    inputs: Mapping[str, Any]
    id: str


def applied_resources(workspace: Workspace, engine: Engine) -> dict[str, Applied]:
    """Returns the resources of the lake as they were last applied, by address; empty for a stack without state."""
    deployment = engine.export(workspace.stack_ref).get("deployment") or {}
    return {
        address: Applied(resource.get("inputs") or {}, str(resource.get("id") or ""))
        for resource in deployment.get("resources") or ()
        if not resource.get("delete") and (address := address_of(resource["urn"]))
    }


def stack_outputs(workspace: Workspace, engine: Engine) -> Mapping[str, Any]:
    """Returns the outputs that the program exported when it was last applied; empty for a stack without state."""
    deployment = engine.export(workspace.stack_ref).get("deployment") or {}
    stacks = (each for each in deployment.get("resources") or () if type_of(each["urn"]) == "pulumi:pulumi:Stack")
    return next((each.get("outputs") or {} for each in stacks), {})


def apply_only(workspace: Workspace, addresses: Collection[str]) -> None:
    """Applies only what is declared at these addresses, and the instance where the stack has none yet."""
    lake = workspace.lake()
    engine = engine_for(workspace, lake)
    wanted = {*addresses} | ({lake.instance.address} - applied_resources(workspace, engine).keys())
    targets = frozenset(urn_of(workspace.project.name, workspace.stack, address) for address in wanted)
    with known_lake(workspace.dir, workspace.specs, lake, workspace.stack):
        engine.up(workspace.stack_ref, config={SPECS_KEY: str(workspace.specs)}, targets=targets)
