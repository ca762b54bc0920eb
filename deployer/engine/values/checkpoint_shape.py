"""The check whether a deployment has the shape of Pulumi's format: text from a backend or a file is untrusted.

A deployment comes from a JSON parser: its objects are dicts, for which a check is much faster than for other mappings.
Names of provider packages become names of programs that are started, so they must have the form of Pulumi's registry.
No URL is fetched. Fields of the format that this engine only preserves are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from deployer.engine.values.urns import PROVIDER_PREFIX, is_reference, is_urn, type_of
from deployer.platform.files.json_documents import NotADocument, read_document

# the same as in `deployer.engine.values.values`, which loads protobuf; most previews do not need it
SIG = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 -- Pulumi's signature of a secret, the same everywhere

PACKAGE = re.compile(r"[a-z][a-z0-9-]{0,99}")
_VERSION = re.compile(r"v?\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z.-]{1,100})?(?:\+[0-9A-Za-z.-]{1,100})?")
_TYPE = re.compile(r"[^\x00-\x20\x7f$]{1,500}")
_PENDING = ("creating", "updating", "deleting", "reading", "importing")

_FLAGS = (
    "custom",
    "delete",
    "protect",
    "taint",
    "external",
    "pendingReplacement",
    "retainOnDelete",
)
_TEXTS = ("id", "importID")
_URNS = ("parent", "deletedWith", "viewOf")
_URN_LISTS = ("dependencies", "aliases", "replaceWith")
_TEXT_LISTS = ("initErrors", "additionalSecretOutputs", "ignoreChanges", "replaceOnChanges")

Check = Callable[[Any], bool]


def fault_of_deployment(deployment: object) -> str | None:
    """Returns the first fault of a deployment, as text; None for a valid deployment, or for None."""
    if deployment is None:
        return None
    if not isinstance(deployment, dict):
        return "the deployment is not an object"
    return next(_faults(deployment), None)


def fault_of_resource(resource: object) -> str | None:
    """Returns the first fault of one resource; None for a valid one."""
    return next(_of_resource(resource), None)


def _faults(deployment: dict[str, Any]) -> Iterator[str]:
    for name in ("manifest", "metadata", "secrets_providers"):
        if not isinstance(deployment.get(name) or {}, dict):
            yield f"`{name}` is not an object"
    secrets = deployment.get("secrets_providers") or {}
    if not isinstance(secrets.get("type") or "", str) or not isinstance(secrets.get("state") or {}, dict):
        yield "`secrets_providers` has an unexpected structure"
    resources = deployment.get("resources") or []
    if not isinstance(resources, list):
        yield "`resources` is not a list"
        return
    places: dict[str, int] = {}
    for number, resource in enumerate(resources, 1):
        yield from (f"resource {number}: {fault}" for fault in _of_resource(resource))
        if not resource.get("delete") and places.setdefault(resource["urn"], number) != number:
            yield f"resource {number}: it has the URN of resource {places[resource['urn']]}"
    pending = deployment.get("pending_operations") or []
    if not isinstance(pending, list):
        yield "`pending_operations` is not a list"
        return
    for number, operation in enumerate(pending, 1):
        if not isinstance(operation, dict) or operation.get("type") not in _PENDING:
            yield f"pending operation {number} has an unexpected structure"
        else:
            yield from (f"pending operation {number}: {fault}" for fault in _of_resource(operation.get("resource")))


def _of_resource(resource: object) -> Iterator[str]:
    if not isinstance(resource, dict):
        yield "it is not an object"
        return
    urn = resource.get("urn")
    if not is_urn(urn):
        yield f"`urn` is {_shown(urn)}, which is not a URN"
        return
    own_type = type_of(str(urn))
    if not _TYPE.fullmatch(own_type) or resource.get("type", own_type) != own_type:
        yield f"`type` is {_shown(resource.get('type'))}, and its URN says {_shown(own_type)}"
    for name, fits, wanted in _CHECKS:
        value = resource.get(name)
        if value is not None and not fits(value):
            yield f"`{name}` is not {wanted}"
    if own_type.startswith(PROVIDER_PREFIX):
        yield from _of_provider(own_type.removeprefix(PROVIDER_PREFIX), resource.get("inputs"))
    for name in ("inputs", "outputs", "replacementTrigger"):
        yield from (f"`{name}`: {fault}" for fault in _of_values(resource.get(name)))


def _of_provider(package: str, inputs: object) -> Iterator[str]:
    if not PACKAGE.fullmatch(package):
        yield f"{_shown(package)} is not the name of a provider's package"
    version = inputs.get("version") if isinstance(inputs, dict) else None
    if version is not None and not (isinstance(version, str) and _VERSION.fullmatch(version)):
        yield f"`version` of the provider {package} is {_shown(version)}, which is not a version"


def _of_values(value: object) -> Iterator[str]:
    """Yields the faults of secrets within a value."""
    level = [value]
    while level:
        each = level.pop()
        if isinstance(each, list):
            level += each
        elif isinstance(each, dict):
            level += each.values()
            if each.get(SIG) == SECRET and not _is_secret(each):
                yield "a secret has neither its ciphertext nor its plaintext"


def _is_secret(value: dict[str, Any]) -> bool:
    if isinstance(value.get("ciphertext"), str):
        return True
    try:
        read_document(value["plaintext"])
    except (KeyError, TypeError, NotADocument):
        return False
    return True


def _is_list(value: object, fits: Check) -> bool:
    return isinstance(value, list) and all(map(fits, value))


def _is_property_dependencies(value: object) -> bool:
    return isinstance(value, dict) and all(each is None or _is_list(each, is_urn) for each in value.values())


def _is_timeouts(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in value.values()
    )


#: the check of each optional field, in the order in which faults are reported
_CHECKS: Sequence[tuple[str, Check, str]] = [
    (name, fits, wanted)
    for names, fits, wanted in (
        (_FLAGS, lambda value: isinstance(value, bool), "true or false"),
        (_TEXTS, lambda value: isinstance(value, str), "a text"),
        (_URNS, lambda value: value == "" or is_urn(value), "a URN"),
        (("provider",), lambda value: value == "" or is_reference(value), "a provider's URN and id"),
        (_URN_LISTS, lambda value: _is_list(value, is_urn), "a list of URNs"),
        (_TEXT_LISTS, lambda value: _is_list(value, lambda item: isinstance(item, str)), "a list of texts"),
        (("inputs", "outputs"), lambda value: isinstance(value, dict), "an object"),
        (("propertyDependencies",), _is_property_dependencies, "lists of URNs by property"),
        (("customTimeouts",), _is_timeouts, "numbers by kind of step"),
    )
    for name in names
]


def _shown(value: object) -> str:
    return repr(value[:100]) if isinstance(value, str) else "missing" if value is None else "not a text"
