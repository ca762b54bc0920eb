"""The decision whether a resource stays, is updated or is replaced: the provider's diff under the resource's
options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from deployer.engine.interfaces.engine import Diagnostic
from deployer.engine.interfaces.provider import InputsDiff
from deployer.engine.providers.registry import ConfiguredProvider
from deployer.engine.providers.sealed import not_compared
from deployer.engine.steps.run import Run
from deployer.engine.values.goal import Goal
from deployer.engine.values.property_paths import DiffKind, contains, parse_path
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.urns import split_reference
from deployer.engine.values.values import Properties, changed_keys, same

_REPLACING: Mapping[DiffKind, DiffKind] = {"add": "add-replace", "delete": "delete-replace", "update": "update-replace"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision for a resource. `keys` are the properties that force a replacement."""

    op: Literal["same", "update", "replace"]
    detailed: Mapping[str, DiffKind] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    stables: tuple[str, ...] = ()
    delete_before_replace: bool = False
    not_compared: tuple[str, ...] = ()  #: secrets for which it is unknown in a preview whether they change

    def details(self) -> dict[str, Any]:
        return {"detailed_diff": self.detailed, "replace_keys": self.keys, "not_compared": self.not_compared}


def judge(run: Run, goal: Goal, old: ResourceState, new: ResourceState, provider: ConfiguredProvider) -> Verdict:
    for option, urns in (("replaceWith", new.replace_with), ("deletedWith", (new.deleted_with,))):
        if any(urn in run.replaced for urn in urns):
            return Verdict("replace", keys=(option,))
    if new.replacement_trigger is not None and not same(new.replacement_trigger, old.replacement_trigger):
        return Verdict("replace", keys=("replacementTrigger",))
    if old.taint:
        return Verdict("replace", keys=("id",))
    if provider_moved(run, old, new):
        return Verdict("replace", keys=("provider",))
    if not provider.known and provider.secret:
        return Verdict("same", not_compared=("the configuration of its provider",))
    if not provider.known:
        run.emit(
            Diagnostic(
                new.urn,
                "warning",
                "the provider's configuration is not known yet: this preview may differ from what will be done",
            )
        )
        return Verdict("update")
    diffed = compared(provider, old, new.inputs, goal.ignore_changes)
    verdict = verdict_of(diffed, goal.replace_on_changes, bool(old.init_errors))
    return replace(verdict, not_compared=not_compared(old.inputs, new.inputs)) if run.settings.dry_run else verdict


def compared(
    provider: ConfiguredProvider, old: ResourceState, new_inputs: Properties, ignore_changes: tuple[str, ...]
) -> InputsDiff:
    """Returns the provider's diff, or a comparison of inputs where it leaves that to the engine."""
    diffed = provider.client.diff(old.urn, old.id, old.inputs, old.outputs, new_inputs, ignore_changes)
    if diffed.changes is not None:
        return diffed
    if diffed.detailed or diffed.replaces or diffed.diffs:
        return InputsDiff(
            True, diffed.replaces, diffed.stables, diffed.delete_before_replace, diffed.diffs, diffed.detailed
        )
    kinds: dict[str, Any] = changed_keys(old.inputs, new_inputs)
    for path in ignore_changes:
        kinds.pop(path, None)
    return InputsDiff(bool(kinds), stables=diffed.stables, diffs=tuple(kinds), detailed=kinds)


def verdict_of(diffed: InputsDiff, replace_on_changes: tuple[str, ...], unready: bool) -> Verdict:
    if not diffed.changes:
        return Verdict("update" if unready else "same", stables=diffed.stables)
    detailed = dict(diffed.detailed) or dict.fromkeys(diffed.diffs, "update")
    keys = dict.fromkeys(diffed.replaces)
    outer = [parse_path(path) for path in replace_on_changes]
    for path, kind in detailed.items():
        if any(contains(part, parse_path(path)) for part in outer):
            detailed[path] = _REPLACING.get(kind, kind)
        if detailed[path].endswith("-replace"):
            keys.setdefault(path)
    for path in keys:
        detailed[path] = _REPLACING.get(detailed.get(path, "update"), detailed.get(path, "update"))
    return Verdict("replace" if keys else "update", detailed, tuple(keys), diffed.stables, diffed.delete_before_replace)


def provider_moved(run: Run, old: ResourceState, new: ResourceState) -> bool:
    """Returns whether the provider changed in a way that forces its resources to be replaced."""
    if old.provider == new.provider:
        return False
    if not old.provider or not new.provider:
        return True
    old_urn, _ = split_reference(old.provider)
    new_urn, _ = split_reference(new.provider)
    before = run.olds.get(old_urn)
    now = run.state(new_urn)
    if before is None or now is None or same(before[1].inputs, now.inputs):
        return False
    diffed = run.providers.diff_config(new_urn, now.type, before[1].inputs, now.inputs)
    return bool(diffed.replaces) or any(kind.endswith("-replace") for kind in diffed.detailed.values())
