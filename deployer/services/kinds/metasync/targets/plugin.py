"""Targets of other packages: an entry point in the group `deployer.metasync_targets` that returns a
`target.Target`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from deployer.errors import DeployerError, InvalidInput
from deployer.services.kinds.metasync.entry import Publication
from deployer.services.kinds.metasync.targets.target import Catalog, Found, Parts, Place, Target, TargetFailed

GROUP = "deployer.metasync_targets"
T = TypeVar("T")


class PluginTarget:
    """An implementation of `target.Target` that calls the plug-in's. An error of the plug-in, of any class, fails only
    this target.

    The entry point is called with the declared `options`. Raises InvalidInput where no installed package has it.
    """

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self._name = str(declared["name"])
        found = _entry_point(self._name)
        self._target: Target = self._call(lambda: found.load()(dict(declared.get("options") or {})))
        self.title = f"plugin {self._name} {self._call(lambda: self._target.title)}"
        self.catalog: Catalog = ("plugin", self._name, *self._call(lambda: self._target.catalog))

    def place(self, database: str, name: str) -> Place:
        return self._call(partial(self._target.place, database, name))

    def wanted(self, publication: Publication) -> Parts:
        return self._call(partial(self._target.wanted, publication))

    def find(self, place: Place) -> Found | None:
        return self._call(partial(self._target.find, place))

    def put(self, place: Place, publication: Publication, found: Found | None) -> None:
        self._call(partial(self._target.put, place, publication, found))

    def remove(self, place: Place, found: Found) -> None:
        self._call(partial(self._target.remove, place, found))

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except DeployerError:
            raise
        except Exception as failure:
            first = (str(failure).strip().splitlines() or [""])[0]
            raise TargetFailed(
                f"the plug-in {self._name} failed: {type(failure).__name__}: {first}",
                remedy="its package is to raise DeployerError for what its users can fix",
            ) from failure


def _entry_point(name: str) -> EntryPoint:
    installed = {each.name: each for each in entry_points(group=GROUP)}
    if name not in installed:
        there = ", ".join(sorted(installed)) or "none"
        raise InvalidInput(
            f"no installed package has a METASYNC target {name}; there are: {there}",
            remedy="install its package where the service runs, or correct the target's `name`",
        )
    return installed[name]
