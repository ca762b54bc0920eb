"""`deployer package`: builds the code of jobs as files that the stack uploads for clusters on AWS."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.compute.packaging.package import JobPackage, PackagedFile


class Architecture(StrEnum):
    """The processor architecture of a cluster's workers."""

    ARM64 = "arm64"
    X86_64 = "x86_64"


def package(
    architecture: Annotated[
        list[Architecture] | None,
        typer.Option(
            "--architecture",
            "-a",
            help="Architecture of the clusters; repeatable. Default: those of the stack's clusters on AWS, or arm64.",
            show_default=False,
        ),
    ] = None,
    python: Annotated[str, typer.Option(help="Python of the clusters: one that their EMR release has.")] = "3.11",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to build in, which `deployer:jobs` may name; build/jobs in the project by default.",
            show_default=False,
        ),
    ] = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Build the code of jobs for clusters on AWS: deployer itself, its jobs, and the packages that they need.

    `up` does the same when needed. Unchanged parts are left as they are.
    """
    from deployer.app.stack.job_package import TITLE
    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import print_json
    from deployer.cli.console.progress_display import progress_shown
    from deployer.compute.packaging.package import FOLDER, architectures, build_package, requirements_of
    from deployer.compute.running.named_functions import named_functions

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    wanted = [each.value for each in architecture or ()] or architectures(lake.instance.clusters)
    folder = (out or workspace.dir / FOLDER).resolve()
    with progress_shown(TITLE, as_json=as_json) as on_progress:
        built = build_package(
            folder,
            wanted or [Architecture.ARM64.value],
            python,
            on_progress,
            project_dir=workspace.dir,
            functions=named_functions(lake),
            requirements=requirements_of(lake.instance.clusters),
        )
    print_json(_as_json(built, folder)) if as_json else _print(built, folder)
    return 0


def _print(built: JobPackage, folder: Path) -> None:
    from rich.filesize import decimal
    from rich.table import Table

    from deployer.cli.console.output import stdout

    table = Table("file", "size", "SHA-256", box=None, pad_edge=False, header_style="dim")
    for _, file, is_new in _files(built):
        table.add_row(file.path.name, decimal(file.size), file.sha256[:12], "built" if is_new else "as it was")
    stdout().print(table)
    stdout().print(f"for Python {built.python}, in {folder}", style="dim", soft_wrap=True)


def _as_json(built: JobPackage, folder: Path) -> dict[str, Any]:
    return {
        "folder": str(folder),
        "python": built.python,
        "files": [
            {"kind": kind, "name": file.path.name, "sha256": file.sha256, "bytes": file.size, "built": is_new}
            for kind, file, is_new in _files(built)
        ],
    }


def _files(built: JobPackage) -> Iterator[tuple[str, PackagedFile, bool]]:
    yield "wheel", built.wheel, built.wheel.is_new
    if built.modules is not None:
        yield "modules", built.modules, built.modules.is_new
    for _, file in sorted(built.scripts.items()):
        yield "script", file, file.is_new
    for _, file in sorted(built.archives.items()):
        yield "packages", file, file.is_new
