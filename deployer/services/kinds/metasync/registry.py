"""The registry of published tables in the instance's log, which finds entries whose table is gone.

A property of the instance for each table that was published. It is written before an entry is made and after it is
removed, and only then: what entries say is in the catalogs.
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

PREFIX = "published/"  #: of the properties' names; a table's id follows


@dataclass(frozen=True, slots=True)
class Record:
    """An entry that was published: the target as it was declared, which catalog that is, the place in it, and where
    the table was."""

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
        """Raises Corrupt for what METASYNC did not write. The target itself is checked when it is opened."""
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
    """Returns the entries of a table, of its former names too."""
    found: Any = instance.properties.get(PREFIX + table_id, [])
    if not isinstance(found, list | tuple):
        return [Record.of_json(None)]
    return [Record.of_json(each) for each in found]


def published_tables(instance: InstanceState) -> set[str]:
    """Returns the ids of all tables with entries, deleted tables included."""
    return {name.removeprefix(PREFIX) for name in instance.properties if name.startswith(PREFIX)}


def remember(store: StateStore, table_id: str, records: list[Record]) -> None:
    """Makes these the entries of a table; writes nothing when they are so already.

    Only the run of a table's own METASYNC changes its records, and of a table that is gone they are only removed.
    """
    if records == records_of(store.instance(), table_id):
        return
    value: JSON = [each.as_json() for each in records]
    store.commit(INSTANCE_LOG, [SetInstanceProperties({PREFIX + table_id: value or None})])
