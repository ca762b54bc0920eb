"""The interface of a target of METASYNC: a catalog with places for tables, which are found, put and removed one by
one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from deployer.errors import DeployerError
from deployer.plan.render.escaping import plain
from deployer.services.kinds.metasync.entry import FINGERPRINT, ROOT, TABLE_ID, VERSION, Publication, is_same_place

Place = tuple[str, str]  #: database (or namespace) and name in the catalog
Catalog = tuple[str, ...]  #: the identity of a catalog: its type, then what distinguishes it; "" is unknown
Parts = Mapping[str, str]  #: the parts of an entry in a canonical form
_MOST_PARTS = 100  #: that a fingerprint names


class TargetFailed(DeployerError):
    """A catalog did not do what was asked of it."""

    kind = "TargetFailed"


@dataclass(frozen=True, slots=True)
class Found:
    """An entry as a catalog has it. `properties` is None where a catalog keeps none; `raw` is the catalog's own."""

    location: str
    parts: Parts
    properties: Mapping[str, str] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table_id(self) -> str:
        """The table that the entry names; empty when it names none."""
        return (self.properties or {}).get(TABLE_ID, "")

    @property
    def root(self) -> str:
        """The lake from which it says it was published."""
        return (self.properties or {}).get(ROOT, "")

    @property
    def version(self) -> int | None:
        """The version of the dataset in the entry."""
        version = self.parts.get(VERSION, "")
        return int(version) if version.isdecimal() else None

    def altered(self, recorded: str | None) -> tuple[str, ...]:
        """Returns the parts that others changed since it was published; `recorded` is the location that was
        published."""
        then = _fingerprints(self.properties or {})
        if then:
            now = fingerprints(self.parts)
            return tuple(sorted(part for part in {*then, *now} if then.get(part) != now.get(part)))
        moved = ("location",) if recorded is not None and not is_same_place(self.location, recorded) else ()
        return moved if self.properties is None else (*moved, "properties")

    def says(self, wanted: Parts) -> bool:
        """Returns whether it has all wanted parts that the catalog can keep."""
        if self.properties is None:
            return is_same_place(self.location, wanted["location"])
        return dict(self.parts) == dict(wanted)


class Target(Protocol):
    """A catalog. Its calls raise DeployerError without credentials in its message, and can be repeated."""

    @property
    def title(self) -> str:
        """The name that people read."""

    @property
    def catalog(self) -> Catalog:
        """The identity, independent of how it was declared."""

    def place(self, database: str, name: str) -> Place:
        """Returns the place of a table of that name."""

    def wanted(self, publication: Publication) -> Parts:
        """Returns the parts of the entry to publish; `location` is one of them."""

    def find(self, place: Place) -> Found | None:
        """Returns the entry at a place, made by any program."""

    def put(self, place: Place, publication: Publication, found: Found | None) -> None:
        """Writes the entry in place of `found`. Raises when `found` was changed meanwhile."""

    def remove(self, place: Place, found: Found) -> None:
        """Removes the entry `found`; the table stays."""


def is_same_catalog(one: Catalog, other: Catalog) -> bool:
    """Returns whether the two may be one: an account's own catalog may be declared with its id and without."""
    return len(one) == len(other) and all(a == b or not (a and b) for a, b in zip(one, other, strict=True))


def fingerprints(parts: Parts) -> dict[str, str]:
    """Returns a short hash of each part."""
    return {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in sorted(parts.items())}


def with_fingerprint(properties: Mapping[str, str], parts: Parts) -> dict[str, str]:
    """Returns the properties with fingerprints of what was published, by which changes of others are found."""
    return {**properties, FINGERPRINT: json.dumps(fingerprints(parts))}


def _fingerprints(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the fingerprints of an entry; empty where it has none that can be read."""
    try:
        found = json.loads(properties.get(FINGERPRINT, ""))
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    # names go into the record of a run, and writers of the catalog choose them
    return {plain(str(name)): str(value) for name, value in list(found.items())[:_MOST_PARTS]}
