"""`deployer catalog entries`: the entries that clients of the catalog see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.catalog.entries import CatalogEntry


def entries(
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the entries that clients of the catalog see, with their ids."""
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.catalog.entries import Entries
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.platform.system.clock import utc
    from deployer.state import open_store
    from deployer.state.model.times import iso_utc

    address = root_of(root, project, stack, specs)
    with closing(open_store(address)) as store:
        found = [
            (_kind(each), each)
            for each in Entries(store, address).all()
            if each.table or each.external or (each.dataset and each.dataset.kind == "dataset")
        ]
    if as_json:
        print_json(
            {
                "entries": [
                    {
                        "id": each.entry_id.hex(),
                        "name": each.name,
                        "kind": kind,
                        "url": each.url,
                        "created_at": iso_utc(each.created_at),
                        "updated_at": iso_utc(each.updated_at),
                    }
                    for kind, each in found
                ]
            }
        )
        return 0
    if not found:
        note("there are no entries; `deployer up` creates the tables that are declared")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("entry", "kind", "id", "updated (UTC)"):
        shown.add_column(name)
    for kind, each in found:
        shown.add_row(each.name, kind, each.entry_id.hex(), utc(each.updated_at))
    stdout().print(shown)
    return 0


def _kind(entry: CatalogEntry) -> str:
    return "table" if entry.dataset is None else "dataset"
