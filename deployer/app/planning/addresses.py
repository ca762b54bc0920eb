"""The check of addresses in options against the plan. Without it, a mistyped address would silently allow nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from pathlib import Path

from deployer.errors import InvalidInput
from deployer.plan import Plan
from deployer.plan.targeting.targets import nearest_address


def check_addresses(option: str, given: Collection[str], plan: Plan) -> None:
    """Raises InvalidInput for the first of `given` that is not a resource of the plan, with the nearest one."""
    known = [resource.address for resource in plan.resources]
    known += [resource.live_address for resource in plan.resources if resource.live_address]
    known += [removal.address for removal in plan.removals]
    known += [item.address.rpartition(" ")[2] for item in plan.foreign]  # of other providers: type and name
    known += [table.address for table in plan.unreadable]
    for address in given:
        if address in known:
            continue
        near = nearest_address(address, known)
        remedy = "leave it out, or write an address such as table/nyc.flights"
        if plan.targets is not None:  # the nearest address may be another resource
            remedy = f"leave it out, or target it too: --target {address}"
        elif near in known:
            remedy = f"did you mean {near}?"
        raise InvalidInput(
            f"{option} {address}: nothing in the plan has this address",
            where=f"instance/{plan.instance}",
            remedy=remedy,
        )


def table_name(path: str) -> str:
    """Returns a table name made from a file name; letters lose their accents."""
    path = "".join(each for each in unicodedata.normalize("NFKD", path) if not unicodedata.combining(each))
    stem = re.sub(
        r"(\.(gz|zst|parquet|pq|csv|tsv|jsonl?|ndjson|arrows?|feather|ipc|lance))+$", "", Path(path).name.lower()
    )
    name = re.sub(r"[^a-z0-9_]+", "_", stem).strip("_")
    return name if re.match(r"[a-z_]", name) else f"t_{name}" if name else "table"


def split_name(table: str) -> tuple[str, str]:
    """Returns database and name of `database.name`; raises InvalidInput for anything else."""
    from deployer.errors import InvalidInput

    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}\.[A-Za-z_][A-Za-z0-9_]{0,127}", table):
        raise InvalidInput(f"{table!r} is not the name of a table", remedy="write database.name: letters, digits and _")
    database, _, name = table.partition(".")
    return database, name
