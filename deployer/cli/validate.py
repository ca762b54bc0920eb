"""`deployer validate`: every problem of the specs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.specs.model import Lake


def validate(
    project: ProjectDir = None, stack: StackName = DEFAULT_STACK, specs: SpecsPath = None, as_json: AsJson = False
) -> int:
    """Check the specs and say every problem as `file:line:column: what; what to do`. Exits with 1 when there is one."""
    from deployer.cli.output import print_json, stdout
    from deployer.cli.workspace import open_workspace

    lake = open_workspace(project, stack, specs).lake()
    if as_json:
        print_json(summary_as_json(lake))
    else:
        stdout().print(summary(lake))
    return 0


def summary(lake: Lake) -> str:
    """What was found to be sound, in one line."""
    counts = (_counted(len(lake.tables), "table"), _counted(len(lake.files), "file"))
    return f"{lake.instance.name}: {counts[0]} in {counts[1]} without a problem"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def summary_as_json(lake: Lake) -> dict[str, Any]:
    """The same for machines; `problems` is empty here and listed in the error document otherwise."""
    return {
        "instance": lake.instance.name,
        "tables": [table.full_name for table in lake.tables],
        "files": list(lake.files),
        "problems": [],
    }
