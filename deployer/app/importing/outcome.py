"""The result of an import, and whether an earlier import was complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deployer.app.live_state import read_live
from deployer.app.stack.engine import engine_for
from deployer.app.stack.state import applied_resources
from deployer.app.workspace import Workspace
from deployer.errors import Conflict
from deployer.specs.model import Lake, TableSpec


@dataclass(frozen=True, slots=True)
class ImportedTable:
    """An imported table in its live state, and `file`, the spec file that declares it.

    `copied`: its rows were copied; otherwise they stayed in place. `managed`: it was imported before, so nothing was
    done. `notes` are the assumptions made about the files that were read; None where no files were read.
    """

    address: str
    rows: int
    location: str
    file: str
    copied: bool
    managed: bool
    row_keys: tuple[str, ...]
    notes: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the table in the document that `deployer import --json` prints."""
        return {
            "address": self.address,
            "rows": self.rows,
            "location": self.location,
            "file": self.file,
            "copied": self.copied,
            "managed": self.managed,
            "row_keys": list(self.row_keys),
            **({} if self.notes is None else {"notes": list(self.notes)}),
        }


def reported(
    workspace: Workspace, tables: list[TableSpec], *, copied: bool, managed: bool = False
) -> list[ImportedTable]:
    """Returns the live state of the imported tables, with the files that declare them."""
    lake = workspace.lake()
    live = read_live(workspace.root(lake)).tables
    declared = {table.address: table for table in lake.tables}
    return [
        ImportedTable(
            table.address,
            live[table.address].statistics.rows,
            str(live[table.address].location),
            declared[table.address].sources[""].file,
            copied,
            managed,
            live[table.address].spec.row_keys,
        )
        for table in tables
    ]


def is_applied(workspace: Workspace, lake: Lake, spec: TableSpec) -> bool:
    """Returns whether Pulumi's state of the stack has the table."""
    return spec.address in applied_resources(workspace, engine_for(workspace, lake))


def declared_already(spec: TableSpec) -> Conflict:
    """Returns the error for a table that the specs declare differently, or that has other rows."""
    remedy = "choose another name; `deployer up` creates what is declared, and `deployer ingest` loads it"
    return Conflict("the specs declare the table already", where=spec.address, remedy=remedy)
