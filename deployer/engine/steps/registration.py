"""Registers resources: from a goal of the program to the step that reaches the goal.

The rules are those of Pulumi's step generator (`pkg/resource/deploy/step_generator.go`): the former resource is found
by URN, then by alias; the provider checks the inputs; a provider's diff, `replace_on_changes` and replacement triggers
decide between same, update and replace; a replacement is created before the old resource is deleted, unless the
provider or `delete_before_replace` requires the reverse.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from deployer.engine.interfaces.engine import Diagnostic, Op
from deployer.engine.interfaces.provider import InitFailed, Live, ProviderFailed
from deployer.engine.providers.registry import ConfiguredProvider
from deployer.engine.steps.decide import Verdict, judge
from deployer.engine.steps.desired import desired, made_from, refuse_unknown, timeout_of, unready
from deployer.engine.steps.importing import import_resource
from deployer.engine.steps.naming import Names
from deployer.engine.steps.pending_operations import RESOLVE, UNFINISHED, adopt_unfinished, unfinished_create
from deployer.engine.steps.replacing import delete_before_replacing
from deployer.engine.steps.run import Run, operation
from deployer.engine.steps.scheduling import Postponed, leave_program_thread
from deployer.engine.values.goal import Goal, RegistrationAnswer
from deployer.engine.values.property_paths import with_old_values
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.urns import STACK_TYPE, split_reference
from deployer.engine.values.values import keep_secrecy, same


class StepFailure(Exception):
    """A step failed; the run continues with resources that do not depend on it."""


class Registrar:
    """Carries out registrations. `register` may be called from several threads, each for another resource."""

    def __init__(self, run: Run, names: Names) -> None:
        self._run, self._names = run, names

    def register(self, goal: Goal) -> RegistrationAnswer:
        """Registers a resource. Raises `EngineFailed` when the registration itself is wrong (a URN twice); a failed
        step is part of the answer."""
        run = self._run
        urn = self._names.claim(goal)
        key, old = self._names.find_old(goal, urn)
        if not run.is_target(urn) and goal.type != STACK_TYPE:
            return self._untouched(urn, key, old)  # even if one of its dependencies failed
        if blocker := self._blocker(goal):
            run.fail(urn, "same" if old else "create", f"skipped, because {blocker}", skipped=True)
            return RegistrationAnswer(urn, failed=True)
        new = desired(goal, urn, old)

        def decide() -> RegistrationAnswer:
            if not goal.custom:
                return self._component(goal, key, old, new)
            return self._custom(goal, key, old, new, run.provider_of(goal.provider))

        return self._attempt(urn, old, decide)

    def _attempt(
        self, urn: str, old: ResourceState | None, step: Callable[[], RegistrationAnswer]
    ) -> RegistrationAnswer:
        try:
            return step()
        except Postponed as postponed:
            rest = postponed.rest
            raise Postponed(lambda: self._attempt(urn, old, rest)) from None
        except (StepFailure, ProviderFailed) as failure:
            self._run.fail(urn, _op_of(self._run, urn, old), str(failure))
            return RegistrationAnswer(urn, failed=True)

    def _needed(self, goal: Goal) -> set[str]:
        needed = {*goal.dependencies, goal.parent, *(u for urns in goal.property_dependencies.values() for u in urns)}
        if goal.provider:
            needed.add(split_reference(goal.provider)[0])
        return needed

    def _blocker(self, goal: Goal) -> str:
        """Returns why the resource cannot be registered: the first dependency that failed or was left out."""
        run = self._run
        if not run.failures and not run.left_out:
            return ""
        failed = sorted(urn for urn in self._needed(goal) if urn in run.failures)
        left_out = sorted(self._needed(goal) & run.left_out)
        return f"{failed[0]} failed" if failed else f"{left_out[0]} is not among the targets" if left_out else ""

    # --- components, and resources outside the targets

    def _component(self, goal: Goal, key: str, old: ResourceState | None, new: ResourceState) -> RegistrationAnswer:
        run = self._run
        if old is None or old.custom:
            if old is not None:
                raise StepFailure("a custom resource became a component under the same name; give it another name")
            run.record(operation(new, "create"))
            with run.step(new.urn, "create"):
                run.end(None, add=new)
        elif same(old.inputs, new.inputs):
            self._same(key, old, replace(new, outputs=old.outputs))
        else:
            new = replace(new, outputs=old.outputs)
            run.record(operation(new, "update", old))
            with run.step(new.urn, "update"):
                run.end(None, add=new, drop=(key,))
        return RegistrationAnswer(new.urn, "", new.outputs)

    def _untouched(self, urn: str, key: str, old: ResourceState | None) -> RegistrationAnswer:
        if old is None:
            self._run.left_out.add(urn)
            return RegistrationAnswer(urn, failed=True)
        self._run.end(None, keep=key)
        return RegistrationAnswer(urn, old.id, old.outputs)

    # --- custom resources

    def _custom(
        self, goal: Goal, key: str, old: ResourceState | None, new: ResourceState, provider: ConfiguredProvider
    ) -> RegistrationAnswer:
        run = self._run
        imported = goal.import_id and (old is None or old.external or (old.import_id or old.id) != goal.import_id)
        if imported:
            leave_program_thread(run, lambda: self._custom(goal, key, old, new, provider))
            key, old = import_resource(run, goal, key, old, new, provider)
        fresh = old is None or old.external or old.pending_replacement
        known = {} if fresh or old is None else old.inputs
        wanted = new.inputs if fresh else with_old_values(known, new.inputs, goal.ignore_changes)
        new = replace(new, inputs=self._checked(provider, new.urn, known, wanted))
        if old is None or old.pending_replacement or old.external:
            return self._create_fresh(goal, provider, key, old, new)
        verdict = judge(run, goal, old, new, provider)
        if verdict.op == "same":
            stable = replace(new, id=old.id, outputs=old.outputs)
            self._same(key, old, stable, announce=not imported, not_compared=verdict.not_compared)
            return RegistrationAnswer(new.urn, old.id, old.outputs, verdict.stables)
        return self._change(goal, provider, key, old, new, verdict, "import" if imported else "update")

    def _create_fresh(
        self, goal: Goal, provider: ConfiguredProvider, key: str, old: ResourceState | None, new: ResourceState
    ) -> RegistrationAnswer:
        leave_program_thread(self._run, lambda: self._create_fresh(goal, provider, key, old, new))
        if old is None:
            return self._create_new(goal, provider, new)
        reason = "deleted to be replaced" if old.pending_replacement else "was only read before"
        return self._create(goal, provider, new, replaces=(key, old), drop=True, reason=reason)

    def _create_new(self, goal: Goal, provider: ConfiguredProvider, new: ResourceState) -> RegistrationAnswer:
        begun = unfinished_create(self._run, new.urn, provider)
        if begun is None:
            return self._create(goal, provider, new)
        if (adopted := adopt_unfinished(self._run, new, begun, provider)) is not None:
            return self._custom(goal, *adopted, replace(new, inputs=goal.inputs), provider)
        try:
            registered = self._create(goal, provider, new)
        except InitFailed:  # it is in the state
            raise
        except ProviderFailed as failure:
            raise ProviderFailed(f"{failure}; {UNFINISHED}: {RESOLVE}") from failure
        self._run.emit(Diagnostic(new.urn, "warning", f"{UNFINISHED}: if there are two, {RESOLVE.partition(',')[0]}"))
        return registered

    def _change(
        self,
        goal: Goal,
        provider: ConfiguredProvider,
        key: str,
        old: ResourceState,
        new: ResourceState,
        verdict: Verdict,
        shown: Op,
    ) -> RegistrationAnswer:
        leave_program_thread(self._run, lambda: self._change(goal, provider, key, old, new, verdict, shown))
        if verdict.op == "update":
            return self._update(goal, provider, key, old, new, verdict, shown)
        return self._replace(goal, provider, key, old, new, verdict)

    def _checked(self, provider: ConfiguredProvider, urn: str, olds: Any, news: Any) -> dict[str, Any]:
        if not provider.known:
            return dict(news)
        checked = provider.client.check(urn, olds, news, os.urandom(32))
        if checked.failures:
            raise StepFailure("; ".join(f"{name}: {reason}" if name else reason for name, reason in checked.failures))
        if provider.features.accept_secrets:
            return dict(checked.inputs)
        return keep_secrecy(dict(checked.inputs), news)

    def _same(
        self,
        key: str,
        old: ResourceState,
        new: ResourceState,
        *,
        announce: bool = True,
        not_compared: tuple[str, ...] = (),
    ) -> None:
        run = self._run
        if announce:
            run.record(operation(new, "same", old, not_compared=not_compared))
        if new == old:
            run.end(None, keep=key, settles=new.urn)
        else:
            run.end(None, add=new, drop=(key,), settles=new.urn)

    def _create(
        self,
        goal: Goal,
        provider: ConfiguredProvider,
        new: ResourceState,
        *,
        replaces: tuple[str, ResourceState] | None = None,
        drop: bool = False,
        reason: str = "",
        verdict: Verdict | None = None,
    ) -> RegistrationAnswer:
        """Creates the resource. With `replaces`, it replaces another resource, which is dropped or deleted later."""
        run = self._run
        old = replaces[1] if replaces else None
        op: Any = "replace" if replaces else "create"
        details = verdict.details() if verdict else {}
        run.record(operation(new, op, old, reason=reason, **details))
        changes: dict[str, Any] = {}
        if replaces:
            run.replaced.add(new.urn)
            changes = {"drop": (replaces[0],)} if drop else {"put": {replaces[0]: replace(replaces[1], delete=True)}}
        with run.step(new.urn, op) as timer:
            step = run.begin("creating", new)
            try:
                live = self._created(provider, goal, new)
            except InitFailed as failure:
                run.end(step, add=unready(new, failure), settles=new.urn, **changes)
                raise
            except ProviderFailed:
                run.end(step)
                raise
            made = made_from(goal, new, live)
            run.end(step, add=made, settles=new.urn, **changes)
            timer.outputs = made.outputs
        run.record(operation(made, op, old, reason=reason, **details))
        return RegistrationAnswer(new.urn, made.id, made.outputs)

    def _created(self, provider: ConfiguredProvider, goal: Goal, new: ResourceState) -> Live:
        if self._run.settings.dry_run:
            if not provider.known:
                return Live("", {})
            if not provider.features.supports_preview:
                return Live("", new.inputs)
        else:
            refuse_unknown(new)
        live = provider.client.create(new.urn, new.inputs, timeout_of(goal, "create"), self._run.settings.dry_run)
        if self._run.settings.dry_run:
            return replace(live, id="")
        if not live.id:
            raise ProviderFailed("the provider created it but gave it no id")
        return live

    def _update(
        self,
        goal: Goal,
        provider: ConfiguredProvider,
        key: str,
        old: ResourceState,
        new: ResourceState,
        verdict: Verdict,
        shown: Op,
    ) -> RegistrationAnswer:
        run = self._run
        new = replace(new, id=old.id)
        details = verdict.details()
        run.record(operation(new, shown, old, **details))
        with run.step(new.urn, "update") as timer:
            step = run.begin("updating", new)
            try:
                live = self._updated(provider, goal, old, new)
            except InitFailed as failure:
                run.end(step, add=unready(new, failure), drop=(key,), settles=new.urn)
                raise
            except ProviderFailed:
                run.end(step)
                raise
            made = made_from(goal, new, replace(live, id=old.id))
            run.end(step, add=made, drop=(key,), settles=new.urn)
            timer.outputs = made.outputs
        run.record(operation(made, shown, old, **details))
        return RegistrationAnswer(new.urn, made.id, made.outputs, verdict.stables)

    def _updated(self, provider: ConfiguredProvider, goal: Goal, old: ResourceState, new: ResourceState) -> Live:
        preview = self._run.settings.dry_run
        if preview and (not provider.known or not provider.features.supports_preview):
            return Live(old.id, new.inputs if provider.known else {})
        if not preview:
            refuse_unknown(new)
        timeout = timeout_of(goal, "update")
        return provider.client.update(
            new.urn, old.id, old.inputs, old.outputs, new.inputs, timeout, goal.ignore_changes, preview
        )

    def _replace(
        self,
        goal: Goal,
        provider: ConfiguredProvider,
        key: str,
        old: ResourceState,
        new: ResourceState,
        verdict: Verdict,
    ) -> RegistrationAnswer:
        run = self._run
        if old.protect and new.protect and not run.may_destroy(old):
            raise StepFailure(
                "it would be replaced and is protected; take `protect` off it, apply that, then replace it"
            )
        if goal.import_id:
            raise StepFailure("an imported resource may not be replaced; take `import_` off it in the program")
        # the provider's defaults for a new resource may differ from those carried over from the old one
        new = replace(new, inputs=self._checked(provider, new.urn, {}, desired(goal, new.urn, None).inputs))
        before = verdict.delete_before_replace if goal.delete_before_replace is None else goal.delete_before_replace
        if before:
            delete_before_replacing(run, key, old)
            key, old = run.olds[old.urn]
        return self._create(goal, provider, new, replaces=(key, old), drop=before, verdict=verdict)


def _op_of(run: Run, urn: str, old: ResourceState | None) -> Any:
    recorded = run.operations.get(urn)
    return recorded.op if recorded is not None else "update" if old is not None else "create"
