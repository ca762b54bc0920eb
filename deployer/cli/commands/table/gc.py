"""`deployer table gc`: removes stored files that nothing needs."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.live.model import Unreadable
    from deployer.state.model.entities import TableEntry
    from deployer.state.store import StateStore
    from deployer.tables.maintenance.collect.function_packages import PackagesReport
    from deployer.tables.maintenance.collect.garbage import GarbageReport


def gc(
    tables: Annotated[
        list[str] | None,
        typer.Argument(help="Tables as `database.name`; all that this stack manages by default.", metavar="[TABLE]…"),
    ] = None,
    grace: Annotated[
        str,
        typer.Option(
            help="Keep files that are younger than this, such as 36h: more than the longest load takes, and at "
            "least 1h."
        ),
    ] = "7d",
    versions_older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Also remove versions that are older than this, such as 30d; `query --at` cannot read them "
            "afterwards. Tagged versions stay.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and change nothing.")] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Remove files that no version needs and commits that were never made, such as of loads that failed or were killed.

    Without names of tables, it also removes packages of functions that no column of the instance uses, and folders of
    the catalog that neither a dataset nor a savepoint uses. Every version stays, and so do files younger than the grace
    period: a load that runs may commit them yet.
    """
    from contextlib import closing
    from dataclasses import asdict

    from deployer.app.workspace import open_workspace
    from deployer.catalog.datasets.maintenance import remove_leftovers
    from deployer.catalog.datasets.model.registry import Datasets
    from deployer.catalog.datasets.reads.index import Indexes
    from deployer.catalog.datasets.search.searches import Searches
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.console.progress_display import progress_shown
    from deployer.cli.summaries.unreadable import note_unreadable
    from deployer.errors import Corrupt, NotFound
    from deployer.live.reader import unreadable
    from deployer.platform.system.progress import Progress
    from deployer.state import open_store
    from deployer.tables.maintenance.collect.function_packages import PackagesReport, collect_packages
    from deployer.tables.maintenance.collect.garbage import collect_garbage

    age, old = _length(grace, "--grace") or dt.timedelta(), _length(versions_older_than, "--versions-older-than")
    done: list[GarbageReport] = []
    workspace = open_workspace(project, stack, specs)
    root = workspace.root(workspace.lake())
    with closing(open_store(root)) as store, progress_shown("collecting garbage", as_json=as_json) as report:
        entries, broken = _entries(store, tables or [], workspace.owner)
        for number, entry in enumerate(sorted(entries, key=lambda entry: entry.full_name)):
            report(Progress("looking at files", number, len(entries), "tables"))
            try:
                done.append(
                    collect_garbage(store, root, entry.table_id, grace=age, versions_older_than=old, dry_run=dry_run)
                )
            except (Corrupt, NotFound) as why:
                broken.append(unreadable(entry, why))
        packages = PackagesReport() if tables else collect_packages(store, root, grace=age, dry_run=dry_run)
        datasets = Datasets(store, root)
        searches = Searches(datasets, Indexes(root))
        folders = [] if tables else remove_leftovers(datasets, searches, age, dry_run=dry_run)
    if as_json:
        error = {"error": {"kind": "Corrupt", "unreadable": [each.as_row() for each in broken]}} if broken else {}
        print_json(
            {
                "dry_run": dry_run,
                "tables": [asdict(each) for each in done],
                "functions": asdict(packages),
                "catalog": folders,
                **error,
            }
        )
        return 1 if broken else 0
    for each in done:
        _print(each, dry_run=dry_run)
    _print_packages(packages, dry_run=dry_run)
    for folder in folders:
        stdout().print(f"{'would remove' if dry_run else 'removed'} {folder}, which belongs to no dataset")
    note_unreadable(broken)
    if not done and not broken:
        note("this stack manages no tables")
    return 1 if broken else 0


def _entries(store: StateStore, names: list[str], owner: str) -> tuple[list[TableEntry], list[Unreadable]]:
    """Returns the tables to check (those with the names, or all that the stack manages), and the tables whose log
    cannot be read."""
    from deployer.live.reader import unreadable
    from deployer.state.model.declared_properties import OWNER
    from deployer.tables.admin.ownership import require_owner
    from deployer.tables.open_table import find_entry

    entries = [entry for entry in store.instance().tables.values() if entry.status == "active"]
    if not names:
        states, failures = store.each_table(entry.table_id for entry in entries)
        managed = {key for key, state in states.items() if state.properties.declared.get(OWNER, "") == owner}
        return (
            [entry for entry in entries if entry.table_id in managed],
            [unreadable(entry, failures[entry.table_id]) for entry in entries if entry.table_id in failures],
        )
    found = {entry.table_id: entry for name in names for entry in [find_entry(entries, name)]}
    states, failures = store.each_table(found)
    for table_id, state in states.items():
        require_owner(found[table_id], state, owner)
    return (
        [found[table_id] for table_id in states],
        [unreadable(found[table_id], why) for table_id, why in failures.items()],
    )


def _print_packages(done: PackagesReport, *, dry_run: bool) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.formatting import count, size

    if done.removed:
        verb = "would remove" if dry_run else "removed"
        packages = count(len(done.removed), "package of a function", "packages of functions")
        stdout().print(f"{verb} {packages} that no column uses, with {size(done.bytes)}")
    if done.why_not:
        note(f"packages of functions were not checked: {done.why_not}")


def _length(text: str | None, option: str) -> dt.timedelta | None:
    from deployer.errors import InvalidInput
    from deployer.platform.text.units import parse_duration

    if text is None:
        return None
    length = parse_duration(text, option=option)
    if length < dt.timedelta(hours=1):
        raise InvalidInput(f"{option} {text} is too short", remedy="loads that run would lose files: give 1h at least")
    return length


def _print(done: GarbageReport, *, dry_run: bool) -> None:
    from deployer.cli.console.output import note, stdout
    from deployer.platform.text.formatting import count, size

    what = [count(done.files, "file") + f" with {size(done.bytes)}"] if done.files or done.bytes else []
    what += [count(done.versions, "version")] if done.versions else []
    what += [f"{count(len(done.datasets), 'replaced dataset')} among them"] if done.datasets else []
    what += [count(len(done.jobs), "unfinished commit")] if done.jobs else []
    what += [count(len(done.savepoints), "expired savepoint")] if done.savepoints else []
    verb = "would remove" if dry_run else "removed"
    stdout().print(f"{done.table}: {verb} {', '.join(what)}" if what else f"{done.table}: nothing to remove")
    for location, bytes_ in zip(done.datasets, done.dataset_bytes, strict=True):
        stdout().print(f"  dataset {location}: {size(bytes_)}", style="dim")
    if done.young:
        stay = "1 file stays" if done.young == 1 else f"{done.young:,} files stay"
        note(f"{stay} until the grace period is over: no version has them, but a load may still commit them")
    for each in done.kept:
        note(f"kept {each}")
    if done.why_not:
        note(f"files were not checked: {done.why_not}")
