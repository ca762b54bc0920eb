"""The engine of a stack with the provider of lakes in this process, and what that provider may delete."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING

from deployer.app.workspace import Workspace
from deployer.engine import Engine, choose_engine, hold_stack, prepare_program
from deployer.live.model import LiveLake
from deployer.platform.files.full_disk import settle_temporary_folder
from deployer.provider.resources.deletions import Deletions
from deployer.specs.model import Lake

if TYPE_CHECKING:
    from deployer.provider.resources.run_context import Stores

#: Modules that programs import, which takes a while.
_OF_PROGRAMS = ("deployer.components",)
_OF_PROGRAMS_ON_AWS = (
    *(f"deployer.components.{name}" for name in ("lake", "bucket", "state_table", "alarms", "catalog", "jobs")),
    *(f"pulumi_aws.{name}" for name in ("s3", "dynamodb", "iam", "cloudwatch")),
)
_OF_JOBS_ON_AWS = ("deployer.compute.packaging.wheel:build_wheel",)


def prepare_for(workspace: Workspace, lake: Lake | None = None) -> None:
    """Starts to load what the program needs, in the program's own process, while this one continues."""
    if lake is None:
        prepare_program(workspace.project, "auto", *_OF_PROGRAMS)
        return
    declares_aws = lake.instance.root.startswith("s3://") and workspace.values.get("aws") != "none"
    on_aws = _OF_PROGRAMS_ON_AWS if declares_aws else ()
    jobs = _OF_JOBS_ON_AWS if on_aws and any(each.kind != "local" for each in lake.instance.clusters) else ()
    prepare_program(workspace.project, lake.instance.engine, *_OF_PROGRAMS, *on_aws, *jobs)


def held(workspace: Workspace, lake: Lake) -> AbstractContextManager[None]:
    """Locks the stack against other runs for the time of a block, so that exactly what was planned in it is applied.

    Raises Conflict, with the holder, while another run holds the stack.
    """
    return hold_stack(workspace.stack_ref, lake.instance.engine)


def engine_for(workspace: Workspace, lake: Lake, allow_destroy: Collection[str] = ()) -> Engine:
    """Returns the engine that runs the stack's program. The provider of lakes runs in this process and may not delete
    anything."""
    stores = stores_for(workspace, allow_destroy)
    allow_deletions(stores, Deletions())
    return engine_with(workspace, lake, stores)


def stores_for(
    workspace: Workspace,
    allow_destroy: Collection[str],
    found: tuple[str, LiveLake] | None = None,
    declares: Lake | None = None,
) -> Stores:
    """Returns the stores of a run. `found` is a root and the live state that was already read there; `declares` is the
    lake that was planned for."""
    from deployer.provider.resources.declared import DeclaredResources
    from deployer.provider.resources.run_context import (
        Stores,  # it loads Arrow, which a plan from state that was read ahead does not need
    )

    stores = Stores(workspace.dir, allow_destroy, DeclaredResources(declares) if declares else None)
    stores.new_state = workspace.new_state
    stores.delete_savepoints = workspace.delete_savepoints
    if found is not None:
        stores.found_before(*found)
    return stores


def engine_with(workspace: Workspace, lake: Lake, stores: Stores) -> Engine:
    settle_temporary_folder()
    from deployer.engine.providers.inprocess import InProcess  # it loads libraries that an empty plan does not need
    from deployer.provider.provider import LakeProvider
    from deployer.provider.resources import run_context as variables

    os.environ[variables.ALLOW_DESTROY_VARIABLE] = ",".join(sorted(stores.allow_destroy))
    os.environ[variables.OUTPUTS_VARIABLE] = ""
    os.environ[variables.DELETE_SAVEPOINTS_VARIABLE] = "1" if stores.delete_savepoints else ""
    os.environ[variables.NEW_STATE_VARIABLE] = "1" if stores.new_state else ""
    return choose_engine(workspace.project, lake.instance.engine, providers={"lake": InProcess(LakeProvider(stores))})


class PlannedEngine:
    """A function that returns the engine of a planned run. It makes the engine at the first call, because that loads
    Pulumi's SDK.

    `deletions` is all that the engine may delete; a plan sets it once that is known.
    """

    def __init__(self, workspace: Workspace, lake: Lake, stores: Callable[[], Stores], deletions: Deletions) -> None:
        self._workspace, self._lake, self._make_stores = workspace, lake, stores
        self.deletions = deletions

    @cached_property
    def stores(self) -> Stores:
        """The stores of the run."""
        return self._make_stores()

    @cached_property
    def _engine(self) -> Engine:
        return engine_with(self._workspace, self._lake, self.stores)

    def __call__(self) -> Engine:
        allow_deletions(self.stores, self.deletions)
        return self._engine


def allow_deletions(stores: Stores, deletions: Deletions) -> None:
    """Allows the provider of this process, and one that the Pulumi CLI starts, to delete these and nothing else."""
    from deployer.provider.resources.deletions import DELETIONS_VARIABLE

    stores.deletions = deletions
    os.environ[DELETIONS_VARIABLE] = deletions.as_text()
