"""Adaptive sizes of what is made and saved at a time."""

from __future__ import annotations

import pytest

from deployer.columns.fill.checkpoint_sizes import BatchSize, CheckpointSizes, checked_checkpoint_sizes
from deployer.errors import InvalidInput

#: Sizes, (rows, seconds) of the batches made, and the rows of the next batch before and after each.
CASES: dict[str, tuple[CheckpointSizes, list[tuple[int, float]], list[int]]] = {
    "begins with the minimum": (CheckpointSizes(None, 100), [], [100]),
    "begins with the size given": (CheckpointSizes(300, 100), [], [300]),
    "the size given is within the bounds": (CheckpointSizes(300, 100, 200), [], [200]),
    "grows twofold at most": (CheckpointSizes(100, 10), [(100, 0.01), (200, 0.01)], [100, 200, 400]),
    "grows to the time": (CheckpointSizes(100, 10), [(100, 40.0)], [100, 150]),
    "stays below the maximum": (CheckpointSizes(100, 10, 150), [(100, 0.0)], [100, 150]),
    "shrinks to the time at once": (CheckpointSizes(1000, 10), [(1000, 600.0)], [1000, 100]),
    "stays above the minimum": (CheckpointSizes(1000, 500), [(1000, 600.0)], [1000, 500]),
    "a batch that is short for its memory changes nothing": (CheckpointSizes(1000, 10), [(50, 1.0)], [1000, 1000]),
    "a batch that is short and slow shrinks it": (CheckpointSizes(1000, 10), [(50, 120.0)], [1000, 25]),
    "an interval of 0 is the minimum": (CheckpointSizes(1000, 10, seconds=0), [(1000, 0.5)], [1000, 10]),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_of_the_next_batch(name: str) -> None:
    sizes, batches, wanted = CASES[name]
    size = BatchSize(sizes)
    found = [size.rows]
    for rows, seconds in batches:
        size.took(rows, seconds)
        found.append(size.rows)
    assert found == wanted


def test_sizes_of_a_call() -> None:
    assert checked_checkpoint_sizes(None, None, None, None, 60.0) == CheckpointSizes()
    small = checked_checkpoint_sizes(7, None, None, None, 60.0)
    assert (small.first, small.smallest, BatchSize(small).rows) == (7, 7, 7)
    assert checked_checkpoint_sizes(None, None, 5, None, 10.0).smallest == 5
    given = checked_checkpoint_sizes(10, 5, 20, 3, 60.0, 0)
    assert given == CheckpointSizes(10, 5, 20, 3.0, 0) and given.save_seconds == 0
    with pytest.raises(InvalidInput, match="min_checkpoint_size=9 is above max_checkpoint_size=8"):
        checked_checkpoint_sizes(None, 9, 8, None, 60.0)
    for wrong in (-1, float("nan"), True, "1"):
        with pytest.raises(InvalidInput, match=r"batch_checkpoint_flush_interval_seconds=.* is n"):
            checked_checkpoint_sizes(None, None, None, None, 60.0, wrong)  # type: ignore[arg-type]
