"""The entry of a table in catalogs: its location, its content and its owner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from deployer.specs.serialized.specs import key_to_json
from deployer.tables.open_table import ReadTable

if TYPE_CHECKING:
    from deployer.specs.model import KeyValue

ROOT, TABLE_ID, FINGERPRINT = "deployer.root", "deployer.table_id", "deployer.fingerprint"
VERSION = "deployer.version"
COMMENT = "comment"  #: the property in which Spark, Trino and Hive look for a table's description
MOST_SPLIT_POINTS = 32_000  #: the most characters of the split points; catalogs limit the length of a value


@dataclass(frozen=True, slots=True)
class Publication:
    """A table as it is published. `root` and `location` are URIs; `version` is the version of the dataset."""

    root: str
    table_id: str
    database: str
    name: str
    location: str
    dataset: int
    version: int
    schema: pa.Schema
    description: str
    row_keys: tuple[str, ...]
    sort_keys: tuple[str, ...]
    split_points: tuple[tuple[KeyValue, ...], ...]

    @staticmethod
    def of(table: ReadTable) -> Publication:
        entry, state = table.entry, table.state
        return Publication(
            root=uri_of(table.root),
            table_id=entry.table_id,
            database=entry.database,
            name=entry.name,
            location=uri_of(table.location),
            dataset=entry.dataset,
            version=state.lance_version,
            schema=table.schema,
            description=state.properties.description,
            row_keys=table.row_keys,
            sort_keys=table.sort_keys,
            split_points=tuple(table.splits),
        )

    def properties(self) -> dict[str, str]:
        """Returns the properties of entries, as texts. They include the lake and the table that an entry belongs to."""
        found = {ROOT: self.root, TABLE_ID: self.table_id, VERSION: str(self.version)}
        found["deployer.dataset"] = str(self.dataset)
        if self.description:
            found[COMMENT] = self.description
        if self.row_keys:
            found["deployer.row_keys"] = json.dumps(self.row_keys)
            found["deployer.partitions"] = self._partitions()
        if self.sort_keys:
            found["deployer.sort_keys"] = json.dumps(self.sort_keys)
        return found

    def _partitions(self) -> str:
        """Returns the number of leaves and their split points, in JSON; only the number where the text would be too
        long."""
        count = {"count": len(self.split_points) + 1}
        whole = json.dumps({**count, "split_points": [key_to_json(point) for point in self.split_points]})
        return whole if len(whole) <= MOST_SPLIT_POINTS else json.dumps(count)


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the properties that deployer writes; others may add their own."""
    return {name: value for name, value in properties.items() if name == COMMENT or name.startswith("deployer.")}


def uri_of(place: str) -> str:
    """Returns the URI of a path or URI. All spellings of one place have the same URI."""
    plain = plain_place(place)
    return plain if "://" in plain else Path(plain).as_uri()


def is_same_place(one: str, other: str) -> bool:
    """Returns whether two paths or URIs name the same place, whatever their spelling."""
    return plain_place(one) == plain_place(other)


def relative_to(place: str, root: str) -> str | None:
    """Returns the path of `place` relative to `root`, both paths or URIs; None where `place` is not below `root`."""
    inner, outer = plain_place(place), plain_place(root).rstrip("/") + "/"
    return inner.removeprefix(outer) if inner.startswith(outer) else None


def plain_place(place: str) -> str:
    """Returns a URI without a slash at its end, or the absolute path of a place on this machine."""
    if place.startswith("file:"):
        place = unquote("/" + place.removeprefix("file:").lstrip("/"))
    return place.rstrip("/") if "://" in place else str(Path(place).resolve())
