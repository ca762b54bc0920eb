"""Chooses whether a load runs in this process or with Spark, and cuts its ranges for tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from deployer.platform.text.formatting import count
from deployer.platform.text.formatting import size as size_words
from deployer.tables.ingest.loading import LoadPlan
from deployer.tables.ingest.readers.splits import key_sample
from deployer.tables.layout.partitions.key_ranges import cut

Engine = Literal["auto", "spark", "driver"]

SMALL_BYTES = 64 * 1024 * 1024  #: up to this size, a load is faster than the start of Spark
SMALL_ROWS = 1_000_000  #: the same limit in rows
TASK_ROWS = 1_048_576  #: the largest number of rows in a range, estimated from a sample
SAMPLED_SPLITS = 16  #: about this many splits are read for the sample


def choose_engine(wanted: Engine, plan: LoadPlan) -> tuple[str, str]:
    """Returns the engine of a load, and the reason for it."""
    rows, size = sum(split.rows for split in plan.splits), sum(split.bytes for split in plan.splits)
    amount = f"about {count(rows, 'row')}, {size_words(size)}"
    if wanted != "auto":
        return wanted, f"as asked for ({amount})"
    if rows <= SMALL_ROWS and size <= SMALL_BYTES:
        return "driver", f"{amount}; Spark takes longer to start"
    return "spark", f"{amount}: more than {SMALL_ROWS:,} rows or {SMALL_BYTES // 10**6} MB"


def for_tasks(plan: LoadPlan) -> LoadPlan:
    """Returns the plan with large leaves cut into ranges, so that several tasks write a leaf."""
    import pyarrow as pa

    rows = sum(split.rows for split in plan.splits)
    if not plan.layout.row_keys or rows <= TASK_ROWS:
        return plan
    chosen: Sequence[int] = range(0, len(plan.splits), max(1, len(plan.splits) // SAMPLED_SPLITS))
    sample = pa.concat_tables([key_sample(plan.splits[i], plan.reading) for i in chosen])
    return replace(plan, ranges=cut(plan.ranges, sample, rows, TASK_ROWS))
