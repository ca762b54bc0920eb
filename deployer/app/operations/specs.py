"""`validate`, `render` and `graph`: the specs of one stack, without live state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployer.app.workspace import open_workspace
from deployer.plan.graph import Graph, build_graph
from deployer.specs.model import Lake


@dataclass(frozen=True, slots=True)
class ValidateResult:
    """A valid lake. `unread` are spec files that no stack includes, as paths relative to the project."""

    lake: Lake
    unread: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer validate --json` prints for valid specs; `problems` is empty in it."""
        return {
            "instance": self.lake.instance.name,
            "tables": [table.full_name for table in self.lake.tables],
            **({"datasets": [dataset.name for dataset in self.lake.datasets]} if self.lake.datasets else {}),
            "files": list(self.lake.files),
            "problems": [],
            "unread": list(self.unread),
        }


@dataclass(frozen=True, slots=True)
class RenderResult:
    """The lake that stack `stack` declares, after includes, schemas, variables and overlays."""

    stack: str
    lake: Lake

    def to_yaml(self) -> str:
        """Returns one spec file that declares the same lake."""
        from deployer.specs.editing.write import lake_to_yaml

        return lake_to_yaml(self.lake)

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer render --json` prints."""
        from deployer.specs.serialized.datasets import dataset_to_json
        from deployer.specs.serialized.specs import instance_to_json, table_to_json

        tables = [table_to_json(table) for table in sorted(self.lake.tables, key=lambda table: table.full_name)]
        datasets = [dataset_to_json(each) for each in sorted(self.lake.datasets, key=lambda dataset: dataset.name)]
        return {
            "stack": self.stack,
            "instance": instance_to_json(self.lake.instance),
            "tables": tables,
            **({"datasets": datasets} if datasets else {}),
        }


@dataclass(frozen=True, slots=True)
class GraphResult:
    """The declared resources by address, dependencies first."""

    graph: Graph

    def to_mermaid(self) -> str:
        """Returns the text that `deployer graph` prints."""
        from deployer.plan.graph.drawing import graph_as_mermaid

        return graph_as_mermaid(self.graph)

    def to_svg(self) -> str:
        """Returns the picture of `deployer graph --format svg`."""
        from deployer.plan.graph.drawing import graph_as_svg

        return graph_as_svg(self.graph)


def validate(project: Path | str | None = None, stack: str = "dev", specs: Path | str | None = None) -> ValidateResult:
    """Checks the specs of a stack. The arguments are those of `plan`. Raises InvalidSpecs with every problem."""
    from deployer.specs.sources.unread import unread_files

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    return ValidateResult(lake, tuple(unread_files(workspace.dir, workspace.specs, lake.files)))


def render(project: Path | str | None = None, stack: str = "dev", specs: Path | str | None = None) -> RenderResult:
    """Reads the specs of a stack. The arguments are those of `plan`. Raises InvalidSpecs with every problem."""
    return RenderResult(stack, open_workspace(project, stack, specs).lake())


def graph(project: Path | str | None = None, stack: str = "dev", specs: Path | str | None = None) -> GraphResult:
    """Builds the resource graph of a stack's specs. The arguments are those of `plan`. Raises InvalidSpecs."""
    return GraphResult(build_graph(open_workspace(project, stack, specs).lake()))
