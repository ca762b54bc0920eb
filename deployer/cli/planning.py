"""The plan of a command: what the engine would do, put into the planner's words."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from deployer.cli.addresses import check_addresses
from deployer.cli.lost_state import refuse_lost_state
from deployer.cli.monthly import with_cost
from deployer.cli.output import note
from deployer.cli.package import package_for
from deployer.cli.policies import judged, opened_policies
from deployer.cli.progress import STACK_REFERENCE, is_in_no_cloud
from deployer.cli.read_ahead import Ahead, reading_ahead
from deployer.cli.settled import Recorded, engine_would_agree, is_packaged_program, read_recorded
from deployer.cli.stack_owner import refuse_other_name, refuse_others_lake, refuse_shared_tables
from deployer.cli.targeting import Chosen, Scope, choose_targets, limited, recorded_of, refuse_unreached, scope_of
from deployer.cli.workspace import SPECS_KEY, Workspace
from deployer.compute.aws_schedules import default_cluster
from deployer.engine import Engine, Event, Operation, ProgramOutput, choose_engine, hold_stack, prepare_program
from deployer.engine.plugin_search import find_plugin
from deployer.errors import Corrupt, DeployerError, NotFound, Refused
from deployer.files.full_disk import settle_temporary_folder
from deployer.graph import Graph, build_graph
from deployer.live.model import LiveLake, Unreadable
from deployer.plan import Foreign, Plan, ResourcePlan, make_plan
from deployer.plan.changes import RenameTable
from deployer.plan.places import rewrites_tables, with_place
from deployer.plan.support import MOVE
from deployer.plan.targets import restricted
from deployer.provider.deletions import Deletions
from deployer.provider.urn import address_of, type_of
from deployer.specs import known_lake
from deployer.specs.model import Lake
from deployer.specs.root import resolve_root

if TYPE_CHECKING:
    from deployer.engine.refreshed import Refreshed
    from deployer.provider.stores import Stores

#: Why Pulumi does something to a resource of the lake that is as the specs declare it.
_LEFT = {"create": "it is there; Pulumi's state of this stack takes it over"}
_USUAL = frozenset(("lake", "aws"))  #: packages of the programs that projects start with
_CUT_OFF = "left over from a run that was cut off"
#: What programs import, which takes a while.
_OF_PROGRAMS = ("deployer.provider.sdk", "deployer.specs")
_OF_PROGRAMS_ON_AWS = ("pulumi_aws", "pulumi_aws.s3", "pulumi_aws.dynamodb")


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, the lake that it was made from, the engine that would apply it, and the live state that it read.

    With targets `lake` is the whole lake still, as the program declares it, and `live` has the targets alone.
    """

    plan: Plan
    lake: Lake
    engine: Callable[[], Engine]  #: made when it is asked for: it loads Pulumi's SDK
    config: Mapping[str, str]
    live: LiveLake
    allow_destroy: frozenset[str] = frozenset()
    deletions: Deletions = Deletions()  #: what Pulumi may delete: the tables, and the instance, that the plan deletes
    scope: Scope = Scope()  #: tables that cannot be read, and what is not targeted, are left alone by the engine
    refreshed: Refreshed | None = None  #: what the engine read for the plan, where it was asked


def plan_up(workspace: Workspace, allow_destroy: Collection[str], chosen: Chosen = ()) -> Planned:
    """What `up` would do, against live state refreshed first; `chosen` are the targets, if not everything is one."""
    if not is_packaged_program(workspace):
        prepare_for(workspace)
    with nullcontext(lambda: None) if chosen else reading_ahead(workspace) as received:
        lake = workspace.lake()
        ahead = received()
    planned = plan_lake(workspace, lake, allow_destroy, ahead, chosen)
    check_addresses("--allow-destroy", allow_destroy, planned.plan)
    return planned


