"""BACKFILL: computes computed columns for the rows that lack them.

Its work is `deployer.columns.backfill`, which lies above the services since it is a run like theirs. So the module is
named here, and imported where a run begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, cast

from deployer.services.definition import ServiceDefinition, Work
from deployer.specs.schema.services import all_options, declared_options

if TYPE_CHECKING:
    from deployer.services.backfill.results import BackfillResult
    from deployer.tables.open_table import ReadTable

_WORK = "deployer.columns.backfill.service"

OnChange = Literal["keep", "recompute"]


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """`columns`: those to compute; empty for all computed columns. `on_change`: whether values of another version of a
    definition stay. The others are as in `BackfillRequest`."""

    columns: tuple[str, ...] = ()
    on_change: OnChange = "keep"
    commit_granularity: int = 64
    concurrency: int = 8

    @staticmethod
    def of(declared: Mapping[str, Any]) -> BackfillOptions:
        """Reads options as specs write them; omitted ones have their defaults."""
        options = all_options("BACKFILL", declared_options("BACKFILL", declared))
        return BackfillOptions(
            tuple(options.get("columns") or ()),
            cast("OnChange", options["on_change"]),
            options["commit_granularity"],
            options["concurrency"],
        )


def _work(work: Work[BackfillOptions]) -> BackfillResult:
    done: BackfillResult = import_module(_WORK).backfill_columns(work)
    return done


def _result() -> type[BackfillResult]:
    from deployer.services.backfill.results import BackfillResult

    return BackfillResult


def _forecast(table: ReadTable) -> str:
    found: str = import_module(_WORK).forecast(table)
    return found


BACKFILL = ServiceDefinition("BACKFILL", BackfillOptions.of, _work, _result, _forecast)
