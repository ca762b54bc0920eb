"""BACKFILL: computes computed columns for the rows that lack them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.services.backfill.options import BackfillOptions
from deployer.services.definition import ServiceDefinition, Work

if TYPE_CHECKING:
    from deployer.services.backfill.results import BackfillResult
    from deployer.tables.open_table import ReadTable


def _work(work: Work[BackfillOptions]) -> BackfillResult:
    from deployer.services.backfill.job import backfill_columns

    return backfill_columns(work)


def _result() -> type[BackfillResult]:
    from deployer.services.backfill.results import BackfillResult

    return BackfillResult


def _forecast(table: ReadTable) -> str:
    from deployer.services.backfill.job import forecast

    return forecast(table)


BACKFILL = ServiceDefinition("BACKFILL", BackfillOptions.of, _work, _result, _forecast)
