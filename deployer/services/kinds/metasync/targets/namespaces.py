"""Entries of Lance namespaces: a location and, where the namespace stores them, properties."""

from __future__ import annotations

from collections.abc import Mapping

from deployer.services.kinds.metasync.entry import FINGERPRINT, VERSION, Publication, own_properties
from deployer.services.kinds.metasync.targets.target import Found, Parts, with_fingerprint


def namespace_parts(location: str, properties: Mapping[str, str]) -> Parts:
    """Returns the location and each of deployer's properties as separate parts."""
    own = own_properties(properties)
    own.pop(FINGERPRINT, None)
    return {"location": location, **own}


def found_entry(location: str, properties: Mapping[str, str] | None) -> Found:
    """Returns the entry with this location and these properties."""
    return Found(location, namespace_parts(location, properties or {}), properties)


def new_properties(parts: Parts, found: Found | None) -> dict[str, str]:
    """Returns the properties of an entry with these parts: deployer's own, and those that others added to `found`."""
    own = {name: text for name, text in parts.items() if name != "location"}
    theirs = dict(found.properties or {}) if found is not None else {}
    kept = {name: value for name, value in theirs.items() if name not in own_properties(theirs)}
    return with_fingerprint({**kept, **own}, parts)


def namespace_wanted(publication: Publication, location: str, *, with_version: bool) -> Parts:
    """Returns the parts of an entry. Without `with_version` they have no version; readers take it from the dataset."""
    properties = publication.properties()
    if not with_version:
        del properties[VERSION]
    return namespace_parts(location, properties)
