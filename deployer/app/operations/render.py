"""`render`: the specs of one stack, after includes, schemas, variables and overlays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.app.workspace import open_workspace
from deployer.specs.model import Lake


@dataclass(frozen=True, slots=True)
class RenderResult:
    """The lake that stack `stack` declares."""

    stack: str
    lake: Lake

    def to_yaml(self) -> str:
        """One spec file that declares the same lake."""
        from deployer.specs.editing.write import lake_to_yaml

        return lake_to_yaml(self.lake)

    def to_json(self) -> dict[str, Any]:
        """The document that `deployer render --json` prints."""
        from deployer.specs.serialized.specs import instance_to_json, table_to_json

        tables = [table_to_json(table) for table in sorted(self.lake.tables, key=lambda table: table.full_name)]
        return {"stack": self.stack, "instance": instance_to_json(self.lake.instance), "tables": tables}


def render(project: Path | str | None = None, stack: str = "dev", specs: Path | str | None = None) -> RenderResult:
    """Reads the specs of a stack. The arguments are those of `plan`. Raises InvalidSpecs with every problem."""
    return RenderResult(stack, open_workspace(project, stack, specs).lake())