def plan_lake(
    workspace: Workspace,
    lake: Lake,
    allow_destroy: Collection[str],
    ahead: Ahead | None = None,
    chosen: Chosen = (),
    *,
    ask_engine: bool = True,
) -> Planned:
    """What `up` would do if the specs declared `lake`, against live state refreshed first.

    `ahead` is live state that was just read, in case that it is of this lake. `chosen` are the targets, if not
    everything is one: of other tables nothing is read. Without `ask_engine` the program is not run, and the plan has
    the lake's own resources alone, which are all that policies see.
    """
    root = workspace.root(lake)
    planned_deletions: list[Deletions] = []  # known once there is a plan
    targets = None
    if ahead is not None and ahead.root == root and not chosen:
        live, recorded = ahead.live, ahead.recorded
        stores_of = cache(lambda: _stores(workspace, allow_destroy, (root, live), lake))
    else:
        stores = _stores(workspace, allow_destroy, declares=lake)
        recorded = read_recorded(workspace.stack_ref)
        targets = choose_targets(chosen, lake, stores.addresses(root), recorded) if chosen else None
        live = stores.live_lake(root, targets.addresses if targets else None)
        stores_of = cache(lambda: stores)
    refuse_shared_tables(recorded)
    live = live.with_applied(recorded.ids)
    wanted = restricted(lake, targets) if targets else lake
    made = cache(lambda: _engine(workspace, lake, stores_of()))

    def engine() -> Engine:
        _allow(stores_of(), planned_deletions[-1] if planned_deletions else Deletions(root))
        return made()

    config = {SPECS_KEY: str(workspace.specs)}
    refuse_others_lake(workspace, wanted, live)
    refuse_other_name(workspace, wanted, live)
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
    plan = _with_place(workspace, wanted, plan, made, stores_of)
    if targets is not None:
        plan = limited(workspace, plan, wanted, live, recorded, targets)
    plan, live = _looked_up(plan, wanted, live, root)
    plan = _with_removals(workspace, lake, plan, live, root, allow_destroy)
    scope = scope_of(workspace, plan.targets, lake, live, recorded)
    refreshed: Refreshed | None = None
    with opened_policies(workspace) as policies:
        known = recorded_of(recorded, plan.targets)
        if ask_engine and not engine_would_agree(workspace, root, plan, known):
            prepare_for(workspace, lake)
            package_for(workspace, lake)
            _tell_plugins(workspace, recorded)
            with known_lake(workspace.dir, workspace.specs, lake, workspace.stack):
                found = engine().preview(
                    workspace.stack_ref,
                    on_event=_show_output,
                    targets=scope.targets,
                    allow_destroy=frozenset(allow_destroy),
                    config=config,
                    leave=scope.leave,
                )
                refreshed = found.refreshed
                refuse_unreached(plan, scope, found.operations)
                plan = _with_foreign(plan, found.operations)
        planned_deletions.append(_deletions(plan, root))
        plan = judged(workspace, plan, wanted, live, policies)
    plan = with_cost(workspace, plan, wanted, live, recorded.aws)
    allowed = frozenset(allow_destroy)
    return Planned(plan, lake, engine, config, live, allowed, planned_deletions[-1], scope, refreshed)


def _tell_plugins(workspace: Workspace, recorded: Recorded) -> None:
    """Notes the programs that are started because Pulumi's state names their providers, the usual ones aside."""
    for package in sorted(recorded.packages - _USUAL):
        try:
            started = f"{find_plugin(package, workspace.project.plugins, workspace.dir)} is started"
        except DeployerError:
            started = "its plugin was not found"  # the engine says what to do, or the Pulumi CLI finds it
        note(f"Pulumi's state names the provider {package}: {started}")


def _looked_up(plan: Plan, lake: Lake, live: LiveLake, root: str) -> tuple[Plan, LiveLake]:
    """The plan with what the rows of its tables say of the changes; tables whose rows cannot be read are unreadable.

    Raises InvalidInput for a new default that takes more than a plan may.
    """
    if plan.changes:
        from deployer.tables.default_trial import refuse_defaults_over_limits

        refuse_defaults_over_limits(lake, live)
    tables = {table.table_id: table for table in live.tables.values()}
    found: list[ResourcePlan] = []
    lost: list[Unreadable] = []
    for resource in plan.resources:
        table = tables.get(resource.table_id) if resource.changes and resource.table_id else None
        if table is None:
            found.append(resource)
            continue
        from deployer.live.lance_failures import lance_in_words
        from deployer.tables.column_sizes import sized_on_disk
        from deployer.tables.schema_check import checked_on_data  # it loads Arrow's functions

        try:
            with lance_in_words(f"{root.rstrip('/')}/{table.location}"):
                alone = replace(plan, resources=(resource,))
                found += sized_on_disk(checked_on_data(alone, live, root), live, root).resources
        except (Corrupt, NotFound) as error:
            where = f"{error.where}: {error.what}"
            lost.append(Unreadable(table.spec.address, table.table_id, where, error.remedy))
    plan = replace(plan, resources=tuple(found), unreadable=(*plan.unreadable, *lost))
    for each in lost:
        live = live.without(each)
    return plan, live


