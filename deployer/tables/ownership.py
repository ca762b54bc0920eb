"""Who manages a table: what another stack applied is changed by that stack alone."""

from __future__ import annotations

from deployer.errors import Refused
from deployer.live.reader import OWNER
from deployer.state.model import TableEntry, TableState


def require_owner(entry: TableEntry, state: TableState, owner: str) -> None:
    """Raises Refused when the `project/stack` that manages the table is another than `owner`; nobody's is anybody's."""
    manages = str(state.properties.declared.get(OWNER, ""))
    if manages and manages != owner:
        raise Refused(
            f"stack {manages} manages the table, not {owner}",
            where=f"table/{entry.full_name}",
            remedy=f"use that project, with --stack {manages.rpartition('/')[2]}",
        )
