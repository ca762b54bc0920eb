"""`deployer state export` and `state import`: write the whole state store into a file, and read it from there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.state.transfer.export import Export


def export(
    file: Annotated[Path, typer.Argument(help="The file to write, such as state.zip.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Write all logs and snapshots, as of one moment, into one file with checksums. The tables' data is not in it.

    Exit codes: 0 written; 1 an error, such as something stored that is damaged; 3 refused: the file is there.
    """
    from contextlib import closing

    from deployer.cli.console.progress_display import working
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.errors import InvalidInput, Refused
    from deployer.state import open_reader

    root = root_to_read(project, stack, specs)
    if file.exists() and not force:
        raise Refused("the file exists already", where=file, remedy="give another name, or --force")
    if not file.absolute().parent.is_dir():
        raise InvalidInput("no such folder", where=file.absolute().parent, remedy="create it first")
    with closing(open_reader(root)) as store, working(f"writing {file}", as_json=as_json) as on_progress:
        exported = store.export_to(file, on_progress)
    _print_export(exported, "wrote", file, as_json)
    return 0


def import_state(
    file: Annotated[Path, typer.Argument(help="A file that `state export` wrote.", show_default=False)],
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Make the declared instance's state store from an export. Its root must have none; the data is copied by hand.

    Exit codes: 0 imported; 1 an error, such as a damaged file; 3 refused: the root has a state store, or the file is of
    a newer deployer.
    """
    from deployer.cli.console.progress_display import working
    from deployer.cli.inputs.lake_root import instance_of
    from deployer.state.new_store import import_into

    root, instance = instance_of(project, stack, specs)
    with working(f"importing {file}", as_json=as_json):
        imported = import_into(file, root, instance.state.options, instance=instance.name)
    _print_export(imported, "imported", file, as_json)
    return 0


def _print_export(exported: Export, done: str, file: Path, as_json: bool) -> None:
    from deployer.cli.console.output import print_json, stdout
    from deployer.platform.text.formatting import count

    if as_json:
        counts = {"entries": exported.entries, "snapshots": exported.snapshots}
        print_json({"file": str(file), "logs": exported.logs, **counts})
        return
    what = ", ".join(
        (
            count(len(exported.logs), "log"),
            count(exported.entries, "entry", "entries"),
            count(exported.snapshots, "snapshot"),
        )
    )
    stdout().print(f"{done} {file}: {what}", soft_wrap=True)
