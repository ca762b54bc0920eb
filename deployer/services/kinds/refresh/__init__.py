"""REFRESH: brings a view up to date with its query, from the changes in the tables that it reads.

The rest of `deployer.services` may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.services.definition import ServiceDefinition, Work
from deployer.services.kinds.refresh.options import RefreshOptions

if TYPE_CHECKING:
    from deployer.tables.open_table import ReadTable
    from deployer.views.refresh.results import RefreshJobResult


def _work(work: Work[RefreshOptions]) -> RefreshJobResult:
    from deployer.services.kinds.refresh.job import refresh_view

    return refresh_view(work)


def _result() -> type[RefreshJobResult]:
    from deployer.views.refresh.results import RefreshJobResult

    return RefreshJobResult


def _forecast(table: ReadTable) -> str:
    from deployer.services.kinds.refresh.job import forecast

    return forecast(table)


REFRESH = ServiceDefinition("REFRESH", RefreshOptions.of, _work, _result, _forecast)
