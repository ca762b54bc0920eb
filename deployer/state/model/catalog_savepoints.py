"""Savepoints of the catalog. The catalog's records of datasets and external tables are properties of the instance.

The records name the versions of the datasets' own tables, so a savepoint describes each dataset completely.
`deployer.catalog` defines the records. This module treats them as JSON, and uses only `name`, `blueprints`, `sources`,
`status`, `dataset_id` and `created_at`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.errors import Corrupt
from deployer.platform.files.json_values import JSON
from deployer.platform.storage.envelope import FORGED
from deployer.state.model.declared_properties import (
    CATALOG_ENTRY,
    CATALOG_SAVEPOINT,
    CREATING,
    DATASET_NAME,
    DEFAULT_DATABASE,
    RECORDINGS,
)
from deployer.state.model.entities import InstanceState
from deployer.state.model.times import TIME

_PREFIXES = (CATALOG_ENTRY, RECORDINGS, DATASET_NAME)

Records = Mapping[str, JSON]  #: records by the name of their property


@dataclass(frozen=True, slots=True)
class CatalogSavepoint:
    """The catalog's records at one moment. Times are milliseconds since 1970."""

    name: str
    at: int = field(metadata=TIME)
    expires_at: int | None = field(metadata=TIME)
    author: str
    note: str
    records: Records

    def as_json(self) -> dict[str, JSON]:
        return {
            "at": self.at,
            "expires_at": self.expires_at,
            "author": self.author,
            "note": self.note,
            "records": dict(self.records),
        }


def catalog_records(instance: InstanceState) -> Records:
    """Returns the records of datasets and external tables, except tables that are being created."""
    return {name: value for name, value in instance.properties.items() if _is_record(name, value)}


def catalog_savepoints(instance: InstanceState) -> dict[str, CatalogSavepoint]:
    """Returns the savepoints of the catalog, by name. Raises Corrupt for an invalid one."""
    found = {}
    for key, value in instance.properties.items():
        if key.startswith(CATALOG_SAVEPOINT):
            name = key.removeprefix(CATALOG_SAVEPOINT)
            found[name] = _savepoint(name, value)
    return found


def restored_records(instance: InstanceState, saved: Records, version: int) -> dict[str, JSON]:
    """Returns the records that a restore, committed as `version` of the log, makes from the saved records.

    A dataset keeps the higher number of its sources, so that a number of a source is never used twice. `restored` is
    set to `version`, so that caches detect a restored dataset. A record is left out if a table has its name.
    """
    found, left_out = dict[str, JSON](), set[JSON]()
    for key, value in saved.items():
        if not isinstance(value, Mapping):
            continue
        if taken_by_table(instance, value.get("name")):
            left_out |= {key.removeprefix(RECORDINGS), value.get("blueprints")}
        elif key.startswith(RECORDINGS):
            now = instance.properties.get(key)
            counts = [each.get("sources") for each in (value, now) if isinstance(each, Mapping)]
            sources = max(each for each in (0, *counts) if isinstance(each, int))
            found[key] = {**value, "sources": sources, "restored": version}
        else:
            found[key] = value
    found |= {key: value for key, value in saved.items() if key.startswith(DATASET_NAME)}
    return {
        key: value
        for key, value in found.items()
        if key.removeprefix(RECORDINGS) not in left_out and not (isinstance(value, str) and value in left_out)
    }


def log_of_dataset(dataset_id: str, created_at: int) -> str:
    """Returns the name of the log of the runs that maintain a dataset.

    A dataset that is created again under the same id has a log with another name.
    """
    return f"{dataset_id}-{created_at}"


def logs_of_datasets(instance: InstanceState) -> set[str]:
    """Returns the names of the logs that datasets may have, including the datasets of savepoints."""
    saved = (each.records for each in catalog_savepoints(instance).values())
    found = set()
    for records in (catalog_records(instance), *saved):
        for key, value in records.items():
            match value:
                case {"dataset_id": str(dataset_id), "created_at": int(created_at)} if key.startswith(RECORDINGS):
                    found.add(log_of_dataset(dataset_id, created_at))
    return found


def taken_by_table(instance: InstanceState, name: JSON) -> bool:
    """Returns whether a table of the instance has this name, which is that of a record of the catalog."""
    if not isinstance(name, str):
        return False
    return instance.by_name(name if "." in name else f"{DEFAULT_DATABASE}.{name}") is not None


def _is_record(name: str, value: JSON) -> bool:
    is_creating = isinstance(value, Mapping) and value.get("status") == CREATING
    return name.startswith(_PREFIXES) and not (name.startswith(CATALOG_ENTRY) and is_creating)


def _savepoint(name: str, form: JSON) -> CatalogSavepoint:
    match form:
        case {
            "at": int(at),
            "expires_at": int() | None as expires_at,
            "author": str(author),
            "note": str(note),
            "records": Mapping() as records,
        } if all(key.startswith(_PREFIXES) for key in records):
            return CatalogSavepoint(name, at, expires_at, author, note, records)
    raise Corrupt("a savepoint of the catalog in the instance's log is not valid", where="the instance", remedy=FORGED)
