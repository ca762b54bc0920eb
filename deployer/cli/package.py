"""`deployer package`: the code of jobs as files that the stack uploads for clusters on AWS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.cli.workspace import Workspace
    from deployer.compute.job_package import JobPackage, PackagedFile
    from deployer.specs.model import Lake
    from deployer.tables.progress import OnProgress, Progress

_TITLE = "code of jobs"


class Architecture(StrEnum):
    """Processors of a cluster's workers."""

    ARM64 = "arm64"
    X86_64 = "x86_64"


def package(
    architecture: Annotated[
        list[Architecture] | None,
        typer.Option(
            "--architecture",
            "-a",
            help="Of the clusters; repeatable. Those of the stack's clusters on AWS unless given, else arm64.",
            show_default=False,
        ),
    ] = None,
    python: Annotated[str, typer.Option(help="Python of the clusters: one that their EMR release has.")] = "3.11",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder to build in, which `deployer:jobs` may name; build/jobs in the project unless given.",
            show_default=False,
        ),
    ] = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Build the code of jobs for clusters on AWS: deployer itself, its jobs, and the packages that they need.

    `up` does the same when it has to. What did not change is left as it is.
    """
    from deployer.cli.output import print_json
    from deployer.cli.workspace import open_workspace
    from deployer.compute.job_package import FOLDER, architectures, build_package

    workspace = open_workspace(project, stack, specs)
    wanted = [each.value for each in architecture or ()] or architectures(workspace.lake().instance.clusters)
    folder = (out or workspace.dir / FOLDER).resolve()
    with _told(as_json=as_json) as on_progress:
        built = build_package(
            folder, wanted or [Architecture.ARM64.value], python, on_progress, project_dir=workspace.dir
        )
    print_json(_as_json(built, folder)) if as_json else _print(built, folder)
    return 0


def package_for(workspace: Workspace, lake: Lake) -> None:
    """Bring the code up to date that the stack's program is to upload, if it uploads any; says how far it is."""
    from deployer.compute.job_package import FOLDER, architectures, build_package

    instance, settings = lake.instance, workspace.values
    if not instance.root.startswith("s3://") or settings.get("aws") == "none" or "jobs" in settings:
        return
    if "endpoint" not in instance.state.options and (wanted := architectures(instance.clusters)):
        with _told(as_json=False) as on_progress:
            build_package(workspace.dir / FOLDER, wanted, on_progress=on_progress, project_dir=workspace.dir)


@contextmanager
def _told(*, as_json: bool) -> Iterator[OnProgress]:
    from deployer.cli.meter import Meter

    with Meter(as_json=as_json) as meter:
        begun = False

        def told(now: Progress) -> None:
            nonlocal begun
            if not begun:
                begun = True
                meter.begin(_TITLE, _TITLE)
            meter.tell(_TITLE, now.doing, now.done, now.total, now.unit)

        yield told


def _print(built: JobPackage, folder: Path) -> None:
    from rich.filesize import decimal
    from rich.table import Table

    from deployer.cli.output import stdout

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
    for _, file in sorted(built.scripts.items()):
        yield "script", file, file.is_new
    for _, file in sorted(built.archives.items()):
        yield "packages", file, file.is_new
