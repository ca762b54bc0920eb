"""Names of the databases of METASYNC in AWS Glue's catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deployer.specs.model import Lake, TableSpec


def glue_database(instance: str, database: str, target: Mapping[str, Any]) -> str:
    """Returns the Glue database to which a target of METASYNC publishes the tables of a database.

    It is the database that the target names, else `INSTANCE_DATABASE` in lower case, with `_` for other characters.
    """
    return str(target.get("database") or re.sub(r"[^a-z0-9_]", "_", f"{instance}_{database}".lower())[:255])


def glue_targets(table: TableSpec) -> Iterator[Mapping[str, Any]]:
    """Yields the targets of the table's METASYNC service that have the type `glue`."""
    for service in table.services:
        targets: Any = service.options.get("targets", ()) if not service.unsafe_raw else ()
        if service.kind == "METASYNC":
            yield from (target for target in targets if target["type"] == "glue")


def own_glue_databases(lake: Lake) -> dict[str, str | None]:
    """Returns the Glue databases that the stack itself creates, with their regions. These are the databases in the
    account's own catalog whose names no target declares."""
    return {
        glue_database(lake.instance.name, table.database, target): target.get("region")
        for table in sorted(lake.tables, key=lambda each: each.full_name)
        for target in glue_targets(table)
        if "database" not in target and "catalog_id" not in target
    }
