"""`deployer import` that copies rows into a new table."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial

from deployer.app.importing.outcome import ImportedTable, declared_already, is_applied, reported
from deployer.app.importing.spec_files import check_specs, write_specs
from deployer.app.live_state import read_live
from deployer.app.stack.state import apply_only
from deployer.app.workspace import Workspace
from deployer.compute.clusters import local_cluster
from deployer.errors import InvalidInput
from deployer.plan.diff.lakes import diff
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.specs.model import Lake, TableSpec
from deployer.specs.types.column_names import listed
from deployer.state import open_store
from deployer.tables.importing.infer import infer
from deployer.tables.ingest.files.model import ReadOptions
from deployer.tables.ingest.request import IngestRequest
from spark_jobs.ingest import run


def copy_rows(
    workspace: Workspace,
    lake: Lake,
    database: str,
    name: str,
    source: str,
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    options: ReadOptions,
    on_progress: OnProgress = no_progress,
) -> ImportedTable:
    """Declares the table, creates it and loads it from `source`; a repeated call finishes an interrupted import.

    `keys` are the row keys and the sort keys. Raises InvalidInput for a row key with nulls, and Conflict for a table
    that is declared differently or has other rows.
    """
    row_keys, sort_keys = keys
    on_progress(Progress("reading the types of the columns", 0, None, ""))
    found = infer([source], None, options)
    for each in found.columns:
        if each.name in row_keys and each.nullable and found.complete:
            raise InvalidInput(
                f"column {each.name} has nulls, and row keys are never null", where=source, remedy="choose other keys"
            )
    # a load does not write values of computed columns
    copied = [replace(each, computed=None) for each in found.columns]
    computed = [each.name for each in found.columns if each.computed is not None]
    columns = tuple(replace(each, nullable=False) if each.name in row_keys else each for each in copied)
    spec = TableSpec(database, name, columns, row_keys, sort_keys)
    declared = lake.table(spec.full_name)
    job_id = f"import-{spec.full_name}"  # the same job at each run, so that its rows are added once
    if declared is None:
        check_specs(workspace, lake, [spec])
        write_specs(workspace, [spec])
    else:
        live = read_live(workspace.root(lake)).tables.get(spec.address)
        loaded = live is not None and _has_job(workspace.root(lake), live.table_id, job_id)
        if diff(spec, declared) or (live and live.statistics.rows and not loaded):
            raise declared_already(spec)
        if loaded and is_applied(workspace, lake, spec):
            return reported(workspace, [spec], copied=True)[0]  # an earlier run did everything
    on_progress(Progress("creating the table", 0, None, ""))
    apply_only(workspace, [spec.address])
    reached("cli.import.applied")
    lake = workspace.lake()
    root, instance = workspace.root(lake), lake.instance
    cluster = partial(local_cluster, instance.clusters, None, instance.address)
    request = IngestRequest((source,), options=found.options, job_id=job_id)
    run(root, spec.full_name, request, cluster, on_progress)
    reached("cli.import.loaded")
    notes = [*found.notes]
    if computed:
        notes.append(f"{listed(computed)}: the values are copied, and the copy does not compute them")
    return replace(reported(workspace, [spec], copied=True)[0], notes=tuple(notes))


def _has_job(root: str, table_id: str, job_id: str) -> bool:
    with closing(open_store(root)) as store:
        return job_id in store.table(table_id).jobs
