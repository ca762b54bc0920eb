"""The owner of a lake: only the stack that applied a lake may plan, change and destroy it, and only under its name."""

from __future__ import annotations

from collections.abc import Collection

from deployer.app.stack.fast_path import Recorded
from deployer.app.workspace import Workspace
from deployer.errors import Corrupt, DeployerError, Refused
from deployer.live.model import LiveLake, LiveTable
from deployer.platform.text.formatting import count
from deployer.specs.model import Lake, TableSpec
from deployer.specs.types.dataset import DatasetSpec
from deployer.state.model.declared_properties import DEFAULT_DATABASE

_NAMED = 5  #: the most tables that an error names


def refuse_others_lake(workspace: Workspace, lake: Lake, live: LiveLake) -> None:
    """Raises Refused when another stack manages the live instance, or tables that these specs declare.

    What Pulumi's state of this stack has belongs to this stack, whatever the stack's name was when it was applied.
    """
    owner = workspace.owner
    others = {live.owner} - {"", owner} if live.instance is not None else set()
    declared = {spec.address: table for spec in lake.tables if isinstance(table := live.of(spec), LiveTable)}
    tables = {address: table for address, table in declared.items() if table.owner not in ("", owner)}
    if not others and not tables:
        return
    held = _held(workspace, lake)
    if others and live.instance is not None and live.instance.address not in held:
        [other] = others
        raise Refused(
            f"stack {other} manages the lake at {workspace.root(lake)}, not {owner}",
            where=live.instance.address,
            remedy=_remedy(
                owner, others, "give this stack a lake of its own: another `root`, such as `lakes/${stack}`"
            ),
        )
    tables = {address: table for address, table in tables.items() if address not in held}
    if tables:
        others = {table.owner for table in tables.values()}
        more = f" and {len(tables) - _NAMED:,} more" if len(tables) > _NAMED else ""
        whose = (
            f"stack {next(iter(others))} manages" if len(others) == 1 else f"stacks {', '.join(sorted(others))} manage"
        )
        raise Refused(
            f"{whose} {count(len(tables), 'table')} that these specs declare, not {owner}: "
            f"{', '.join(sorted(tables)[:_NAMED])}{more}",
            where=f"instance/{lake.instance.name}",
            remedy=_remedy(owner, others, "remove them from these specs"),
        )


def refuse_other_name(workspace: Workspace, lake: Lake, live: LiveLake) -> None:
    """Raises Refused when the specs give the live instance another name. An instance cannot be renamed."""
    declared = lake.instance
    if live.instance is None or live.instance.name == declared.name:
        return
    raise Refused(
        f"the lake at {workspace.root(lake)} is instance {live.instance.name}, and an instance keeps its name; "
        "nothing was changed",
        where=declared.sources.get("name") or declared.address,
        remedy=f"write `name: {live.instance.name}` again, or give {declared.name} a `root` of its own",
    )


def refuse_taken_names(lake: Lake, live: LiveLake) -> None:
    """Raises Refused when a new table or dataset has the name of an external table of the catalog."""
    new: list[TableSpec | DatasetSpec] = [each for each in lake.tables if live.of(each) is None]
    new += [each for each in lake.datasets if each.address not in live.datasets]
    taken = [each for each in new if _name_of_entry(each) in live.entries]
    if taken:
        raise Refused(
            "the catalog has external tables with these names, which its clients made: "
            f"{', '.join(each.address for each in taken)}; nothing was changed",
            where=taken[0].sources.get("name") or taken[0].address,
            remedy="choose another name, or rename or delete the external table with a client of the catalog",
        )


def _name_of_entry(spec: TableSpec | DatasetSpec) -> str:
    """Returns the name that the spec's entry in the catalog would have."""
    if isinstance(spec, DatasetSpec):
        return spec.name if "." in spec.name else f"{DEFAULT_DATABASE}.{spec.name}"
    return spec.full_name


def refuse_shared_tables(recorded: Recorded) -> None:
    """Raises Corrupt when Pulumi's state has one table under two addresses, so that the right address is unknown."""
    seen: dict[str, str] = {}
    for address, table_id in sorted(recorded.ids.items()):
        first = seen.setdefault(table_id, address)
        if first != address and address.startswith("table/"):
            raise Corrupt(
                f"Pulumi's state has the same table as {first} and as {address}",
                where=address,
                remedy="correct the id of one of them: `deployer stack export`, edit the file, `deployer stack import`",
            )


def _remedy(owner: str, others: Collection[str], otherwise: str) -> str:
    """Returns the remedy: the option `--stack` with the owner where the owner is a stack of this project, or
    `otherwise`."""
    project = owner.rpartition("/")[0]
    stacks = sorted(other.rpartition("/")[2] for other in others if other.rpartition("/")[0] == project)
    return f"give --stack {' or '.join(stacks)}, or {otherwise}" if stacks else f"use their project, or {otherwise}"


def _held(workspace: Workspace, lake: Lake) -> Collection[str]:
    """Returns the addresses in Pulumi's state of the stack. They are empty for a stack without state, because reading
    it by the engine would create it."""
    from deployer.app.stack.engine import engine_for
    from deployer.app.stack.state import applied_resources
    from deployer.engine.persistence.backend import stack_files

    try:
        files = stack_files(workspace.stack_ref)
    except DeployerError:
        files = None  # in another backend: only the engine can read it
    if files is not None and not files.has_state():
        return ()
    return applied_resources(workspace, engine_for(workspace, lake)).keys()
