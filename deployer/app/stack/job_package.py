"""The code of jobs that the stack's program uploads, brought up to date before a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.app.workspace import Workspace
    from deployer.specs.model import Lake
    from deployer.system.progress import OnProgress, Progress


_TITLE = "code of jobs"


def package_for(workspace: Workspace, lake: Lake) -> None:
    """Bring the code up to date that the stack's program is to upload, if it uploads any; says how far it is."""
    from deployer.compute.packaging.package import FOLDER, architectures, build_package

    instance, settings = lake.instance, workspace.values
    if not instance.root.startswith("s3://") or settings.get("aws") == "none" or "jobs" in settings:
        return
    if "endpoint" not in instance.state.options and (wanted := architectures(instance.clusters)):
        with progress_shown(as_json=False) as on_progress:
            build_package(workspace.dir / FOLDER, wanted, on_progress=on_progress, project_dir=workspace.dir)


@contextmanager
def progress_shown(*, as_json: bool) -> Iterator[OnProgress]:
    from deployer.console.progress_display import Meter

    with Meter(as_json=as_json) as meter:
        begun = False

        def report_progress(now: Progress) -> None:
            nonlocal begun
            if not begun:
                begun = True
                meter.begin(_TITLE, _TITLE)
            meter.tell(_TITLE, now.doing, now.done, now.total, now.unit)

        yield report_progress
