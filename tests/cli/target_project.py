"""A project for tests of `--target`, and what has to stay as it is of the resources that are no targets."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from deployer.state import open_reader
from tests.cli.test_review_plans import edit
from tests.projects import INSTANCE, table

SPECS = {
    "demo.yaml": INSTANCE,
    "flights.yaml": table("flights", "delay: int32"),
    "planes.yaml": table("planes"),
    "airports.yaml": table("airports", database="geo"),
    "lakes.yaml": table("lakes", database="geo"),
}

#: What the specs change once `change_all` has edited them, by the actions of a plan.
ALL = {
    "instance/demo": "update",
    "table/air.flights": "update",
    "table/air.jets": "update",
    "table/geo.airports": "delete",
    "table/geo.cities": "create",
    "table/geo.lakes": "update",
    "table/geo.towns": "create",
}


def change_all(project: Path) -> None:
    """Every table of the specs and the instance differ from what is applied."""
    specs = project / "specs"
    edit(specs / "demo.yaml", "engine:", "tags: {owner: data}\nengine:")
    edit(specs / "flights.yaml", "row_keys", "  - {name: gate, type: string}\nrow_keys")
    (specs / "planes.yaml").write_text(table("jets", more="renamed_from: air.planes\n"))
    (specs / "airports.yaml").unlink()
    edit(specs / "lakes.yaml", "row_keys", "description: Waters.\nrow_keys")
    for name in ("cities", "towns"):
        (specs / f"{name}.yaml").write_text(table(name, database="geo"))


def actions(plan: Mapping[str, Any]) -> dict[str, str]:
    """What a plan does to which resource."""
    assert not plan["foreign"]
    return {each["address"]: each["action"] for each in plan["resources"]}


def ids(root: Path) -> dict[str, str]:
    """The addresses of the state store's tables, by id."""
    with closing(open_reader(str(root))) as store:
        return {table_id: entry.address for table_id, entry in store.instance().tables.items()}


def untouched(project: Path, *targets: str) -> dict[str, Any]:
    """All that is kept of resources that are no targets: Pulumi's state, the tables' logs and files, to the byte.

    The instance's log holds the names of all tables; of it only the instance's own properties count.
    """
    root = project / "lakes" / "demo"
    known = ids(root)
    checkpoint = json.loads((project / ".pulumi" / "stacks" / "lakes" / "dev.json").read_text())
    kept: dict[str, Any] = {}
    for resource in checkpoint["checkpoint"]["latest"]["resources"]:
        kind, name = resource["urn"].split("::")[2:]
        address = f"{kind.rpartition(':')[2].lower()}/{name}"
        if address not in targets:
            kept[f"pulumi {address}"] = resource
    with closing(sqlite3.connect(root / "_state" / "state.db")) as file:
        for log, version, body in file.execute("SELECT log, version, body FROM entries"):
            if log in known and known[log] not in targets:
                kept[f"log {log} {version}"] = body
    with closing(open_reader(str(root))) as store:
        if "instance/demo" not in targets:
            kept["instance"] = dict(store.instance().properties)
        for entry in store.instance().tables.values():
            if entry.address not in targets:
                kept[f"entry {entry.address}"] = entry
                for path in sorted((root / entry.location).rglob("*")):
                    if path.is_file():
                        kept[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return kept