def _with_removals(
    workspace: Workspace, lake: Lake, plan: Plan, live: LiveLake, root: str, allow_destroy: Collection[str]
) -> Plan:
    if not live.unfinished and not any(table.former for table in live.tables.values()):
        return plan
    from deployer.tables.foreseen_removals import foreseen_removals  # it loads Arrow

    now = time.time_ns() // 1_000_000
    found = foreseen_removals(
        plan, live, root, desired=lake, owner=workspace.owner, allow_destroy=allow_destroy, now=now
    )
    return replace(plan, removals=found)


def _deletions(plan: Plan, root: str, *, instance: bool = False) -> Deletions:
    """What the plan deletes and renames, as the provider is told."""
    deleted = {each.table_id for each in plan.resources if each.action == "delete" and each.table_id}
    unfinished = {each.table_id for each in plan.removals if each.kind == "deleting"}
    renamed = {each.table_id for each in plan.resources if any(isinstance(c.change, RenameTable) for c in each.changes)}
    return Deletions(root, frozenset(deleted | unfinished), instance, frozenset(renamed))


def _allow(stores: Stores, deletions: Deletions) -> None:
    """Lets the provider of this process, and one that the Pulumi CLI starts, delete these and nothing else."""
    from deployer.provider.deletions import DELETIONS_VARIABLE

    stores.deletions = deletions
    os.environ[DELETIONS_VARIABLE] = deletions.as_text()


def _refuse_unmoved(workspace: Workspace, lake: Lake, recorded: Recorded) -> None:
    """Raises Refused when nothing is at the declared root, and the lake is still where the stack applied it."""
    instance = lake.instance
    before = recorded.roots.get(instance.address)
    if before is None or workspace.root(lake) == (old := resolve_root(workspace.dir, before)):
        return
    if read_live(old).instance is not None:
        raise Refused(
            f"the lake is at {before}, and the specs say {instance.root}, where there is none; nothing was changed",
            where=instance.sources.get("root") or instance.address,
            remedy=f"write `root: {before}` again, or {MOVE}",
        )


def plan_destroy(workspace: Workspace, lake: Lake, allow_destroy: Collection[str]) -> Planned:
    """What `destroy` would do. Tables that are not protected need no permission of their own.

    A table that cannot be read is deleted too. It counts as protected where its log does not tell.
    """
    live = read_live(workspace.root(lake), to_delete=True)
    refuse_others_lake(workspace, lake, live)
    if live.instance is None:
        refuse_lost_state(workspace, lake, read_recorded(workspace.stack_ref))
    unprotected = [address for address, table in live.tables.items() if not table.spec.deletion_protection]
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
    plan = replace(plan, unreadable=())  # they are deleted as the others are
    root = workspace.root(lake)
    plan = _with_removals(workspace, lake, plan, live, root, allowed)
    with opened_policies(workspace) as policies:
        plan = judged(workspace, plan, lake, live, policies, declared=False)
    deletions = _deletions(plan, root, instance=True)
    readable = replace(live, tables={a: table for a, table in live.tables.items() if a not in live.unreadable})
    stores_of = cache(lambda: _stores(workspace, allow_destroy, (root, readable)))
    made = cache(lambda: _engine(workspace, lake, stores_of()))

    def engine() -> Engine:
        _allow(stores_of(), deletions)
        return made()

    return Planned(plan, lake, engine, {}, live, frozenset(allow_destroy), deletions)


def read_live(root: str, *, to_delete: bool = False) -> LiveLake:
    """The lake at `root`; an empty one where there is none yet.

    `to_delete`: tables that cannot be read are among the others, as far as they are known.
    """
    from deployer.live.reader import as_far_as_known, read_lake  # it loads Arrow
    from deployer.state import open_reader

    try:
        with closing(open_reader(root)) as store:
            live = read_lake(store, root)
            return as_far_as_known(store, live) if to_delete else live
    except NotFound:
        return LiveLake(None)


def prepare_for(workspace: Workspace, lake: Lake | None = None) -> None:
    """Begins to load what the program needs, in its own process, while this one goes on."""
    if lake is None:
        prepare_program(workspace.project, "auto", *_OF_PROGRAMS)
        return
    on_aws = _OF_PROGRAMS_ON_AWS if lake.instance.root.startswith("s3://") else ()
    prepare_program(workspace.project, lake.instance.engine, *_OF_PROGRAMS, *on_aws)


def _show_output(event: Event) -> None:
    """What the program prints is told apart from what deployer says."""
    if isinstance(event, ProgramOutput):
        note(f"program: {event.text}")


