"""The resources that a run may delete, and the tables that it may rename: those that its plan showed.

Pulumi's state is an untrusted file: a resource in it names a root and a table's id. So the provider deletes only
resources that the run's plan showed. Where Pulumi is run without deployer this plan file does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from deployer.errors import InvalidInput, Refused

#: the variable for a provider that the Pulumi CLI starts as a process: `Deletions.as_text`
DELETIONS_VARIABLE = "DEPLOYER_DELETIONS"


@dataclass(frozen=True, slots=True)
class Deletions:
    """Tables and datasets by id, of the instance at `root` (an absolute path or URI), and whether the instance itself
    is deleted."""

    root: str = ""
    tables: frozenset[str] = frozenset()
    instance: bool = False
    renames: frozenset[str] = frozenset()  #: renamed tables, by id too

    def as_text(self) -> str:
        return json.dumps(
            {
                "root": self.root,
                "tables": sorted(self.tables),
                "instance": self.instance,
                "renames": sorted(self.renames),
            }
        )

    @staticmethod
    def of_environment(environment: Mapping[str, str]) -> Deletions | None:
        """Returns the value of the variable; None without it: then only protection limits deletions."""
        text = environment.get(DELETIONS_VARIABLE)
        if text is None:
            return None
        try:
            found = json.loads(text)
            tables, renames = (frozenset(map(str, found[name])) for name in ("tables", "renames"))
            return Deletions(str(found["root"]), tables, bool(found["instance"]), renames)
        except (KeyError, TypeError, ValueError):
            raise InvalidInput(
                f"{DELETIONS_VARIABLE} cannot be read", remedy="unset it: `deployer` sets it for its own runs"
            ) from None

    def require(self, root: str, address: str, table_id: str | None) -> None:
        """Raises Refused unless the plan deletes the table, or without an id the instance."""
        if root.rstrip("/") == self.root.rstrip("/") and (
            self.instance if table_id is None else table_id in self.tables
        ):
            return
        raise Refused(
            f"the plan of this run does not delete it, so neither does Pulumi ({root})",
            where=address,
            remedy="write `renamed_from` where it has another name now; else check `deployer stack export`: Pulumi's "
            "state has a resource that this lake does not have under that name",
        )
