"""`report`: the lake as one page of HTML."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from deployer.app.drift_detection.find import find_drift
from deployer.app.report_page.datasets import lake_datasets
from deployer.app.report_page.page import DriftLine, DriftView, report_page
from deployer.app.report_page.services import lake_services
from deployer.app.workspace import Workspace, open_workspace
from deployer.errors import DeployerError, InvalidInput
from deployer.plan.render.changes import describe
from deployer.platform.files.private import write_private
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.text import masking
from deployer.tables.inspect.report import lake_report


@dataclass(frozen=True, slots=True)
class ReportResult:
    """A self-contained HTML page of the lake `instance`. The page loads nothing and runs no scripts."""

    instance: str
    page: str

    def write(self, path: Path | str) -> None:
        """Writes the page to a file that only its user can read. Raises InvalidInput where it cannot be written."""
        try:
            write_private(Path(path), self.page, keeps_mode=True)
        except OSError as error:
            raise InvalidInput(
                f"the page cannot be written: {error.strerror}", where=path, remedy="choose another file"
            ) from error


def report(
    project: Path | str | None = None,
    stack: str = "dev",
    specs: Path | str | None = None,
    *,
    on_progress: OnProgress = no_progress,
) -> ReportResult:
    """Makes a page of the lake: tables, sizes, key space, fragments, indexes, services and their runs, health, history
    and drift.

    It reads no rows. Known secrets are masked. If the drift cannot be determined, the page says why. `on_progress`
    receives how many tables are read.
    """
    with masking.scope():
        workspace = open_workspace(project, stack, specs)
        lake = workspace.lake()
        root, now = workspace.root(lake), dt.datetime.now(dt.UTC)
        page = report_page(
            lake.instance.name,
            lake.instance.root,
            lake_report(root, on_progress),
            lake_services(root, now),
            _drift(workspace, on_progress),
            now,
            lake_datasets(workspace.dir, lake, root),
        )
        return ReportResult(lake.instance.name, masking.masked(page))


def _drift(workspace: Workspace, on_progress: OnProgress) -> DriftView:
    try:
        found = find_drift(workspace, on_progress=on_progress)
    except DeployerError as error:
        return DriftView(workspace.stack, unknown=str(error))
    lines = tuple(
        DriftLine(
            item.address,
            describe(item.change),
            item.origin.who if item.origin else "",
            f"{item.origin.at:%Y-%m-%d %H:%M:%S}" if item.origin else "",
            str(item.origin.version) if item.origin and item.origin.version else "",
        )
        for item in found.items
    )
    undeclared = tuple((each.what, each.why) for each in found.undeclared)
    unreadable = tuple((each.address, each.why) for each in found.unreadable)
    return DriftView(workspace.stack, lines, undeclared, unreadable=unreadable)
