"""The registry of published tables in the instance's log. With it, METASYNC finds entries of deleted tables.

The instance has one property for each published table. METASYNC writes it before it makes an entry and after it removes
one, and only then. The content of entries is in the catalogs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.errors import Corrupt
from deployer.platform.files.json_values import JSON
from deployer.platform.storage.envelope import FORGED
from deployer.services.kinds.metasync.targets.target import Catalog, Place, is_same_catalog
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.entities import INSTANCE_LOG, InstanceState
from deployer.state.model.names import has_control_characters
from deployer.state.store import StateStore

PREFIX = "published/"  #: prefix of the properties' names; a table's id follows


@dataclass(frozen=True, slots=True)
class Record:
    """A published entry: the target as it was declared, the identity of its catalog, the place in the catalog, and the
    location of the table at that time."""

    target: Mapping[str, Any]
    catalog: Catalog
    place: Place
    location: str

    def is_at(self, catalog: Catalog, place: Place) -> bool:
        return self.place == place and is_same_catalog(self.catalog, catalog)

    def as_json(self) -> dict[str, JSON]:
        about: dict[str, JSON] = {"target": dict(self.target), "catalog": list(self.catalog)}
        return {**about, "place": list(self.place), "location": self.location}

    @staticmethod
    def of_json(form: Any) -> Record:
        """Reads a record. Raises Corrupt for a record that METASYNC did not write. The target itself is checked when it
        is opened."""
        match form:
            case {"target": Mapping() as target, "catalog": [*catalog], "place": [str(database), str(name)]} if (
                isinstance(location := form.get("location"), str)
                and isinstance(target.get("type"), str)
                and all(isinstance(part, str) for part in catalog)
                and not any(has_control_characters(part) for part in (database, name))
            ):
                return Record(target, tuple(map(str, catalog)), (database, name), location)
        raise Corrupt(
            "the instance's log has an invalid record of a published table", where="the instance", remedy=FORGED
        )


def records_of(instance: InstanceState, table_id: str) -> list[Record]:
    """Returns the entries of a table, including those of its former names."""
    found: Any = instance.properties.get(PREFIX + table_id, [])
    if not isinstance(found, list | tuple):
        return [Record.of_json(None)]
    return [Record.of_json(each) for each in found]


def published_tables(instance: InstanceState) -> set[str]:
    """Returns the ids of all tables with entries, deleted tables included."""
    return {name.removeprefix(PREFIX) for name in instance.properties if name.startswith(PREFIX)}


def remember(store: StateStore, table_id: str, records: list[Record]) -> None:
    """Stores these records as the entries of a table. Writes nothing where they have not changed.

    Only a run of METASYNC on the table changes the table's records. Runs on other tables only remove records of deleted
    tables.
    """
    if records == records_of(store.instance(), table_id):
        return
    value: JSON = [each.as_json() for each in records]
    store.commit(INSTANCE_LOG, [SetInstanceProperties({PREFIX + table_id: value or None})])
