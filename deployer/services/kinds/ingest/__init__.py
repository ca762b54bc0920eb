"""INGEST: loads each new file of a place once, as a table's `ingest` declares it.

The rest of `deployer.services` and `deployer.cli` may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.services.definition import ServiceDefinition, Work

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from deployer.services.kinds.ingest.options import IngestOptions
    from deployer.services.kinds.ingest.results import IngestFilesResult
    from deployer.tables.open_table import ReadTable


def _options(declared: Mapping[str, Any]) -> IngestOptions:
    from deployer.services.kinds.ingest.options import IngestOptions

    return IngestOptions.of(declared)


def _work(work: Work[IngestOptions]) -> IngestFilesResult:
    from deployer.services.kinds.ingest.job import FilesRun

    return FilesRun(work.table, work.options, work.run_id, work.session, work.engine, work.on_progress).run()


def _result() -> type[IngestFilesResult]:
    from deployer.services.kinds.ingest.results import IngestFilesResult

    return IngestFilesResult


def _forecast(table: ReadTable) -> str:
    from deployer.services.kinds.ingest.view import forecast

    return forecast(table)


INGEST = ServiceDefinition("INGEST", _options, _work, _result, _forecast)
ingest_files = INGEST.run
