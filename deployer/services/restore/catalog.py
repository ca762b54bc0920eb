"""The changes of the catalog that a restore would undo: its datasets of recordings and its entries of external tables.

Recordings and the data of external tables do not belong to the instance, so a restore does not change them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from deployer.errors import Conflict, Refused
from deployer.state.log.catalog_updates import CatalogRestored
from deployer.state.model.catalog_savepoints import (
    Records,
    catalog_records,
    catalog_savepoints,
    taken_by_table,
)
from deployer.state.model.declared_properties import DATASET_NAME
from deployer.state.model.entities import INSTANCE_LOG, JSON
from deployer.state.store import StateStore

_OF_RESTORES = ("sources", "restored")  #: the fields in which a restored record differs from the saved one


@dataclass(frozen=True, slots=True)
class CatalogUndoing:
    """The changes that a restore of the savepoint `name` would undo.

    `removed`, `back` and `changed` name the entries that the restore would remove, bring back or change. `base` is a
    hash of the catalog at the time of the preview.
    """

    name: str
    base: str
    removed: tuple[str, ...]
    back: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        return not (self.removed or self.back or self.changed)


def preview_catalog(store: StateStore, name: str) -> CatalogUndoing | None:
    """Returns the changes of the catalog that a restore would undo; None where the catalog has no such savepoint.

    Raises Refused where a table of the instance now has the name of an entry of the savepoint.
    """
    instance = store.instance()
    savepoint = catalog_savepoints(instance).get(name)
    if savepoint is None:
        return None
    taken = sorted(each for each in _names(savepoint.records).values() if taken_by_table(instance, each))
    if taken:
        raise Refused(
            f"savepoint {name} has catalog entries whose names now belong to tables",
            where=", ".join(taken),
            remedy="rename these tables, or leave the catalog out with --table",
        )
    now, then = catalog_records(instance), savepoint.records
    names_now, names_then = _names(now), _names(then)
    return CatalogUndoing(
        name,
        _hash(now),
        tuple(sorted(names_now[key] for key in names_now.keys() - names_then.keys())),
        tuple(sorted(names_then[key] for key in names_then.keys() - names_now.keys())),
        tuple(
            sorted(
                names_then[key]
                for key in names_then.keys() & names_now.keys()
                if _content(now[key]) != _content(then[key])
            )
        ),
    )


def require_catalog(store: StateStore, undoing: CatalogUndoing, *, force: bool) -> None:
    """Raises Conflict where the savepoint was removed since the preview, or where the catalog was changed since, unless
    `force`."""
    instance = store.instance()
    if undoing.name not in catalog_savepoints(instance):
        raise Conflict(
            f"savepoint {undoing.name} was removed meanwhile", where="the catalog", remedy="choose another one"
        )
    if _hash(catalog_records(instance)) != undoing.base and not force:
        raise Conflict(
            "the catalog was changed since the preview, and going back would undo that too; nothing was restored",
            where="the catalog",
            remedy="preview again, or give --force to undo it too",
        )


def restore_catalog(store: StateStore, undoing: CatalogUndoing, author: str | None = None) -> None:
    """Restores the catalog without tables. Raises Conflict where the savepoint was removed meanwhile."""
    store.commit(INSTANCE_LOG, [CatalogRestored(undoing.name)], author=author)


def _names(records: Records) -> dict[str, str]:
    """Returns the names of entries, by the names of their properties."""
    return {
        key: str(value["name"])
        for key, value in records.items()
        if not key.startswith(DATASET_NAME) and isinstance(value, Mapping) and "name" in value
    }


def _hash(records: Records) -> str:
    text = json.dumps(records, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _content(record: JSON) -> JSON:
    if not isinstance(record, Mapping):
        return record
    return {key: value for key, value in record.items() if key not in _OF_RESTORES}
