"""`deployer import` of Lance datasets that stay where they are."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

from deployer.app.importing.outcome import ImportedTable, declared_already, is_applied, reported
from deployer.app.importing.spec_files import check_specs, write_specs
from deployer.app.live_state import read_live
from deployer.app.planning.addresses import table_name
from deployer.app.stack.engine import engine_for
from deployer.app.stack.state import applied_resources, apply_only
from deployer.app.workspace import Workspace
from deployer.errors import DeployerError, Refused
from deployer.plan.diff.lakes import diff
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, counted, no_progress
from deployer.specs.model import Lake
from deployer.state import open_store
from deployer.tables.admin.instance import create_instance
from deployer.tables.importing.adopt import Adoptable, adopt, adoptable, location_under


def adopt_one(
    workspace: Workspace, lake: Lake, found: Adoptable, on_progress: OnProgress = no_progress
) -> ImportedTable:
    """Imports one dataset, or finishes an interrupted import. Raises Conflict for a table that is declared
    differently."""
    spec = found.spec
    declared = lake.table(spec.full_name)
    if declared:
        live = read_live(workspace.root(lake), on_progress=on_progress).tables.get(spec.address)
        applied = is_applied(workspace, lake, spec)
        if live and live.location == found.location and applied:
            return reported(workspace, [spec], copied=False, managed=True)[0]
        if live.location != found.location if live else applied or diff(spec, declared):
            raise declared_already(spec)
    return _adopt(workspace, lake, [found], on_progress)[0]


def adopt_all(
    workspace: Workspace, lake: Lake, datasets: list[Path], database: str, on_progress: OnProgress = no_progress
) -> tuple[list[ImportedTable], dict[str, str]]:
    """Imports many datasets in place; returns the imported tables, and by folder why the other ones were left out."""
    root = workspace.root(lake)
    before = read_live(root, on_progress=on_progress)
    live = {table.location: table.spec.full_name for table in before.tables.values()}
    applied = applied_resources(workspace, engine_for(workspace, lake))
    found: list[Adoptable] = []
    failed: dict[str, str] = {}
    for path in counted(datasets, len(datasets), "reading datasets", "datasets", on_progress):
        name = live.get(location_under(root, path) or "") or f"{database}.{table_name(path.name)}"
        declared = lake.table(name)
        if declared and declared.address in applied and location_under(root, path) in live:
            continue  # it is imported; the others were interrupted
        try:
            one = adoptable(root, path, *name.split("."))
            if (declared and diff(one.spec, declared)) or any(name == other.spec.full_name for other in found):
                raise Refused(
                    f"table {name} exists already",
                    remedy=f"`deployer import table/{database}.OTHER {shlex.quote(str(path))}`",
                )
            check_specs(workspace, lake, [] if declared else [one.spec])
            found.append(one)
        except DeployerError as error:
            failed[path.name] = str(error)
    return _adopt(workspace, lake, found, on_progress) if found else [], failed


def _adopt(workspace: Workspace, lake: Lake, found: list[Adoptable], on_progress: OnProgress) -> list[ImportedTable]:
    """Registers and protects the datasets, writes their specs, and applies these. Every step can be repeated."""
    root = workspace.root(lake)
    new = [each.spec for each in found if not lake.table(each.spec.full_name)]
    check_specs(workspace, lake, new)
    create_instance(root, lake.instance, workspace.owner)
    reached("cli.import.instance")
    with closing(open_store(root)) as store:
        for each in counted(found, len(found), "taking over datasets", "datasets", on_progress):
            adopt(store, root, each, workspace.owner)
            reached("cli.import.adopted")
    write_specs(workspace, new)
    tables = [each.spec for each in found]
    on_progress(Progress("applying the new specs", 0, None, ""))
    apply_only(workspace, [table.address for table in tables])  # only these tables: the specs may have other changes
    reached("cli.import.applied")
    return reported(workspace, tables, copied=False)
