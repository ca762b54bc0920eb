"""The code of jobs that the stack's program uploads, which is updated before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.app.reporter import Reporter
    from deployer.app.workspace import Workspace
    from deployer.specs.model import Lake

TITLE = "code of jobs"  #: the title of the work in reports


def package_for(workspace: Workspace, lake: Lake, reporter: Reporter) -> None:
    """Updates the code that the stack's program uploads, if it uploads any, and reports the progress."""
    from deployer.compute.packaging.package import FOLDER, architectures, build_package, requirements_of
    from deployer.compute.running.named_functions import named_functions, untrusted_functions

    instance, settings = lake.instance, workspace.values
    if not instance.root.startswith("s3://") or settings.get("aws") == "none" or "jobs" in settings:
        return
    if "endpoint" not in instance.state.options and (wanted := architectures(instance.clusters)):
        with reporter.work(TITLE) as on_progress:
            build_package(
                workspace.dir / FOLDER,
                wanted,
                on_progress=on_progress,
                project_dir=workspace.dir,
                functions=named_functions(lake),
                requirements=requirements_of(instance.clusters),
            )
        for remark in untrusted_functions(lake, settings):
            reporter.note(remark)
