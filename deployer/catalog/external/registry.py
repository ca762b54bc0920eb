"""External tables as the instance's log has them: one property of the instance for each, under the entry's name.

Names are unique over all entries: a transaction that gives an entry a name requires that no property and no table of
the instance has it.
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

KIND = "external table"  #: what properties of these entries have as their `kind`
LONGEST_NAME = 256  #: characters
_ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class ExternalTable:
    """An entry. `entry_id` has 16 bytes; times are milliseconds since 1970.

    Until its dataset is written, it is `creating`: other entries may take its name, and clients do not see it.
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
        """Raises Corrupt for what is not the form of an entry."""
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
    """Returns an entry that nothing knows yet. Its id begins with the time in nanoseconds, as Rerun's ids do."""
    entry_id = (at * 1_000_000).to_bytes(8, "big") + secrets.token_bytes(8)
    return ExternalTable(entry_id, name, url, at, at, creating)


def external_tables(instance: InstanceState) -> Iterator[ExternalTable]:
    """Yields all external tables, those that are being created too. Raises Corrupt."""
    for name, value in instance.properties.items():
        if name.startswith(CATALOG_ENTRY) and isinstance(value, Mapping) and value.get("kind") == KIND:
            yield ExternalTable.of_json(value)


def full_name(name: str) -> str:
    """Returns the name that identifies an entry: one without a database is in the default one."""
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
    """Raises InvalidInput for what cannot be the name of an entry."""
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
    """Makes the entry one of the catalog, or `before` this one. Raises Conflict where the name is taken, and where
    `before` was changed meanwhile."""
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
    """Removes the entry; its data stays. Raises Conflict where it was changed meanwhile."""
    key = _property(entry.name)
    store.commit(INSTANCE_LOG, [SetInstanceProperties({key: None})], [PropertiesAre({key: entry.as_json()})])


def activated(entry: ExternalTable) -> ExternalTable:
    """Returns the entry once its dataset is there."""
    return replace(entry, creating=False)


def renamed(entry: ExternalTable, name: str, at: int) -> ExternalTable:
    """Returns the entry under another name."""
    return replace(entry, name=name, updated_at=max(at, entry.updated_at))


def _property(name: str) -> str:
    return f"{CATALOG_ENTRY}{full_name(name)}"


def _dataset_properties(name: str) -> set[str]:
    """Returns the properties of datasets of recordings with that name."""
    names = {name, full_name(name), name.removeprefix(f"{DEFAULT_DATABASE}.")}
    return {f"{DATASET_NAME}{each}" for each in names}


def free_of_entries(instance: InstanceState, name: str) -> Sequence[InstanceRequirement]:
    """Returns the requirements that no other entry gets the name of a dataset meanwhile, whatever the name."""
    key = _property(name)
    held = None if is_taken(instance, name) else instance.properties.get(key)  # one that is being created
    others = dict.fromkeys(_dataset_properties(name) - {f"{DATASET_NAME}{name}"})
    return [PropertiesAre({key: held, **others}), *free_of_tables(name)]


def free_of_tables(name: str) -> Sequence[InstanceRequirement]:
    """Returns the requirement that no table of the instance, and no other entry, has the name, where a table can."""
    database, _, bare = full_name(name).rpartition(".")
    return [] if fault_of_name(database) or fault_of_name(bare) else [NameFree(database, bare)]
