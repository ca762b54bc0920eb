"""Targets: the resources that `--target` limits a run to, by address or glob, and the texts about them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from deployer.errors import InvalidInput
from deployer.live.model import LiveLake
from deployer.plan import changes as c
from deployer.platform.text.formatting import count
from deployer.specs.model import Lake
from deployer.specs.validation.plain_values import optional_text, optional_whole, texts, whole

_KINDS = ("instance/", "table/", "dataset/")
_NAMED = 5  #: how many addresses and globs are shown
#: changes of the instance without which tables would be searched at a wrong place
_PLACES = (c.CreateInstance, c.ChangeRoot, c.ChangeStateBackend)

_Names = frozenset[str]  #: all addresses of one resource: the declared, the live and the applied one


@dataclass(frozen=True, slots=True)
class Targets:
    """The resources that a run is limited to.

    `given` are the addresses and globs as the user wrote them, `addresses` all names of the included resources.
    `needed` is the instance's address if it is included only because the targets need it, otherwise empty. `others`
    counts the excluded resources of the stack; `differ` counts those of them that differ, None where that is unknown.
    """

    given: tuple[str, ...]
    addresses: frozenset[str]
    needed: str = ""
    others: int = 0
    differ: int | None = None

    def needing(self, instance: str) -> Targets:
        """Returns the targets with the instance, which they need; unchanged where the instance is a target."""
        if instance in self.addresses:
            return self
        return replace(self, addresses=self.addresses | {instance}, needed=instance, others=self.others - 1)


def resolve_targets(
    given: Sequence[str], lake: Lake, live: Mapping[str, str], applied: Mapping[str, str] | None = None
) -> Targets:
    """Returns the resources that addresses and globs name: declared, live, or applied before.

    `live` are addresses of the state store's tables by id, `applied` the ids in Pulumi's state by address. Raises
    InvalidInput for the first of `given` without a match, with the nearest existing name.
    """
    declared = _declared(lake, frozenset(live.values()))
    covered = frozenset[str]().union(*declared)
    before = [frozenset({address, live.get(id_, address)}) for address, id_ in (applied or {}).items()]
    removed = [names for names in before if not names & covered]
    resources = [*declared, *before, *(frozenset({address}) for address in live.values())]
    known = sorted(frozenset[str]().union(*resources))
    found: set[str] = set()
    for pattern in given:
        found |= _matches(pattern, known, lake)
    while more := {name for names in resources if names & found for name in names} - found:
        found |= more
    others = sum(not names & found for names in (*declared, *removed))
    return Targets(tuple(dict.fromkeys(given)), frozenset(found), others=others)


def _declared(lake: Lake, live: frozenset[str]) -> list[_Names]:
    """Returns the names of each declared resource: a renamed table also has its former name until the rename is
    applied."""
    addresses = {table.address for table in lake.tables}
    resources = [frozenset({lake.instance.address}), *(frozenset({each.address}) for each in lake.datasets)]
    for table in lake.tables:
        former = f"table/{table.former_name}" if table.former_name else table.address
        pending = table.address not in live and former not in addresses
        resources.append(frozenset({table.address, former} if pending else {table.address}))
    return resources


def is_glob(pattern: str) -> bool:
    """Returns whether the text can match several resources."""
    return any(sign in pattern for sign in "*?[")


def matching(pattern: str, addresses: Collection[str]) -> set[str]:
    """Returns the addresses that match a target."""
    return {address for address in addresses if address == pattern or fnmatchcase(address, pattern)}


def _matches(pattern: str, known: Sequence[str], lake: Lake) -> set[str]:
    if found := matching(pattern, known):
        return found
    what = "no resource has an address like this" if is_glob(pattern) else "no resource has this address"
    near = nearest_address(pattern, known)
    raise InvalidInput(
        f"--target {pattern}: {what}",
        where=lake.instance.address,
        remedy=f"did you mean {near}?"
        if near
        else "write an address such as table/nyc.flights, or a glob: table/nyc.*",
    )


def nearest_address(given: str, known: Collection[str]) -> str | None:
    """Returns the address or glob that the user probably meant: with its kind in front, or with a similar spelling."""
    with_kind = [f"{kind}/{given}" for kind in sorted({address.partition("/")[0] for address in known})]
    if (found := next((each for each in with_kind if matching(each, known)), None)) is not None:
        return found
    tried = [(given, 0.6), *((each, 0.8) for each in with_kind)]
    near = (get_close_matches(each, sorted(known), 1, cutoff) for each, cutoff in tried)
    return next((each[0] for each in near if each), None)


def restricted(lake: Lake, targets: Targets) -> Lake:
    """Returns the lake with only the included tables and datasets; the instance stays."""
    tables = tuple(table for table in lake.tables if table.address in targets.addresses)
    datasets = tuple(dataset for dataset in lake.datasets if dataset.address in targets.addresses)
    return replace(lake, tables=tables, datasets=datasets)


def needs_instance(changes: Iterable[c.Change], lake: Lake, live: LiveLake) -> bool:
    """Returns whether the targets need the instance: it does not exist yet, or it lacks the cluster that may run their
    services. On AWS the resources that start services are applied with the instance.

    `changes` are those of the targets and of the instance, `lake` has only the targets' tables.
    """
    if live.instance is None:
        return True
    for change in changes:
        if isinstance(change, _PLACES) or (
            isinstance(change, c.ChangeClusters) and any(t.services for t in lake.tables)
        ):
            return True
        if lake.instance.root.startswith("s3://") and _is_of_services(change, live):
            return True
    return False


def _is_of_services(change: c.Change, live: LiveLake) -> bool:
    """Returns whether the change adds, removes or reschedules services, or renames their table; schedules are named
    after tables."""
    match change:
        case c.CreateTable(spec=spec):
            return bool(spec.services)
        case c.DeleteTable(address=address):
            table = live.tables.get(live.applied.get(address, address))
            return table is not None and bool(table.spec.services)
        case c.RenameTable():
            return True
        case _:
            return isinstance(change, c.ServiceChange)


def describe_targets(targets: Targets) -> str:
    """Returns one line that follows "Targeted: ": `table/geo.*; 12 other resources are not targeted; 3 of them
    differ`."""
    more = len(targets.given) - _NAMED
    given = ", ".join(targets.given[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
    parts = [given]
    if targets.needed:
        parts.append(f"{targets.needed} is included, because the targets need it")
    others = f"{count(targets.others, 'other resource')} {'is' if targets.others == 1 else 'are'} not targeted"
    parts.append(others if targets.others else "there is no other resource")
    if targets.differ is not None and targets.others:
        parts.append(f"{targets.differ:,} of them differ{'s' if targets.differ == 1 else ''}")
    return "; ".join(parts)


def targets_as_json(targets: Targets) -> dict[str, Any]:
    """Returns the targets, as a part of the plan's document."""
    return {
        "given": list(targets.given),
        "addresses": sorted(targets.addresses),
        "needed": targets.needed or None,
        "others": targets.others,
        "others_differ": targets.differ,
    }


def targets_from_json(form: Mapping[str, Any]) -> Targets:
    """Returns the targets of a saved plan. Raises InvalidInput for another form."""
    given, addresses = texts(form, "given"), frozenset(texts(form, "addresses"))
    if not given or not addresses:  # no targets would mean the whole lake
        raise InvalidInput("`targets` names no resource")
    for address in addresses:
        if not address.startswith(_KINDS) or is_glob(address):
            raise InvalidInput(
                f"`targets` has the address {address[:100]!r}, which is not of an instance, a table or a dataset"
            )
    needed = optional_text(form, "needed") or ""
    return Targets(given, addresses, needed, whole(form, "others"), optional_whole(form, "others_differ"))
