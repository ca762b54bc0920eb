"""The known facts about files before they are arranged: the bounds of the columns in each, and a sample of their
values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.ordering.clustering import Bounds, around, bounds_of
from deployer.errors import DeployerError
from deployer.services.kinds.cluster.layout import Arrangement

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

SAMPLE_ROWS = 65_536  #: sampled rows of all files together
LEAST_ROWS = 16  #: of each file
_AT_ONCE = 1 << 20  # rows


@dataclass(frozen=True, slots=True)
class FileSample:
    """The bounds and the sampled values of a file. `bounds` are None without live rows."""

    bounds: Bounds | None
    sample: tuple[Any, ...]


def survey(
    dataset: LanceDataset,
    arrangement: Arrangement,
    fragments: Mapping[int, int],
    on_files: Callable[[int], None],
) -> dict[int, FileSample]:
    """Reads the columns of the fragments, several at a time; `fragments` has their rows. Equal rows give an equal
    sample."""
    total = max(1, sum(fragments.values()))

    def one(number: int) -> FileSample:
        wanted = max(LEAST_ROWS, -(-SAMPLE_ROWS * fragments[number] // total))
        try:
            return _surveyed(dataset, arrangement, number, wanted / max(1, fragments[number]))
        except (OSError, RuntimeError, ValueError) as failure:
            reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
            raise DeployerError(
                f"fragment {number} cannot be read: {reason}",
                where=dataset.uri,
                remedy="`deployer state verify` lists what is damaged",
            ) from failure

    found = {}
    with ThreadPoolExecutor(os.cpu_count() or 1, "survey") as pool:
        try:
            for done, (number, each) in enumerate(zip(fragments, pool.map(one, fragments), strict=True), 1):
                found[number] = each
                on_files(done)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return found


def _surveyed(dataset: LanceDataset, arrangement: Arrangement, number: int, share: float) -> FileSample:
    scanner = dataset.scanner(
        columns=list(dict.fromkeys(path.partition(".")[0] for path in arrangement.columns)),
        fragments=[dataset.get_fragment(number)],
        batch_size=_AT_ONCE,
    )
    draw = np.random.default_rng(number)
    bounds: list[Bounds | None] = []
    sample: list[list[Any]] = [[] for _ in arrangement.columns]
    for batch in scanner.to_batches():
        keys = arrangement.keys(batch)
        bounds.append(bounds_of(keys, arrangement.kinds))
        chosen = pa.array(np.flatnonzero(draw.random(batch.num_rows) < share))
        for held, column in zip(sample, keys, strict=True):
            held.append(column.take(chosen))
    return FileSample(around(bounds), tuple(pa.chunked_array(held) if held else None for held in sample))


def samples_of(found: Sequence[FileSample], columns: int) -> list[Any]:
    """Returns the samples of several files together, by column. Files without rows have none."""
    known = [each.sample for each in found if each.bounds is not None]
    return [
        pa.chunked_array([chunk for sample in known for chunk in sample[i].chunks]) for i in range(columns) if known
    ]
