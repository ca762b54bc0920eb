"""BACKFILL: computes computed columns for the rows that lack them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.services.definition import ServiceDefinition, Work
from deployer.services.kinds.backfill.options import BackfillOptions

if TYPE_CHECKING:
    from deployer.services.kinds.backfill.results import BackfillResult
    from deployer.tables.open_table import ReadTable


def _work(work: Work[BackfillOptions]) -> BackfillResult:
    from deployer.services.kinds.backfill.job import backfill_columns

    return backfill_columns(work)


def _result() -> type[BackfillResult]:
    from deployer.services.kinds.backfill.results import BackfillResult

    return BackfillResult


def _forecast(table: ReadTable) -> str:
    from deployer.services.kinds.backfill.job import forecast

    return forecast(table)


BACKFILL = ServiceDefinition("BACKFILL", BackfillOptions.of, _work, _result, _forecast)
