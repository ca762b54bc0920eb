"""Compares the declared resources with those that the program registers, because the plan that people saw is made from
the specs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from deployer.errors import Refused
from deployer.provider.resources.inputs import ROOT, dataset_inputs, instance_inputs, table_inputs
from deployer.provider.resources.kind import UNKNOWN, CheckFailure, Properties
from deployer.specs.model import Lake


class DeclaredResources:
    """The declared resources of a lake by address. A program has to register all of them unchanged, and no others."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._inputs = cache(self._all_inputs)

    @property
    def root(self) -> str:
        """The declared root of the instance."""
        return self._lake.instance.root

    def canonical(self, address: str, inputs: Properties) -> Properties | None:
        """Returns the inputs if they equal the declared ones in canonical form. They need no other check, because the
        specs were checked. Returns None where they differ, even if only in form."""
        declared = self._inputs().get(address)
        return inputs if declared is not None and _identical(inputs, declared) else None

    def check(self, address: str, inputs: Properties) -> tuple[CheckFailure, ...]:
        """Returns why the program may not register this resource; `inputs` are canonical."""
        declared = self._inputs().get(address)
        if declared is None:
            return (CheckFailure("", "the program registers it, and the specs do not declare it; add it to the specs"),)
        names = sorted(
            name for name in {*declared, *inputs} if inputs.get(name) not in _allowed(name, declared.get(name))
        )
        if not names:
            return ()
        what = f"the program registers it differently from the specs: {', '.join(names)}"
        return (CheckFailure("", f"{what}; change the specs, and let the program register them as they are"),)

    def refuse_deletion(self, address: str, outputs: Properties) -> None:
        """Raises Refused for a declared resource, except for an interrupted deletion, which is finished first."""
        if address in self._inputs() and outputs.get("status") != "deleting":
            raise Refused(
                "the specs declare it, and the program does not register it, so it is not deleted",
                where=address,
                remedy="register it in the program, or take it out of the specs",
            )

    def _all_inputs(self) -> Mapping[str, Mapping[str, Any]]:
        instance = self._lake.instance
        tables = {table.address: table_inputs(table, instance.root) for table in self._lake.tables}
        datasets = {each.address: dataset_inputs(each, instance.root) for each in self._lake.datasets}
        return {instance.address: instance_inputs(instance), **tables, **datasets}


def _identical(one: Any, other: Any) -> bool:
    """Returns whether two JSON values are the same in their types too: for Python 1, 1.0 and true are equal."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_identical(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_identical, one, other))
    return bool(one == other)


def _allowed(name: str, declared: Any) -> tuple[Any, ...]:
    """Returns whether the root is allowed; it may be an output that is unknown in a preview."""
    return (declared, UNKNOWN) if name == ROOT else (declared,)
