"""URNs of a run. Each URN is registered once; the former resource is found by URN or by alias."""

from __future__ import annotations

from deployer.engine.steps.run import Run
from deployer.engine.values.goal import Alias, Goal
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.urns import STACK_TYPE, make_urn, name_of, qualified_type, type_of
from deployer.errors import EngineFailed


class Names:
    """The URNs that the program has registered, and the earlier ones that they stand for. Safe for threads."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.claimed: set[str] = set()
        self._aliased: dict[str, str] = {}  #: earlier URN → the one that took it over
        self._alias_of: dict[
            str, str
        ] = {}  #: the reverse: the former parent's name, which children of the resource have in their names

    def urn(self, type_: str, name: str, parent: str) -> str:
        return make_urn(self._run.settings.stack, self._run.settings.project, parent, type_, name)

    def claim(self, goal: Goal) -> str:
        urn = self.urn(goal.type, goal.name, goal.parent)
        with self._run.lock:
            if urn in self.claimed:
                raise EngineFailed(
                    f"two resources of the type {goal.type} have the name {goal.name!r}",
                    where=goal.position or urn,
                    remedy="give one of them another name",
                )
            if urn in self._aliased:
                raise EngineFailed(
                    f"{urn} is also an alias of {self._aliased[urn]}",
                    where=goal.position or urn,
                    remedy="drop the alias",
                )
            self.claimed.add(urn)
        return urn

    def is_seen(self, urn: str) -> bool:
        """Returns whether the program has this URN, or a resource that was named so before."""
        return urn in self.claimed or urn in self._aliased

    def find_old(self, goal: Goal, urn: str) -> tuple[str, ResourceState | None]:
        """Returns `(key, state)` of the former resource; `("", None)` when there was none."""
        with self._run.lock:
            if urn in self._run.olds:
                return self._run.olds[urn]
            for alias in self._aliases(goal):
                if alias not in self._run.olds or alias == urn:
                    continue
                taken_by = alias if alias in self.claimed else self._aliased.get(alias)
                if taken_by is not None:
                    raise EngineFailed(
                        f"the alias {alias} belongs to {taken_by}", where=goal.position or urn, remedy="drop the alias"
                    )
                self._aliased[alias] = urn
                self._alias_of[urn] = alias
                return self._run.olds[alias]
        return "", None

    def _aliases(self, goal: Goal) -> list[str]:
        found = [self._collapse(goal, alias) for alias in goal.aliases]
        parent_alias = self._alias_of.get(goal.parent)
        if parent_alias is not None:
            found.append(self._inherited(goal.type, goal.name, goal.parent, parent_alias))
            found += [
                self._inherited(type_of(urn), name_of(urn), goal.parent, parent_alias)
                for urn in found[: len(goal.aliases)]
            ]
        return list(dict.fromkeys(found))

    def _collapse(self, goal: Goal, alias: Alias) -> str:
        if alias.urn:
            return alias.urn
        parent = self._alias_of.get(alias.parent, alias.parent) if alias.parent else goal.parent
        if alias.no_parent or (parent and qualified_type(parent) == STACK_TYPE):
            parent = ""
        return make_urn(
            alias.stack or self._run.settings.stack,
            alias.project or self._run.settings.project,
            parent,
            alias.type or goal.type,
            alias.name or goal.name,
        )

    def _inherited(self, type_: str, name: str, parent: str, parent_alias: str) -> str:
        """Returns a child's earlier URN when its parent was renamed: names that contain the parent's name change
        too."""
        if name.startswith(name_of(parent)):
            name = name_of(parent_alias) + name.removeprefix(name_of(parent))
        return self.urn(type_, name, parent_alias)