def held(workspace: Workspace, lake: Lake) -> AbstractContextManager[None]:
    """Keeps other runs off the stack for the time of a block, so that what is planned in it is what is applied.

    Raises Conflict, naming who has it, while another run holds it.
    """
    return hold_stack(workspace.stack_ref, lake.instance.engine)


def engine_for(workspace: Workspace, lake: Lake, allow_destroy: Collection[str] = ()) -> Engine:
    """The engine that runs the stack's program, with the provider of lakes in this process, which deletes nothing."""
    stores = _stores(workspace, allow_destroy)
    _allow(stores, Deletions())
    return _engine(workspace, lake, stores)


def _stores(
    workspace: Workspace,
    allow_destroy: Collection[str],
    found: tuple[str, LiveLake] | None = None,
    declares: Lake | None = None,
) -> Stores:
    """The stores of a run; `found` is a root and what was found there already, `declares` what was planned for."""
    from deployer.provider.declared import Declared
    from deployer.provider.stores import Stores  # it loads Arrow, which a plan of what was read ahead can do without

    stores = Stores(workspace.dir, allow_destroy, Declared(declares) if declares else None)
    stores.new_state = workspace.new_state
    stores.delete_savepoints = workspace.delete_savepoints
    if found is not None:
        stores.found_before(*found)
    return stores


def _engine(workspace: Workspace, lake: Lake, stores: Stores) -> Engine:
    settle_temporary_folder()
    from deployer.provider import stores as variables
    from deployer.provider.provider import LakeProvider  # it loads Pulumi's SDK, which an empty plan can do without

    os.environ[variables.ALLOW_DESTROY_VARIABLE] = ",".join(sorted(stores.allow_destroy))
    os.environ[variables.OUTPUTS_VARIABLE] = ""
    os.environ[variables.DELETE_SAVEPOINTS_VARIABLE] = "1" if stores.delete_savepoints else ""
    os.environ[variables.NEW_STATE_VARIABLE] = "1" if stores.new_state else ""
    return choose_engine(workspace.project, lake.instance.engine, providers={"lake": LakeProvider(stores)})


def _with_place(
    workspace: Workspace, lake: Lake, plan: Plan, engine: Callable[[], Engine], stores: Callable[[], Stores]
) -> Plan:
    """The plan, which says where tables are written anew; the provider hears of the cluster, if it is on AWS."""
    if not rewrites_tables(plan, lake):
        return plan
    from deployer.cli.stack_state import stack_outputs
    from deployer.compute.connect import OUTPUT as CLUSTERS
    from deployer.compute.job_code import OUTPUT as CODE
    from deployer.compute.rewriting import cluster_of
    from deployer.provider.stores import OUTPUTS_VARIABLE

    if default_cluster(lake.instance.clusters) is None:
        return plan
    outputs = {key: value for key, value in stack_outputs(workspace, engine()).items() if key in (CLUSTERS, CODE)}
    cluster = cluster_of(lake.instance, outputs)
    if cluster is None:
        return with_place(plan, lake, "on this machine, as the stack has made no cluster for it yet")
    stores().outputs = outputs
    os.environ[OUTPUTS_VARIABLE] = json.dumps(outputs)
    return with_place(plan, lake, f"on cluster {cluster.name} ({cluster.kind})")


def _with_foreign(plan: Plan, operations: Collection[Operation]) -> Plan:
    return replace(plan, foreign=tuple(_foreign(plan, operations)))


def _foreign(plan: Plan, operations: Collection[Operation]) -> Iterator[Foreign]:
    """Operations that the planner did not say: those of other providers, and what only Pulumi's state needs."""
    planned = {(resource.address, resource.action) for resource in plan.resources if resource.changes}
    unreadable = {table.address for table in plan.unreadable}
    ended = {removal.table_id for removal in plan.removals if removal.kind == "deleting"}  # before the engine runs
    for operation in operations:
        if operation.op == "refresh" or is_in_no_cloud(operation.type, custom=operation.custom):
            continue
        if operation.op == "read" and operation.type == STACK_REFERENCE:
            continue
        address = address_of(operation.urn)
        if operation.op == "same":
            if operation.not_compared:
                what = address or f"{type_of(operation.urn)} {operation.name}"
                secrets = ", ".join(operation.not_compared)
                yield Foreign(what, "may change", f"a preview decrypts nothing, so {secrets} cannot be compared")
            continue
        if address is None:
            yield Foreign(f"{type_of(operation.urn)} {operation.name}", operation.op, operation.reason)
        elif address not in unreadable and (address, operation.op) not in planned and operation.id not in ended:
            yield Foreign(address, operation.op, operation.reason or _LEFT.get(operation.op, _CUT_OFF))
