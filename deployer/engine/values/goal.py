"""A goal: one registration of the program, in the engine's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Alias:
    """A former name of the resource: a whole URN, or the parts that differ from its current name."""

    urn: str = ""
    name: str = ""
    type: str = ""
    stack: str = ""
    project: str = ""
    parent: str = ""
    no_parent: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """One resource as the program registers it, including options. Timeouts are in seconds."""

    type: str
    name: str
    custom: bool
    inputs: Mapping[str, Any]
    parent: str = ""
    provider: str = ""
    version: str = ""
    plugin_url: str = ""
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, list[str]] = field(default_factory=dict)
    protect: bool = False
    retain_on_delete: bool = False
    delete_before_replace: bool | None = None
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    additional_secret_outputs: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()
    import_id: str = ""
    custom_timeouts: Mapping[str, float] = field(default_factory=dict)
    deleted_with: str = ""
    replace_with: tuple[str, ...] = ()
    replacement_trigger: Any = None
    position: str = ""  #: file:line of the registration in the program


@dataclass(frozen=True, slots=True)
class RegistrationAnswer:
    """The answer to the program. `failed`: the step failed, or was skipped because an earlier one failed."""

    urn: str
    id: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    stables: tuple[str, ...] = ()
    failed: bool = False
