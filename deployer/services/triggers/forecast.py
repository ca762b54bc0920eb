"""What the next run of a service would do, in words. Changes nothing and reads no rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deployer.errors import DeployerError
from deployer.services.clean import CleanOptions
from deployer.services.cluster.forecast import forecast
from deployer.services.cluster.options import ClusterOptions
from deployer.services.compact.candidates import planned
from deployer.services.compact.options import CompactOptions
from deployer.services.rewriting.tasks import files_of
from deployer.services.runs.options import options_of
from deployer.services.runs.records import runs_of
from deployer.services.savepoints.autosavepoint import unchanged_since
from deployer.specs.types.column_names import listed
from deployer.state.model.services import Service, ServiceKind
from deployer.tables.collect.garbage import GRACE, collect
from deployer.tables.collect.versions import OldVersions
from deployer.tables.open_table import ReadTable
from deployer.text.formatting import count, size


def foreseen(table: ReadTable, service: Service) -> str:
    """What a run of the table's service would do now. Where that cannot be told, why not."""
    try:
        return _FORESEEN[service.kind](table, service)
    except DeployerError as error:
        return f"not known: {error.what}"


def _compact(table: ReadTable, service: Service) -> str:
    options = CompactOptions.of(options_of(table.state, service.kind, None))
    sizes = options.sizes(table.layout().max_rows_per_file)
    tasks = planned(table, table.dataset(), sizes)
    if not tasks:
        return "nothing: no file is to be merged, sorted, placed or freed of deleted rows"
    old = sum(len(task.fragments) for task in tasks)
    new = sum(files_of(task.rows, task.bytes, sizes) for task in tasks)
    rows = count(sum(task.rows for task in tasks), "row")
    deleted = sum(task.deleted for task in tasks)
    dropped = f", {count(deleted, 'deleted row')} dropped" if deleted else ""
    written = size(sum(task.bytes for task in tasks))
    return f"{count(old, 'file')} become about {new:,}: {rows} rewritten, {written}{dropped}"


def _clean(table: ReadTable, service: Service) -> str:
    options = CleanOptions.of(options_of(table.state, service.kind, None))
    versions = OldVersions(options.older_than, options.keep_versions)
    gone = collect(table, grace=GRACE, versions=versions, dry_run=True)
    if not (gone.files or gone.versions or gone.jobs or gone.datasets or gone.savepoints):
        return "nothing: no version is old enough, and no file is left that no version needs"
    what = [count(gone.versions, "version")] if gone.versions else []
    what += [count(gone.files, "file") + " that no version has"] if gone.files else []
    what += [count(len(gone.datasets), "replaced dataset")] if gone.datasets else []
    what += [count(len(gone.savepoints), "savepoint") + " whose time is over"] if gone.savepoints else []
    what += [count(len(gone.jobs), "unfinished commit")] if gone.jobs else []
    would = "only says that it would remove" if options.dry_run else "removes"
    return f"{would} {', '.join(what)}: {size(gone.bytes)}"


def _autosavepoint(table: ReadTable, _: Service) -> str:
    same = unchanged_since(table)
    return f"nothing: nothing changed since savepoint {same}" if same else "makes a savepoint of the table as it is now"


def _metasync(table: ReadTable, service: Service) -> str:
    last = next((run for run in runs_of(table.state, service.kind) if run.status in ("SUCCEEDED", "SKIPPED")), None)
    version = table.state.lance_version
    if last is not None and last.figures.lance_version_after == version:
        return f"nothing but a look at the catalogs: version {version} is published"
    return f"publishes version {version}"


def _cluster(table: ReadTable, service: Service) -> str:
    options = ClusterOptions.of(options_of(table.state, service.kind, None))
    arrangement = options.arrangement(table)
    found = forecast(table, options, arrangement)
    by = f"{arrangement.curve} over {listed(arrangement.columns)}"
    if not found.tasks:
        return f"nothing: all files are clustered by {by}"
    files = sum(len(task.fragments) for task in found.tasks)
    rows, held = sum(task.rows for task in found.tasks), sum(task.bytes for task in found.tasks)
    would = "only says what it would arrange" if options.dry_run else "arranges"
    words = (
        f"{would} by {by}: {files:,} of {count(table.state.files.count, 'file')}, {count(rows, 'row')}, {size(held)}"
    )
    if not found.unknown:
        return words
    which = f"{count(len(found.unknown), 'part')} of {len(found.tasks):,}" if found.better else "the files"
    return f"{words}; a run that finds {which} in that order already leaves them as they are"


def _restore(_: ReadTable, __: Service) -> str:
    return "goes back to the newest savepoint"


_FORESEEN: Mapping[ServiceKind, Callable[[ReadTable, Service], str]] = {
    "COMPACT": _compact,
    "CLUSTER": _cluster,
    "CLEAN": _clean,
    "AUTOSAVEPOINT": _autosavepoint,
    "METASYNC": _metasync,
    "RESTORE": _restore,
}
