"""The plan of a command: what the engine would do, in the form of the planner's changes."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from deployer.app.live_state import read_live
from deployer.app.planning.addresses import check_addresses
from deployer.app.planning.cost_estimate import with_cost
from deployer.app.planning.data_checks import looked_up, with_removals
from deployer.app.planning.foreign import note_plugins, with_foreign
from deployer.app.planning.new_recordings import with_recordings
from deployer.app.planning.policies import judged, opened_policies
from deployer.app.planning.prefetch import Prefetched, nothing_ahead, reading_ahead
from deployer.app.planning.targeting import (
    Chosen,
    Scope,
    choose_targets,
    limited,
    recorded_of,
    refuse_unreached,
    scope_of,
)
from deployer.app.planning.view_queries import require_maintainable
from deployer.app.planning.view_refreshes import with_refreshes
from deployer.app.reporter import SILENT, Reporter
from deployer.app.stack.engine import PlannedEngine, prepare_for, stores_for
from deployer.app.stack.fast_path import Recorded, engine_would_agree, is_packaged_program, read_recorded
from deployer.app.stack.job_package import package_for
from deployer.app.stack.lost_state import refuse_lost_state
from deployer.app.stack.owner import (
    refuse_other_name,
    refuse_others_lake,
    refuse_shared_tables,
    refuse_taken_names,
)
from deployer.app.workspace import SPECS_KEY, Workspace
from deployer.engine import Event, ProgramOutput
from deployer.errors import Refused
from deployer.live.model import LiveLake
from deployer.plan import Plan, make_plan
from deployer.plan.assess.unsupported import MOVE
from deployer.plan.changes import RenameTable
from deployer.plan.graph import Graph, build_graph
from deployer.plan.planning.work_places import builds_large_indexes, rewrites_tables, with_build_place, with_place
from deployer.plan.targeting.targets import restricted
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.provider.resources.deletions import Deletions
from deployer.specs import known_lake
from deployer.specs.model import Lake
from deployer.specs.values.root import resolve_root

if TYPE_CHECKING:
    from deployer.engine.interfaces.provider import Refreshed


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, the lake that it was made from, the engine that would apply it, and the live state that it read.

    With targets, `lake` is still the whole lake, as the program declares it; `live` has only the targets.
    """

    plan: Plan
    lake: Lake
    engine: PlannedEngine
    config: Mapping[str, str]
    live: LiveLake
    allow_destroy: frozenset[str] = frozenset()
    scope: Scope = Scope()  #: what the engine leaves alone: tables that cannot be read, and what is not targeted
    refreshed: Refreshed | None = None  #: what the engine read for the plan, if it ran


