"""One resource of a checkpoint: `apitype.ResourceV3` of Pulumi's deployment format, version 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: a function that encrypts or decrypts the secrets of a value at a place: the resource's URN, then the field
Transform = Callable[[Any, tuple[str | int, ...]], Any]


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource in the stack's state. `inputs` and `outputs` are values as in `deployer.engine.values.values`."""

    urn: str
    type: str
    custom: bool
    id: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    parent: str = ""
    protect: bool = False
    taint: bool = False
    external: bool = False  #: read, not owned: never deleted
    delete: bool = False  #: replaced; its deletion is still to be done
    pending_replacement: bool = False  #: deleted for a replacement that is not created yet
    dependencies: tuple[str, ...] = ()
    init_errors: tuple[str, ...] = ()
    provider: str = ""
    property_dependencies: Mapping[str, list[str]] = field(default_factory=dict)
    additional_secret_outputs: tuple[str, ...] = ()
    custom_timeouts: Mapping[str, float] = field(default_factory=dict)  #: seconds by `create`, `update`, …
    import_id: str = ""
    retain_on_delete: bool = False
    deleted_with: str = ""
    replace_with: tuple[str, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    replacement_trigger: Any = None
    aliases: tuple[str, ...] = ()  #: former URNs; references to them are rewritten when the state is saved
    extra: Mapping[str, Any] = field(default_factory=dict)  #: fields of the format that this engine only preserves

    def needs(self) -> set[str]:
        """URNs that must exist before this resource and longer than it: dependencies, parent and provider."""
        needed = set(self.dependencies)
        for urns in self.property_dependencies.values():
            needed.update(urns)
        if self.parent:
            needed.add(self.parent)
        if self.provider:
            needed.add(self.provider.rpartition("::")[0])
        if self.deleted_with:
            needed.add(self.deleted_with)
        return needed


# attribute, key in the checkpoint; empty values are omitted, as by Pulumi
_FLAGS = (
    ("delete", "delete"),
    ("protect", "protect"),
    ("taint", "taint"),
    ("external", "external"),
    ("pending_replacement", "pendingReplacement"),
    ("retain_on_delete", "retainOnDelete"),
)
_TEXTS = (
    ("id", "id"),
    ("parent", "parent"),
    ("provider", "provider"),
    ("import_id", "importID"),
    ("deleted_with", "deletedWith"),
)
_LISTS = (
    ("dependencies", "dependencies"),
    ("init_errors", "initErrors"),
    ("aliases", "aliases"),
    ("additional_secret_outputs", "additionalSecretOutputs"),
    ("replace_with", "replaceWith"),
    ("ignore_changes", "ignoreChanges"),
    ("replace_on_changes", "replaceOnChanges"),
)
_MAPS = (("property_dependencies", "propertyDependencies"), ("custom_timeouts", "customTimeouts"))
_KNOWN = {
    "urn", "type", "custom", "inputs", "outputs", "replacementTrigger",
    *(key for _, key in (*_FLAGS, *_TEXTS, *_LISTS, *_MAPS)),
}  # fmt: skip


def to_json(state: ResourceState, encrypt: Transform) -> dict[str, Any]:
    """Returns the resource in the form of a checkpoint; `encrypt` converts a property map to its stored form."""
    doc: dict[str, Any] = {"urn": state.urn, "custom": state.custom, "type": state.type}
    for attribute, key in _TEXTS[:1]:
        if value := getattr(state, attribute):
            doc[key] = value
    if state.inputs:
        doc["inputs"] = encrypt(state.inputs, (state.urn, "inputs"))
    if state.outputs:
        doc["outputs"] = encrypt(state.outputs, (state.urn, "outputs"))
    for attribute, key in (*_FLAGS, *_TEXTS[1:]):
        if value := getattr(state, attribute):
            doc[key] = value
    for attribute, key in _LISTS:
        if value := getattr(state, attribute):
            doc[key] = list(value)
    for attribute, key in _MAPS:
        if value := getattr(state, attribute):
            doc[key] = dict(value)
    if state.replacement_trigger is not None:
        doc["replacementTrigger"] = encrypt(state.replacement_trigger, (state.urn, "replacementTrigger"))
    doc.update(state.extra)
    return doc


def from_json(doc: Mapping[str, Any], decrypt: Transform) -> ResourceState:
    """Returns the resource of a JSON object from `to_json`. Fields of the format that are not interpreted are kept in
    `extra`."""
    values: dict[str, Any] = {attribute: doc[key] for attribute, key in (*_FLAGS, *_TEXTS, *_MAPS) if key in doc}
    values.update({attribute: tuple(doc[key]) for attribute, key in _LISTS if key in doc})
    urn = str(doc["urn"])
    if doc.get("replacementTrigger") is not None:
        values["replacement_trigger"] = decrypt(doc["replacementTrigger"], (urn, "replacementTrigger"))
    return ResourceState(
        urn=urn,
        type=str(doc.get("type") or urn.split("::", 3)[2].rsplit("$", 1)[-1]),
        custom=bool(doc.get("custom")),
        inputs=decrypt(doc.get("inputs") or {}, (urn, "inputs")),
        outputs=decrypt(doc.get("outputs") or {}, (urn, "outputs")),
        extra={key: value for key, value in doc.items() if key not in _KNOWN},
        **values,
    )
