"""Addresses that options name, checked against the plan: one that is mistyped would allow nothing, without a word."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from deployer.errors import InvalidInput
from deployer.plan import Plan
from deployer.plan.changes import RenameTable


def check_addresses(option: str, given: Collection[str], plan: Plan) -> None:
    """Raises InvalidInput for the first of `given` that is no resource of the plan, with the nearest that is."""
    known = [resource.address for resource in plan.resources]
    known += [f"table/{each.change.before}" for each in plan.changes if isinstance(each.change, RenameTable)]
    known += [removal.address for removal in plan.removals]
    known += [item.address.rpartition(" ")[2] for item in plan.foreign]  # of other providers: type and name
    known += [table.address for table in plan.unreadable]
    for address in given:
        if address in known:
            continue
        alone = [each for each in known if each.partition("/")[2] == address]
        near = alone or get_close_matches(address, known, 1, 0.6)
        raise InvalidInput(
            f"{option} {address}: nothing in the plan has this address",
            where=f"instance/{plan.instance}",
            remedy=f"did you mean {near[0]}?"
            if near
            else "leave it out, or write an address such as table/nyc.flights",
        )