def plan_up(
    workspace: Workspace,
    allow_destroy: Collection[str],
    chosen: Chosen = (),
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> Planned:
    """Returns what `up` would do, against refreshed live state. `chosen` are the targets; without targets, everything
    is planned. It reports no progress before the fork that reads ahead, because that fork needs a process with one
    thread."""
    if not is_packaged_program(workspace):
        prepare_for(workspace)
    with nullcontext(nothing_ahead) if chosen else reading_ahead(workspace) as received:
        on_progress(Progress("reading the specs", 0, None, ""))
        lake = workspace.lake()
        ahead = received(on_progress)
    planned = plan_lake(workspace, lake, allow_destroy, ahead, chosen, reporter=reporter, on_progress=on_progress)
    check_addresses("--allow-destroy", allow_destroy, planned.plan)
    return planned


def plan_lake(
    workspace: Workspace,
    lake: Lake,
    allow_destroy: Collection[str],
    ahead: Prefetched | None = None,
    chosen: Chosen = (),
    *,
    ask_engine: bool = True,
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> Planned:
    """Returns what `up` would do if the specs declared `lake`, against refreshed live state.

    `ahead` is live state that was just read; it is used if it is of this lake. `chosen` are the targets; without
    targets, everything is planned. With targets, other tables are not read. Without `ask_engine` the program does not
    run, and the plan has only the lake's own resources, which are all that policies see.
    """
    root = workspace.root(lake)
    targets = None
    if ahead is not None and ahead.root == root and not chosen:
        live, recorded = ahead.live, ahead.recorded
        engine = PlannedEngine(
            workspace, lake, lambda: stores_for(workspace, allow_destroy, (root, live), lake), Deletions(root)
        )
    else:
        stores = stores_for(workspace, allow_destroy, declares=lake)
        recorded = read_recorded(workspace.stack_ref)
        targets = choose_targets(chosen, lake, stores.addresses(root), recorded) if chosen else None
        on_progress(Progress("reading live state", 0, None, ""))
        live = stores.live_lake(root, targets.addresses if targets else None, on_progress)
        engine = PlannedEngine(workspace, lake, lambda: stores, Deletions(root))
    on_progress(Progress("comparing the specs with live state", 0, None, ""))
    refuse_shared_tables(recorded)
    live = live.with_applied(recorded.ids)
    wanted = restricted(lake, targets) if targets else lake
    config = {SPECS_KEY: str(workspace.specs)}
    refuse_others_lake(workspace, wanted, live)
    refuse_other_name(workspace, wanted, live)
    refuse_taken_names(wanted, live)
    require_maintainable(lake, live, root)
    if live.instance is None:
        _refuse_unmoved(workspace, lake, recorded)
        if not workspace.new_state:
            refuse_lost_state(workspace, lake, recorded)
    plan = make_plan(
        lake.instance.name,
        build_graph(wanted),
        live,
        owner=workspace.owner,
        allow_destroy=allow_destroy,
        delete_savepoints=workspace.delete_savepoints,
    )
    plan = _with_work_place(workspace, wanted, plan, engine)
    if targets is not None:
        plan = limited(workspace, plan, wanted, live, recorded, targets)
    plan, live = looked_up(plan, wanted, live, root, on_progress)
    plan = with_removals(workspace, lake, plan, live, root, allow_destroy)
    plan = with_refreshes(plan, wanted, live, root)
    plan = with_recordings(workspace, plan, wanted, live, root)
    scope = scope_of(workspace, plan.targets, lake, live, recorded)
    refreshed: Refreshed | None = None
    with opened_policies(workspace, reporter) as policies:
        known = recorded_of(recorded, plan.targets)
        if ask_engine and not engine_would_agree(workspace, root, plan, known):
            on_progress(Progress("asking the engine what it would do", 0, None, ""))
            prepare_for(workspace, lake)
            package_for(workspace, lake, reporter)
            note_plugins(workspace, recorded, reporter)
            with known_lake(workspace.dir, workspace.specs, lake, workspace.stack):
                found = engine().preview(
                    workspace.stack_ref,
                    on_event=partial(_note_output, reporter),
                    targets=scope.targets,
                    allow_destroy=frozenset(allow_destroy),
                    config=config,
                    leave=scope.leave,
                )
                refreshed = found.refreshed
                refuse_unreached(plan, scope, found.operations)
                plan = with_foreign(plan, found.operations)
        engine.deletions = _deletions(plan, root)
        if policies is not None:
            on_progress(Progress("asking the policies", 0, None, ""))
        plan = judged(workspace, plan, wanted, live, policies)
    plan = with_cost(workspace, plan, wanted, live, recorded.aws)
    return Planned(plan, lake, engine, config, live, frozenset(allow_destroy), scope, refreshed)


def _deletions(plan: Plan, root: str, *, instance: bool = False) -> Deletions:
    """Returns the tables that the plan deletes and renames, for the provider."""
    deleted = {each.table_id for each in plan.resources if each.action == "delete" and each.table_id}
    unfinished = {each.table_id for each in plan.removals if each.kind == "deleting"}
    renamed = {each.table_id for each in plan.resources if any(isinstance(c.change, RenameTable) for c in each.changes)}
    return Deletions(root, frozenset(deleted | unfinished), instance, frozenset(renamed))


def _refuse_unmoved(workspace: Workspace, lake: Lake, recorded: Recorded) -> None:
    """Raises Refused when the declared root has no lake, and the root that the stack applied still has one."""
    instance = lake.instance
    before = recorded.roots.get(instance.address)
    if before is None or workspace.root(lake) == (old := resolve_root(workspace.dir, before)):
        return
    if read_live(old).instance is not None:
        raise Refused(
            f"the lake is at {before}, but the specs say {instance.root}, where there is no lake; nothing was changed",
            where=instance.sources.get("root") or instance.address,
            remedy=f"write `root: {before}` again, or {MOVE}",
        )


def plan_destroy(
    workspace: Workspace,
    lake: Lake,
    allow_destroy: Collection[str],
    reporter: Reporter = SILENT,
    on_progress: OnProgress = no_progress,
) -> Planned:
    """Returns what `destroy` would do. Tables without deletion protection need not be in `allow_destroy`.

    A table that cannot be read is deleted too. It counts as protected where its log does not record the protection.
    """
    on_progress(Progress("reading live state", 0, None, ""))
    live = read_live(workspace.root(lake), to_delete=True, on_progress=on_progress)
    refuse_others_lake(workspace, lake, live)
    if live.instance is None:
        refuse_lost_state(workspace, lake, read_recorded(workspace.stack_ref))
    unprotected = [address for address, table in live.tables.items() if not table.spec.deletion_protection]
    unprotected += [address for address, each in live.datasets.items() if not each.spec.deletion_protection]
    allowed = {*allow_destroy, *unprotected}
    live = live.with_applied(read_recorded(workspace.stack_ref).ids)
    plan = make_plan(
        lake.instance.name,
        Graph({}),
        live,
        owner=workspace.owner,
        allow_destroy=allowed,
        delete_savepoints=workspace.delete_savepoints,
    )
    plan = replace(plan, unreadable=())  # they are deleted like the others
    root = workspace.root(lake)
    plan = with_removals(workspace, lake, plan, live, root, allowed)
    with opened_policies(workspace, reporter) as policies:
        plan = judged(workspace, plan, lake, live, policies, declared=False)
    readable = replace(live, tables={a: table for a, table in live.tables.items() if a not in live.unreadable})
    engine = PlannedEngine(
        workspace,
        lake,
        lambda: stores_for(workspace, allow_destroy, (root, readable)),
        _deletions(plan, root, instance=True),
    )
    return Planned(plan, lake, engine, {}, live, frozenset(allow_destroy))


def _note_output(reporter: Reporter, event: Event) -> None:
    """Reports the output of the program, with the prefix `program: `."""
    if isinstance(event, ProgramOutput):
        reporter.note(f"program: {event.text}")


def _with_work_place(workspace: Workspace, lake: Lake, plan: Plan, engine: PlannedEngine) -> Plan:
    """Adds to the plan where tables are rewritten and indexes of large tables are built: on this machine, or on the
    instance's cluster on AWS. The provider then gets the address of that cluster."""
    if not rewrites_tables(plan, lake) and not builds_large_indexes(plan):
        return plan
    from deployer.app.stack.state import stack_outputs
    from deployer.compute.jobs.code import OUTPUT as CODE
    from deployer.compute.running.connect import OUTPUT as CLUSTERS
    from deployer.compute.running.table_jobs import cluster_of
    from deployer.compute.schedules.schedules import default_cluster
    from deployer.provider.resources.run_context import OUTPUTS_VARIABLE

    if default_cluster(lake.instance.clusters) is None:
        return with_build_place(plan, _local_place(lake))
    outputs = {key: value for key, value in stack_outputs(workspace, engine()).items() if key in (CLUSTERS, CODE)}
    cluster = cluster_of(lake.instance, outputs)
    if cluster is None:
        return with_place(plan, lake, _not_made_yet(lake))
    engine.stores.outputs = outputs
    os.environ[OUTPUTS_VARIABLE] = json.dumps(outputs)
    return with_place(plan, lake, f"on cluster {cluster.name} ({cluster.kind})")


def _local_place(lake: Lake) -> str:
    """Returns the place where indexes are built if no cluster on AWS is declared."""
    from deployer.compute.clusters import local_default

    cluster = local_default(lake.instance.clusters)
    return "on this machine" if cluster is None else f"in parts on cluster {cluster.name} (local)"


def _not_made_yet(lake: Lake) -> str:
    """Returns the place of rewrites while the declared cluster does not exist yet, with the command that creates it."""
    first = f"`deployer up --target {lake.instance.address}` makes it first"
    return f"on this machine, as the stack has not made the declared cluster yet; {first}"
