"""External tables in the instance's log: the instance has one property for each table, under the entry's name.

Names are unique among all entries: a transaction that names an entry requires that no property and no table of the
instance has the name.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deployer.errors import Corrupt, InvalidInput
from deployer.platform.files.json_values import JSON
from deployer.platform.storage.envelope import FORGED
from deployer.state.log.requirements import InstanceRequirement, NameFree, PropertiesAre
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.declared_properties import (
    CATALOG_ENTRY,
    CREATING,
    DATASET_NAME,
    DEFAULT_DATABASE,
)
from deployer.state.model.entities import INSTANCE_LOG, InstanceState
from deployer.state.model.names import fault_of_name, has_control_characters
from deployer.state.store import StateStore

KIND = "external table"  #: the `kind` in the properties of these entries
LONGEST_NAME = 256  #: most characters of an entry's name
_ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class ExternalTable:
    """An entry for an external table. `entry_id` has 16 bytes; times are milliseconds since 1970.

    The entry is `creating` until its dataset is written: meanwhile other entries may take its name, and clients do not
    see the entry.
    """

    entry_id: bytes
    name: str
    url: str
    created_at: int
    updated_at: int
    creating: bool = False

    def as_json(self) -> dict[str, JSON]:
        return {
            "kind": KIND,
            "id": self.entry_id.hex(),
            "name": self.name,
            "url": self.url,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "status": CREATING if self.creating else _ACTIVE,
        }

    @staticmethod
    def of_json(form: Any) -> ExternalTable:
        """Returns the entry of a JSON value. Raises Corrupt for a value that is not a valid entry."""
        match form:
            case {
                "id": str(entry_id),
                "name": str(name),
                "url": str(url),
                "created_at": int(created_at),
                "updated_at": int(updated_at),
                "status": "active" | "creating" as status,
            } if len(entry_id) == 32 and fault_of_entry_name(name) is None:
                try:
                    return ExternalTable(bytes.fromhex(entry_id), name, url, created_at, updated_at, status == CREATING)
                except ValueError:
                    pass
        raise Corrupt("an entry of the catalog in the instance's log is not valid", where="the instance", remedy=FORGED)


def new_entry(name: str, url: str, at: int, *, creating: bool = False) -> ExternalTable:
    """Returns a new entry, which is not stored. `at` is in milliseconds since 1970. The entry's id begins with that
    time in nanoseconds, as Rerun's ids do."""
    entry_id = (at * 1_000_000).to_bytes(8, "big") + secrets.token_bytes(8)
    return ExternalTable(entry_id, name, url, at, at, creating)


def external_tables(instance: InstanceState) -> Iterator[ExternalTable]:
    """Yields all external tables, including those that are being created. Raises Corrupt for an invalid property."""
    for name, value in instance.properties.items():
        if name.startswith(CATALOG_ENTRY) and isinstance(value, Mapping) and value.get("kind") == KIND:
            yield ExternalTable.of_json(value)


def full_name(name: str) -> str:
    """Returns the name that identifies an entry: a name without a database is in the default database."""
    return name if "." in name else f"{DEFAULT_DATABASE}.{name}"


def fault_of_entry_name(name: str) -> str | None:
    """Returns what is wrong with the name of an external table, as the rest of a sentence; None when nothing is."""
    if not name or name.strip() != name:
        return "is empty, or begins or ends with a blank"
    if len(name) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} characters"
    if has_control_characters(name):
        return "holds control or format characters"
    if name.startswith("__"):
        return "begins with __, as hidden entries do"
    return None


def require_entry_name(name: str) -> None:
    """Raises InvalidInput for an invalid name of an entry."""
    if fault := fault_of_entry_name(name):
        raise InvalidInput(f"the entry name {name[:80]!r} {fault}", remedy="choose another name")


def is_taken(instance: InstanceState, name: str) -> bool:
    """Returns whether an entry has the name: a table of the instance, a dataset of recordings, or an external table
    that is not being created."""
    held = instance.properties.get(_property(name))
    creating = isinstance(held, Mapping) and held.get("status") == CREATING
    named = any(each in instance.properties for each in _dataset_properties(name))
    return named or instance.by_name(full_name(name)) is not None or (held is not None and not creating)


def put(store: StateStore, entry: ExternalTable, before: ExternalTable | None = None) -> None:
    """Stores the entry in the catalog; `before`, if given, is the entry that it replaces.

    Raises Conflict where another entry has the name, and where `before` was changed meanwhile.
    """
    key, instance = _property(entry.name), store.instance()
    changes: dict[str, JSON] = {key: entry.as_json()}
    held: dict[str, JSON] = {key: None if is_taken(instance, entry.name) else instance.properties.get(key)}
    held |= dict.fromkeys(_dataset_properties(entry.name))
    free = free_of_tables(entry.name)
    if before is not None:
        before_key = _property(before.name)
        changes = {before_key: None} | changes
        held[before_key] = before.as_json()
        free = [] if key == before_key and not before.creating else free
    store.commit(INSTANCE_LOG, [SetInstanceProperties(changes)], [PropertiesAre(held), *free])


def remove(store: StateStore, entry: ExternalTable) -> None:
    """Removes the entry; its data stays. Raises Conflict where the entry was changed meanwhile."""
    key = _property(entry.name)
    store.commit(INSTANCE_LOG, [SetInstanceProperties({key: None})], [PropertiesAre({key: entry.as_json()})])


def activated(entry: ExternalTable) -> ExternalTable:
    """Returns the entry without `creating`, for the time after its dataset is written."""
    return replace(entry, creating=False)


def renamed(entry: ExternalTable, name: str, at: int) -> ExternalTable:
    """Returns the entry with another name; `at` is the time of the change, in milliseconds since 1970."""
    return replace(entry, name=name, updated_at=max(at, entry.updated_at))


def _property(name: str) -> str:
    return f"{CATALOG_ENTRY}{full_name(name)}"


def _dataset_properties(name: str) -> set[str]:
    """Returns the names of the properties that datasets of recordings with that name have."""
    names = {name, full_name(name), name.removeprefix(f"{DEFAULT_DATABASE}.")}
    return {f"{DATASET_NAME}{each}" for each in names}


def free_of_entries(instance: InstanceState, name: str) -> Sequence[InstanceRequirement]:
    """Returns the requirements of a transaction that names a dataset: no other entry gets the name meanwhile. Any name
    is accepted."""
    key = _property(name)
    held = None if is_taken(instance, name) else instance.properties.get(key)  # an entry that is being created, or None
    others = dict.fromkeys(_dataset_properties(name) - {f"{DATASET_NAME}{name}"})
    return [PropertiesAre({key: held, **others}), *free_of_tables(name)]


def free_of_tables(name: str) -> Sequence[InstanceRequirement]:
    """Returns the requirement that no table of the instance has the name; no requirement where a table cannot have such
    a name."""
    database, _, bare = full_name(name).rpartition(".")
    return [] if fault_of_name(database) or fault_of_name(bare) else [NameFree(database, bare)]
