"""Changes of a lake that somebody makes by hand: commands of deployer, the client's calls, and plain Lance."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from deployer.state import open_reader, open_store
from deployer.state.log.updates import SetTableProperties, SetTableStatus
from deployer.state.model.entities import INSTANCE_LOG, TableEntry
from tests.cli.console import ran

#: What plain Lance raises for a change that the table of that moment does not take.
LANCE_FAILS = (OSError, ValueError, RuntimeError, KeyError, TypeError, pa.ArrowException)

#: Makes a change of the live table with that number, in the order of names; which of its names, by the second number.
ManualChange = Callable[[Path, TableEntry, int], None]


def live_tables(root: Path) -> list[TableEntry]:
    """The tables of the lake by name, those apart that are being created or deleted."""
    with closing(open_reader(str(root))) as store:
        found = [entry for entry in store.instance().tables.values() if entry.status == "active"]
    return sorted(found, key=lambda entry: entry.full_name)


def dataset(root: Path, entry: TableEntry) -> Any:
    return lance.dataset(str(root / entry.location))


def set_properties(**changes: Any) -> ManualChange:
    def change(root: Path, entry: TableEntry, _: int) -> None:
        with closing(open_store(str(root))) as store:
            store.commit(entry.table_id, [SetTableProperties(changes)], author="ann@night")

    return change


def command(*arguments: str) -> ManualChange:
    """A command of deployer; `{table}` is the table's name, `{choice}` another number. It may refuse."""

    def change(_: Path, entry: TableEntry, choice: int) -> None:
        ran(*(each.format(table=entry.full_name, choice=choice % 3) for each in arguments))

    return change


def by_lance(act: Callable[[Any, list[str], int], Any]) -> ManualChange:
    """What plain Lance does to the dataset, its columns and a number; Lance may refuse it."""

    def change(root: Path, entry: TableEntry, choice: int) -> None:
        found = dataset(root, entry)
        with suppress(*LANCE_FAILS):
            act(found, found.schema.names, choice)

    return change


def renamed_to(names: tuple[str, ...]) -> ManualChange:
    def change(_: Path, entry: TableEntry, choice: int) -> None:
        ran("table", "rename", entry.full_name, names[choice % len(names)])

    return change


def forgotten(root: Path, entry: TableEntry, _: int) -> None:
    """Pulumi's state has the table no more."""
    [file] = (root.parent.parent / ".pulumi" / "stacks").rglob("dev.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    latest = document["checkpoint"]["latest"]
    latest["resources"] = [each for each in latest["resources"] if each.get("id") != entry.table_id]
    file.write_text(json.dumps(document), encoding="utf-8")


def deletion_cut_off(root: Path, entry: TableEntry, _: int) -> None:
    """A deletion was begun, and nothing is removed yet."""
    with closing(open_store(str(root))) as store:
        store.commit(INSTANCE_LOG, [SetTableStatus(entry.table_id, "deleting")])


def _pick(names: list[str], choice: int) -> str:
    return names[choice % len(names)]


def _drop_index(found: Any, _: list[str], choice: int) -> None:
    found.drop_index(_pick(sorted(each.name for each in found.describe_indices()) or ["none"], choice))


def _other_type(found: Any, names: list[str], choice: int) -> None:
    name = _pick(names, choice)
    wider = {pa.int32(): pa.int64(), pa.string(): pa.large_string()}
    found.alter_columns({"path": name, "data_type": wider.get(found.schema.field(name).type, pa.string())})


CHANGES: Mapping[str, ManualChange] = {
    "renamed": renamed_to(("air.x", "air.y", "air.flights", "air.planes")),
    "moved to another database": command("table", "rename", "{table}", "sky.t{choice}"),
    "offline": command("table", "offline", "{table}"),
    "online": command("table", "online", "{table}"),
    "unprotected": set_properties(deletion_protection=False),
    "described": set_properties(description="By hand.", tags={"by": "hand"}),
    "split": command("table", "split", "{table}", "--max-rows", "2"),
    "emptied": command("table", "reinitialise", "{table}", "--force", "--delete-partitions"),
    "deleted": command("table", "delete", "{table}", "--force"),
    "deletion cut off": deletion_cut_off,
    "service attached": command("service", "create", "{table}", "cluster", "--option", "curve=zorder"),
    "service altered": command("service", "alter", "{table}", "compact", "--option", "target_file_bytes=64MB"),
    "service paused": command("service", "pause", "{table}", "compact"),
    "service detached": command("service", "delete", "{table}", "compact"),
    "restored": command("restore", "{table}", "--at", "{choice}", "--yes", "--no-savepoint"),
    "another table": command("table", "add", "air.new{choice}", "--column", "id:int64"),
    "forgotten by Pulumi": forgotten,
    "column added": by_lance(lambda found, _, choice: found.add_columns(pa.field(f"more{choice % 3}", pa.string()))),
    "column dropped": by_lance(lambda found, names, choice: found.drop_columns([_pick(names, choice)])),
    "column renamed": by_lance(
        lambda found, names, choice: found.alter_columns({"path": _pick(names, choice), "name": f"other{choice % 3}"})
    ),
    "column of another type": by_lance(_other_type),
    "column nullable": by_lance(
        lambda found, names, choice: found.alter_columns({"path": _pick(names, choice), "nullable": True})
    ),
    "index built": by_lance(
        lambda found, names, choice: found.create_scalar_index(_pick(names, choice), "BTREE", name=f"by{choice % 2}")
    ),
    "index rebuilt": by_lance(
        lambda found, names, _: found.create_scalar_index("delay", "BITMAP", name="by_delay", replace=True)
    ),
    "index dropped": by_lance(_drop_index),
    "rows appended": by_lance(
        lambda found, _, choice: lance.write_dataset(found.to_table(limit=1 + choice), found.uri, mode="append")
    ),
    "rows deleted": by_lance(lambda found, _, __: found.delete("true")),
    "compacted": by_lance(lambda found, _, __: found.optimize.compact_files()),
}
