"""Pulumi URNs of a lake's resources. Form: `urn:pulumi:STACK::PROJECT::[PARENT$]TYPE::NAME`."""

from __future__ import annotations

import re

INSTANCE_TYPE = "lake:index:Instance"
TABLE_TYPE = "lake:index:Table"
DATASET_TYPE = "lake:index:Dataset"

_PROVIDERS = "pulumi:providers:"
_GROUPS = ("pulumi:pulumi:Stack", "deployer:")
_ADDRESS_KIND = {INSTANCE_TYPE: "instance", TABLE_TYPE: "table", DATASET_TYPE: "dataset"}


_URN = re.compile(r"urn:pulumi:[^\s:]+::[^\s:]+::[^\s]+?::[^\s:;,]+")


def without_urns(text: str) -> str:
    """Returns `text` with addresses in place of the URNs of a lake's resources, and types and names in place of other
    URNs."""
    return _URN.sub(lambda found: address_of(found[0]) or f"{type_of(found[0])} {found[0].split('::', 3)[3]}", text)


def urn_of(project: str, stack: str, address: str) -> str:
    """Returns the URN that a lake's resource has without a parent, from its address such as `table/nyc.flights`."""
    kind, _, name = address.partition("/")
    resource_type = next(type_ for type_, of_kind in _ADDRESS_KIND.items() if of_kind == kind)
    return f"urn:pulumi:{stack}::{project}::{resource_type}::{name}"


def owner_of(urn: str) -> str:
    """Returns `project/stack`, the form in which the state store records the owner of a table."""
    prefix, project, _ = urn.split("::", 2)
    return f"{project}/{prefix.rsplit(':', 1)[1]}"


def type_of(urn: str) -> str:
    """Returns the resource's own type, without its parents'."""
    return urn.split("::", 3)[2].rsplit("$", 1)[-1]


def address_of(urn: str) -> str | None:
    """Returns the address of a lake's resource such as `table/nyc.flights`; None for resources of other providers."""
    kind = _ADDRESS_KIND.get(type_of(urn))
    return f"{kind}/{urn.split('::', 3)[3]}" if kind else None


def is_in_no_cloud(type_: str, *, custom: bool) -> bool:
    """Returns whether a resource is a provider, or a component of this project's own programs, which a plan does not
    show.

    A program may give a resource any type. A resource with a provider (`custom`) is not a component.
    """
    return type_.startswith(_PROVIDERS if custom else _GROUPS)
