"""Refuses to create a lake whose state store was lost: tables would be created empty beside their data."""

from __future__ import annotations

from collections.abc import Collection

from deployer.app.stack.fast_path import Recorded
from deployer.app.workspace import Workspace
from deployer.errors import Refused
from deployer.platform.text.formatting import count
from deployer.specs.model import Lake
from deployer.specs.values.root import resolve_root
from deployer.state.model.lost_store import RECOVERY, refuse_new_store


def refuse_lost_state(workspace: Workspace, lake: Lake, recorded: Recorded) -> None:
    """Raises Refused when the root has no state store, but datasets there or Pulumi's state show that it had one."""
    root = workspace.root(lake)
    refuse_new_store(root)
    applied_at = recorded.roots.get(lake.instance.address)
    if recorded.unfinished or applied_at is None or resolve_root(workspace.dir, applied_at) != root:
        return
    refuse_lost_tables(workspace, root, recorded.ids)


def refuse_lost_tables(workspace: Workspace, root: str, applied: Collection[str]) -> None:
    """Raises Refused when the root has no state store, and the stack has applied tables."""
    tables = sorted(address for address in applied if address.startswith("table/"))
    if not tables:
        return
    where_it_is = (
        "check the region and the account; restore the state's DynamoDB table from a backup, or run `deployer state "
        "rebuild`"
        if root.startswith("s3://")
        else f"mount the disk of the root, or {RECOVERY}"
    )
    raise Refused(
        f"the state store is missing, and Pulumi's state of stack {workspace.stack} has {count(len(tables), 'table')} "
        f"of this lake: {', '.join(tables[:3])}{', …' if len(tables) > 3 else ''}; nothing was changed",
        where=root,
        remedy=f"{where_it_is}. `deployer up --new-state` makes a new state store and creates the tables without rows",
    )
