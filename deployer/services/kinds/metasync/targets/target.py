"""The interface of a target of METASYNC: a catalog whose entries of tables are found, written and removed one by
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
_MOST_PARTS = 100  #: the most parts of a fingerprint that are read


class TargetFailed(DeployerError):
    """The error that a call of a catalog failed."""

    kind = "TargetFailed"


@dataclass(frozen=True, slots=True)
class Found:
    """An entry of a catalog. `properties` is None where the catalog has none. `raw` is the entry in the catalog's own
    form."""

    location: str
    parts: Parts
    properties: Mapping[str, str] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table_id(self) -> str:
        """The id of the table that the entry names; empty where it names none."""
        return (self.properties or {}).get(TABLE_ID, "")

    @property
    def root(self) -> str:
        """The root of the lake that the entry names; empty where it names none."""
        return (self.properties or {}).get(ROOT, "")

    @property
    def version(self) -> int | None:
        """The version of the dataset in the entry; None where the entry has none."""
        version = self.parts.get(VERSION, "")
        return int(version) if version.isdecimal() else None

    def altered(self, recorded: str | None) -> tuple[str, ...]:
        """Returns the names of the parts that others changed after publication. `recorded` is the published
        location."""
        then = _fingerprints(self.properties or {})
        if then:
            now = fingerprints(self.parts)
            return tuple(sorted(part for part in {*then, *now} if then.get(part) != now.get(part)))
        moved = ("location",) if recorded is not None and not is_same_place(self.location, recorded) else ()
        return moved if self.properties is None else (*moved, "properties")

    def says(self, wanted: Parts) -> bool:
        """Returns whether the entry has all wanted parts that the catalog can store."""
        if self.properties is None:
            return is_same_place(self.location, wanted["location"])
        return dict(self.parts) == dict(wanted)


class Target(Protocol):
    """A catalog. Its calls raise DeployerError, without credentials in the message, and can be repeated."""

    @property
    def title(self) -> str:
        """The name of the catalog for people."""

    @property
    def catalog(self) -> Catalog:
        """The identity of the catalog, independent of its declaration."""

    def place(self, database: str, name: str) -> Place:
        """Returns the place of the table with this name."""

    def wanted(self, publication: Publication) -> Parts:
        """Returns the parts of the entry to publish; `location` is one of them."""

    def find(self, place: Place) -> Found | None:
        """Returns the entry at a place, whichever program made it; None where there is none."""

    def put(self, place: Place, publication: Publication, found: Found | None) -> None:
        """Writes the entry in place of `found`. Raises where `found` has changed meanwhile."""

    def remove(self, place: Place, found: Found) -> None:
        """Removes the entry `found`; the table stays."""


def is_same_catalog(one: Catalog, other: Catalog) -> bool:
    """Returns whether the two may be the same catalog. The declaration of an account's own catalog may omit its id."""
    return len(one) == len(other) and all(a == b or not (a and b) for a, b in zip(one, other, strict=True))


def fingerprints(parts: Parts) -> dict[str, str]:
    """Returns a short hash of each part."""
    return {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in sorted(parts.items())}


def with_fingerprint(properties: Mapping[str, str], parts: Parts) -> dict[str, str]:
    """Returns the properties with fingerprints of the published parts. They reveal the changes of others."""
    return {**properties, FINGERPRINT: json.dumps(fingerprints(parts))}


def _fingerprints(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the fingerprints of an entry; empty where it has no readable ones."""
    try:
        found = json.loads(properties.get(FINGERPRINT, ""))
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    # The names are escaped and limited: writers of the catalog choose them, and the record of a run has them.
    return {plain(str(name)): str(value) for name, value in list(found.items())[:_MOST_PARTS]}
