"""The job of a load: loads sources into a table exactly once, then splits leaves and updates indexes.

The job makes another attempt where other loads have added the same unique keys meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from deployer.errors import KeysTaken
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.tables.ingest.attempt import LoadAttempt
from deployer.tables.ingest.request import CommitLoad, IngestRequest, IngestResult, LoadWithSpark
from deployer.tables.layout.indexes.build import catch_up
from deployer.tables.layout.partitions.split import split_after_load
from deployer.tables.open_table import OpenTable

ATTEMPTS = 5  #: attempts of a load while others keep adding rows with the same keys


def ingest(
    table: OpenTable,
    request: IngestRequest,
    with_spark: LoadWithSpark,
    on_progress: OnProgress = no_progress,
    on_engine: Callable[[str, str], None] = lambda _engine, _reason: None,
    on_note: Callable[[str], None] = lambda _note: None,
    new_id: str | None = None,
    commit_load: CommitLoad | None = None,
) -> IngestResult:
    """Loads all sources as one version of the table, or nothing. Then splits leaves above the limit that the table
    declares, and updates its indexes. The result reports failed splits and index updates; the next load tries again.

    `new_id` is the load's id where the request has none (None: a random one). `commit_load` is needed for modes other
    than `append`.

    Raises NotFound and InvalidInput for sources that cannot be read. Raises Refused for bad rows that are not set
    aside, and for rows whose unique keys exist already and that are neither set aside nor skipped. Raises InvalidInput
    where all rows are bad or more than the limit. Raises Conflict where the table was changed meanwhile.
    """
    job_id = request.job_id or new_id or uuid.uuid4().hex
    for attempt in range(ATTEMPTS):
        try:
            result = LoadAttempt(table, request, job_id, with_spark, on_progress, on_engine, on_note, commit_load).run()
            break
        except KeysTaken:  # the next attempt finds these keys in the table
            if attempt == ATTEMPTS - 1:
                raise
            table = table.refreshed()
    result = replace(result, splits=split_after_load(table.store, table.root, table.entry.table_id, on_progress))
    if not request.indexes:
        return result
    return replace(result, indexes=catch_up(table.store, table.root, table.entry.table_id, on_progress))
