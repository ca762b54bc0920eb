"""The owner of a table: only the stack that applied a table may change it."""

from __future__ import annotations

from deployer.errors import Refused
from deployer.live.reader import instance_owner
from deployer.state.model.declared_properties import OWNER
from deployer.state.model.entities import InstanceState, TableEntry, TableState


def require_owner(entry: TableEntry, state: TableState, owner: str) -> None:
    """Raises Refused when another `project/stack` than `owner` manages the table; tables without an owner are free."""
    _require(entry, str(state.properties.declared.get(OWNER, "")), owner, "the table")


def require_instance_owner(entry: TableEntry, instance: InstanceState, owner: str) -> None:
    """Checks the owner of a table whose log cannot be read: the stack that manages the instance may change it."""
    _require(entry, instance_owner(instance), owner, "the instance of this table, whose log cannot be read")


def _require(entry: TableEntry, manages: str, owner: str, what: str) -> None:
    if manages and manages != owner:
        raise Refused(
            f"stack {manages} manages {what}, not {owner}",
            where=f"table/{entry.full_name}",
            remedy=f"use that project, with --stack {manages.rpartition('/')[2]}",
        )
