"""`deployer validate`: reports every problem of the specs at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName
from deployer.errors import InvalidSpecs

if TYPE_CHECKING:
    from deployer.app.workspace import Workspace
    from deployer.specs.model import Lake

_SHOWN = 10  #: the most files that are named


def validate(
    project: ProjectDir = None, stack: StackName = DEFAULT_STACK, specs: SpecsPath = None, as_json: AsJson = False
) -> int:
    """Check the specs and print every problem as `file:line:column: what; what to do`. Exits with 1 if one exists."""
    from deployer import app
    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import print_json, stdout
    from deployer.specs.loading.lake import read_files

    try:
        found = app.validate(project, stack, specs)
    except InvalidSpecs:
        workspace = open_workspace(project, stack, specs)
        note_unread(workspace, read_files(workspace.dir, workspace.specs, workspace.stack))
        raise
    if as_json:
        print_json(found.to_json())
    else:
        stdout().print(_summary(found.lake))
        _note_files(open_workspace(project, stack, specs), found.unread)
    return 0


def note_unread(workspace: Workspace, read: Collection[str]) -> None:
    """Notes the spec files in the folder of the specs that were not read, with the remedy."""
    from deployer.specs.sources.unread import unread_files

    _note_files(workspace, unread_files(workspace.dir, workspace.specs, read))


def _note_files(workspace: Workspace, unread: Sequence[str]) -> None:
    from deployer.cli.console.output import note

    if not unread:
        return
    shown = ", ".join(unread[:_SHOWN]) + (f" and {len(unread) - _SHOWN:,} more" if len(unread) > _SHOWN else "")
    verb = "is" if len(unread) == 1 else "are"
    top = workspace.specs if workspace.specs.is_dir() else workspace.specs.parent
    folder = Path(unread[0]).parent
    below = folder.relative_to(top.relative_to(workspace.dir)) if top.is_relative_to(workspace.dir) else folder
    pattern = "*.yaml" if below == Path() else f"{below.as_posix()}/*.yaml"
    note(f"{shown} {verb} not read: no file includes {'it' if len(unread) == 1 else 'them'}")
    note(f'to read such files, add the document `include: ["{pattern}"]` to a spec file in {top.name}/')


def _summary(lake: Lake) -> str:
    """Returns the result for valid specs as one line."""
    tables, files = _counted(len(lake.tables), "table"), _counted(len(lake.files), "file")
    datasets = f" and {_counted(len(lake.datasets), 'dataset')}" if lake.datasets else ""
    return f"{lake.instance.name}: {tables}{datasets} in {files} without a problem"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
