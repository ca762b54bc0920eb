"""What an import came to, and what of it was done before."""

from __future__ import annotations

from typing import Any

from deployer.app.live_state import read_live
from deployer.app.stack.engine import engine_for
from deployer.app.stack.state import applied_resources
from deployer.app.workspace import Workspace
from deployer.errors import Conflict
from deployer.specs.model import Lake, TableSpec


def reported(
    workspace: Workspace, tables: list[TableSpec], *, copied: bool, managed: bool = False
) -> list[dict[str, Any]]:
    """What is live of the imported tables, and where it is declared, for people and for programs.

    `managed`: they were under management before, and nothing was done.
    """
    lake = workspace.lake()
    live = read_live(workspace.root(lake)).tables
    declared = {table.address: table for table in lake.tables}
    return [
        {
            "address": table.address,
            "rows": live[table.address].statistics.rows,
            "location": live[table.address].location,
            "file": declared[table.address].sources[""].file,
            "copied": copied,
            "managed": managed,
            "row_keys": list(live[table.address].spec.row_keys),
        }
        for table in tables
    ]


def is_applied(workspace: Workspace, lake: Lake, spec: TableSpec) -> bool:
    """Whether Pulumi's state of the stack has the table."""
    return spec.address in applied_resources(workspace, engine_for(workspace, lake))


def declared_already(spec: TableSpec) -> Conflict:
    """The error for a table that the specs declare otherwise, or that has other rows."""
    remedy = "choose another name; `deployer up` creates what is declared, and `deployer ingest` loads it"
    return Conflict("the specs declare the table already", where=spec.address, remedy=remedy)
