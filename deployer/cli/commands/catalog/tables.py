"""`deployer catalog tables`: the tables that clients of the catalog can read, with their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.catalog.entries import CatalogEntry, Entries


def tables(
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the tables that clients of the catalog can read: columns, index columns, rows and URL.

    Tables of the instance, and external ones, whose data the catalog never deletes. A table that cannot be read is
    listed with the reason, and the exit code is 1.
    """
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.catalog.entries import Entries
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.errors import DeployerError
    from deployer.state import open_store

    address = root_of(root, project, stack, specs)
    found: list[dict[str, Any]] = []
    failed: list[DeployerError] = []
    with closing(open_store(address)) as store:
        entries = Entries(store, address)
        for entry in entries.all():
            if not (entry.table or entry.external):
                continue
            try:
                found.append(_document(entries, entry))
            except DeployerError as failure:
                failed.append(type(failure)(failure.what, where=entry.name, remedy=failure.remedy))
    if as_json:
        print_json({"tables": found, "unreadable": [each.document() for each in failed]})
        return 1 if failed else 0
    if not found and not failed:
        note("there are no tables; `deployer up` creates those that are declared")
    if found:
        shown = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("table", "of", "index"):
            shown.add_column(name)
        for name in ("columns", "rows"):
            shown.add_column(name, justify="right")
        shown.add_column("URL")
        for each in found:
            sizes = (f"{len(each['columns']):,}", f"{each['rows']:,}")
            shown.add_row(each["name"], each["of"], ", ".join(each["index"]) or "–", *sizes, each["url"])
        stdout().print(shown)
    for each_failed in failed:
        note(str(each_failed))
    return 1 if failed else 0


def _document(entries: Entries, entry: CatalogEntry) -> dict[str, Any]:
    from deployer.catalog.batches import is_index

    rows = entries.rows(entry)
    schema = rows.schema()
    columns = [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema]
    return {
        "id": entry.entry_id.hex(),
        "name": entry.name,
        "of": "external" if entry.external else "instance",
        "url": entry.url,
        "rows": rows.count(),
        "columns": columns,
        "index": [field.name for field in schema if is_index(field)],
    }
