"""Options of BACKFILL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from deployer.specs.schema.services import all_options, declared_options

OnChange = Literal["keep", "recompute"]


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """The options of BACKFILL. `columns` are the columns to compute; empty means all computed columns. `on_change`:
    whether values of another version of a definition stay. The others are as in `BackfillRequest`."""

    columns: tuple[str, ...] = ()
    on_change: OnChange = "keep"
    commit_granularity: int = 64
    concurrency: int = 8

    @staticmethod
    def of(declared: Mapping[str, Any]) -> BackfillOptions:
        """Returns the options from their form in specs; omitted ones have their defaults."""
        options = all_options("BACKFILL", declared_options("BACKFILL", declared))
        return BackfillOptions(
            tuple(options.get("columns") or ()),
            cast("OnChange", options["on_change"]),
            options["commit_granularity"],
            options["concurrency"],
        )
