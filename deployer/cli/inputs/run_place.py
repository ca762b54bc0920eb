"""The lake in which a service runs: the one that the specs declare, or the applied one where the specs have
problems."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from deployer.app.workspace import Workspace
from deployer.cli.inputs.lake_root import root_despite
from deployer.errors import InvalidInput, InvalidSpecs
from deployer.live.reader import live_instance
from deployer.services.definition import options_of
from deployer.services.registry import runnable
from deployer.specs.model import InstanceSpec, Lake
from deployer.specs.schema.services import KINDS, option_names
from deployer.state import open_reader
from deployer.state.model.entities import TableState
from deployer.tables.open_table import find_entry


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The instance whose service runs. `declared` is its lake, or the problems of its specs."""

    root: str
    instance: InstanceSpec
    declared: Lake | InvalidSpecs

    def lake(self) -> Lake:
        """Returns the declared lake, which has what a cluster on AWS needs: roles, bucket and network. Raises
        InvalidSpecs where the specs have problems."""
        if isinstance(self.declared, InvalidSpecs):
            raise self.declared
        return self.declared

    def cluster_of(self, table: str, kind: str) -> str | None:
        """Returns the name of the cluster of the table's service; None where the service names none or does not
        exist."""
        if isinstance(self.declared, InvalidSpecs):
            services = _state_of(self.root, table).services.values()
            return next((each.cluster for each in services if each.kind == kind), None)
        tables = [each for each in self.declared.tables if table in (each.full_name, each.name)]
        found = [service.cluster for each in tables for service in each.services if service.kind == kind]
        return found[0] if len(tables) == 1 and found else None

    def dry_run_options(self, table: str, kind: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
        """Returns the options for a dry run: the given ones, or else those of the table's own service. Raises
        InvalidInput for a kind of service that has no dry run."""
        able = [each for each in KINDS if "dry_run" in option_names(each)]
        if kind not in able:
            raise InvalidInput(
                f"{kind} has no --dry-run for a single table", remedy=f"{', '.join(able[:-1])} and {able[-1]} have one"
            )
        return {**options_of(_state_of(self.root, table), runnable(kind), options), "dry_run": True}


def find_run_place(workspace: Workspace) -> RunPlace:
    """Returns where services of this stack run. Raises InvalidSpecs where the specs have problems and nothing was
    applied yet."""
    try:
        lake = workspace.lake()
    except InvalidSpecs as problems:
        root = root_despite(workspace, problems, "uses")
        with closing(open_reader(root)) as store:
            instance = live_instance(store.instance())
        if instance is None:
            raise
        return RunPlace(root, instance, problems)
    return RunPlace(workspace.root(lake), lake.instance, lake)


def _state_of(root: str, table: str) -> TableState:
    with closing(open_reader(root)) as store:
        return store.table(find_entry(store.instance().tables.values(), table).table_id)
