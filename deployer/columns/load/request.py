"""The request of `load_columns`, which is checked before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from deployer.columns.fill.checkpoint_sizes import CheckpointSizes, checked_checkpoint_sizes, require_positive
from deployer.columns.fill.work import Target
from deployer.errors import InvalidInput, Refused
from deployer.runs.rewriting.run import Engine

OnMissing = Literal["carry", "null", "error"]

LOAD_SECONDS = 60.0  #: default seconds between two checkpoints of a load


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """A load of `columns` from the files that `source` names. The column `pk` matches the rows.

    `on_missing` decides about rows without a match in the source: they keep their values (`carry`), get null (`null`),
    or are an error (`error`). `commit_granularity` is the number of fragments in a commit; None makes one commit.
    """

    source: tuple[str, ...]
    pk: str
    columns: tuple[str, ...]
    source_format: str | None = None
    on_missing: OnMissing = "carry"
    concurrency: int = 8
    checkpoints: CheckpointSizes = CheckpointSizes()
    commit_granularity: int | None = None
    engine: Engine = "auto"


def checked_request(
    source: str | Sequence[str],
    pk: str,
    columns: Sequence[str],
    *,
    source_format: str | None = None,
    on_missing: str = "carry",
    concurrency: int = 8,
    task_size: int | None = None,
    checkpoint_size: int | None = None,
    min_checkpoint_size: int | None = None,
    max_checkpoint_size: int | None = None,
    checkpoint_interval_seconds: float | None = None,
    commit_granularity: int | None = None,
    engine: str = "auto",
) -> LoadRequest:
    """Returns the request. Raises InvalidInput for invalid arguments."""
    several = isinstance(source, Iterable) and not isinstance(source, str)
    sources: tuple[object, ...] = tuple(source) if several else (source,)
    if not sources or not all(isinstance(each, str) and each for each in sources):
        raise InvalidInput("there is no source", remedy="give the address of a file or folder, or a list of files")
    if isinstance(columns, str) or not columns:
        raise InvalidInput("`columns` is not a list of names", remedy="name the columns to load, such as ['embedding']")
    if repeated := sorted({name for name in columns if list(columns).count(name) > 1}):
        raise InvalidInput(f"column {repeated[0]} is named twice", remedy="name each column once")
    if pk in columns:
        raise InvalidInput(f"column {pk} is the primary key, and it is loaded too", remedy="leave it out of `columns`")
    if on_missing not in get_args(OnMissing):
        raise InvalidInput(f"on_missing={on_missing!r} is not valid", remedy=f"use {' or '.join(get_args(OnMissing))}")
    if engine not in get_args(Engine):
        raise InvalidInput(f"engine={engine!r} is not valid", remedy=f"use {' or '.join(get_args(Engine))}")
    if source_format not in (None, "parquet", "lance", "ipc"):
        raise InvalidInput(f"source_format={source_format!r} is not valid", remedy="use parquet, lance or ipc")
    sizes = {
        "concurrency": concurrency,
        "task_size": task_size,
        "commit_granularity": commit_granularity,
    }
    for name, size in sizes.items():
        require_positive(name, size)
    return LoadRequest(
        source=tuple(str(each) for each in sources),
        pk=pk,
        columns=tuple(columns),
        source_format=source_format,
        on_missing=on_missing,  # type: ignore[arg-type]
        concurrency=concurrency,
        checkpoints=checked_checkpoint_sizes(
            checkpoint_size, min_checkpoint_size, max_checkpoint_size, checkpoint_interval_seconds, LOAD_SECONDS
        ),
        commit_granularity=commit_granularity,
        engine=engine,  # type: ignore[arg-type]
    )


def refuse_missing(
    request: LoadRequest, target: Target, keys: Sequence[object], missing: int, rows: int, where: str
) -> None:
    """Raises Refused where rows of the table have no match in the source and the request does not allow this.

    `missing` is the number of these rows, and `keys` are the first of their keys.
    """
    if not missing:
        return
    shown = ", ".join(map(str, keys))
    if request.on_missing == "error":
        raise Refused(
            f"{missing:,} of {rows:,} rows have no match in the source: {request.pk} {shown}",
            where=where,
            remedy="add them to the source, or load with on_missing carry or null; no value was written",
        )
    required = [column.name for column in target.columns if not column.nullable]
    if required and request.on_missing == "null":
        raise Refused(
            f"column {required[0]} must not be null, and {missing:,} rows have no match in the source: "
            f"{request.pk} {shown}",
            where=where,
            remedy="load with on_missing carry, or make the column nullable",
        )
