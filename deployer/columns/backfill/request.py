"""The request of a backfill, which is checked before anything is read."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from deployer.columns.fill.checkpoint_sizes import CheckpointSizes, checked_checkpoint_sizes, require_positive
from deployer.errors import InvalidInput
from deployer.runs.rewriting.run import Engine

BlobReadStrategy = Literal["auto", "legacy", "range"]
FLUSH_SECONDS = 10.0  #: target duration of a batch, and age from which values are saved to a checkpoint
COMMIT_GRANULARITY = 64  #: default number of fragments in a commit
BLOB_BUFFER = 512 * 2**20  #: default number of bytes of blobs that are read at once
BUFFER_VARIABLE = "GENEVA_RANGE_BLOB_READ_BUFFER_SIZE"

_ALWAYS_TRUE = re.compile(r"\s*\(*\s*(1\s*=\s*1|true)\s*\)*\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A backfill of one column.

    `where` is an SQL condition on the rows to compute; None computes the rows that are not computed yet. The fragments
    are those of `read_version` (None: the newest), without the first `skip_frags`, and at most `num_frags` of them. A
    task has `task_size` rows, and larger fragments are split (None: each worker gets two tasks of the table).
    `blob_buffer` is in bytes. `engine` states whether Spark or this process computes the values.
    """

    column: str
    where: str | None = None
    read_version: int | None = None
    num_frags: int | None = None
    skip_frags: int = 0
    task_size: int | None = None
    concurrency: int = 8
    commit_granularity: int | None = COMMIT_GRANULARITY
    checkpoints: CheckpointSizes = CheckpointSizes(seconds=FLUSH_SECONDS)
    blob_strategy: BlobReadStrategy = "auto"
    blob_buffer: int = BLOB_BUFFER
    engine: Engine = "auto"
    keeps_others: bool = False  #: without `where`, values of other versions of the definition stay

    @property
    def is_of_all(self) -> bool:
        """Returns whether all rows are computed again, as with `where="1=1"`."""
        return self.where is not None and _ALWAYS_TRUE.fullmatch(self.where) is not None

    @property
    def names_fragments(self) -> bool:
        """Returns whether the request names fragments, instead of all fragments of the newest version."""
        return self.read_version is not None or self.num_frags is not None or self.skip_frags > 0


def one_column(columns: str | Sequence[str]) -> str:
    """Returns the only column. Raises InvalidInput for anything but names, and NotImplementedError for several columns,
    as Geneva's contract requires."""
    if isinstance(columns, str):
        return columns
    names = [*columns] if isinstance(columns, list | tuple) else []
    if len(names) == 1 and isinstance(names[0], str):
        return names[0]
    if not names or not all(isinstance(each, str) for each in names):
        raise InvalidInput(f"{columns!r} does not name a column", remedy="give the name of one column")
    # Geneva's contract of `Table.backfill` states: "Multi-column backfill is not yet supported and raises
    # NotImplementedError".
    raise NotImplementedError(
        f"several columns in one backfill are not supported ({', '.join(names)}); call backfill for each of them"
    )


def checked_backfill(
    columns: str | Sequence[str],
    *,
    where: str | None = None,
    read_version: int | None = None,
    num_frags: int | None = None,
    skip_frags: int = 0,
    task_size: int | None = None,
    concurrency: int = 8,
    commit_granularity: int | None = COMMIT_GRANULARITY,
    checkpoint_size: int | None = None,
    batch_size: int | None = None,
    min_checkpoint_size: int | None = None,
    max_checkpoint_size: int | None = None,
    batch_checkpoint_flush_interval_seconds: float | None = None,
    blob_read_strategy: str = "auto",
    blob_read_buffer_size: int | None = None,
    engine: str = "auto",
) -> BackfillRequest:
    """Returns the request. Raises InvalidInput for invalid arguments, and NotImplementedError for several columns.

    `batch_size` is the former name of `checkpoint_size`; a `batch_size` of 0 means a whole fragment.
    """
    column = one_column(columns)
    if where is not None and not (isinstance(where, str) and where.strip()):
        what = "`where` is empty" if isinstance(where, str) else f"where={where!r} is not a string"
        raise InvalidInput(what, remedy="leave it out, or give an SQL condition such as 'distance > 100'")
    for name, number in {
        "read_version": read_version,
        "num_frags": num_frags,
        "task_size": task_size,
        "concurrency": concurrency,
        "commit_granularity": commit_granularity,
        "blob_read_buffer_size": blob_read_buffer_size,
    }.items():
        require_positive(name, number)
    if concurrency is None:
        raise InvalidInput("concurrency=None is not a positive whole number", remedy="leave it out, or give 1 or more")
    if isinstance(skip_frags, bool) or not isinstance(skip_frags, int) or skip_frags < 0:
        raise InvalidInput(f"skip_frags={skip_frags!r} is not a number of fragments", remedy="give 0 or more")
    if blob_read_strategy not in get_args(BlobReadStrategy):
        raise InvalidInput(
            f"blob_read_strategy={blob_read_strategy!r} is not valid",
            remedy=f"use {', '.join(get_args(BlobReadStrategy))}",
        )
    if engine not in get_args(Engine):
        raise InvalidInput(f"engine={engine!r} is not valid", remedy=f"use {', '.join(get_args(Engine))}")
    if batch_size is not None and checkpoint_size is None:
        checkpoint_size = batch_size if batch_size != 0 else 2**31 - 1
    if checkpoint_size is not None and max_checkpoint_size is None:
        max_checkpoint_size = max(checkpoint_size, min_checkpoint_size or 1)
    sizes = checked_checkpoint_sizes(
        checkpoint_size,
        min_checkpoint_size,
        max_checkpoint_size,
        None,
        FLUSH_SECONDS,
        batch_checkpoint_flush_interval_seconds,
    )
    return BackfillRequest(
        column=column,
        where=where,
        read_version=read_version,
        num_frags=num_frags,
        skip_frags=skip_frags,
        task_size=task_size,
        concurrency=concurrency,
        commit_granularity=commit_granularity,
        checkpoints=sizes,
        blob_strategy=cast("BlobReadStrategy", blob_read_strategy),
        blob_buffer=blob_read_buffer_size or _buffer(),
        engine=cast("Engine", engine),
    )


def _buffer() -> int:
    text = os.environ.get(BUFFER_VARIABLE, "")
    if not text:
        return BLOB_BUFFER
    if not text.isdecimal() or int(text) < 1:
        raise InvalidInput(
            f"{BUFFER_VARIABLE}={text!r} is not a number of bytes",
            where="environment",
            remedy="unset it, or give bytes",
        )
    return int(text)
