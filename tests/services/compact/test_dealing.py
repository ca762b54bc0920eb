"""Rows are dealt to files in their order, whoever of reading, merging and writing is slow or fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.services.kinds.compact.parallel_writer import ahead, deal


def batches(sizes: list[int]) -> Iterator[pa.RecordBatch]:
    start = 0
    for size in sizes:
        yield pa.record_batch({"n": range(start, start + size)})
        start += size


def kept(rows: Iterator[pa.RecordBatch]) -> list[int]:
    return [n for batch in rows for n in batch["n"].to_pylist()]


def parts_of(total: int) -> st.SearchStrategy[list[int]]:
    cuts = st.lists(st.integers(0, total), max_size=6).map(lambda found: [0, *sorted(found), total])
    return cuts.map(lambda found: [b - a for a, b in pairwise(found)])


@given(st.integers(0, 60).flatmap(lambda n: st.tuples(parts_of(n), parts_of(n))), st.integers(1, 3))
def test_each_file_gets_its_rows_in_their_order(cut: tuple[list[int], list[int]], threads: int) -> None:
    given_as, files = cut
    made = deal(batches(given_as), [(rows, kept) for rows in files], threads)
    assert [len(each) for each in made] == files
    assert [n for each in made for n in each] == list(range(sum(files)))


def test_a_file_gets_rows_while_the_one_before_is_being_ended() -> None:
    second_has_all = threading.Event()

    def first(rows: Iterator[pa.RecordBatch]) -> list[int]:
        found = kept(rows)
        assert second_has_all.wait(300)
        return found

    def second(rows: Iterator[pa.RecordBatch]) -> list[int]:
        found = kept(rows)
        second_has_all.set()
        return found

    assert deal(batches([4, 4]), [(4, first), (4, second)], 2) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_files_are_written_at_once_than_there_are_threads(threads: int) -> None:
    at_once, most, lock = [0], [0], threading.Lock()

    def write(rows: Iterator[pa.RecordBatch]) -> None:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        kept(rows)
        with lock:
            at_once[0] -= 1

    deal(batches([1] * 20), [(2, write)] * 10, threads)
    assert 1 <= most[0] <= threads


def failing_after(rows: int, taken: Iterator[pa.RecordBatch]) -> None:
    for batch in taken:
        rows -= batch.num_rows
        if rows < 0:
            raise OSError("the disk is full")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("files", [(0, 1), (1, 0)])
def test_a_file_that_cannot_be_written_ends_all(threads: int, files: tuple[int, int]) -> None:
    """Many more batches than can wait, so that nobody waits for the writer that is gone."""
    kinds: list[Callable[[Iterator[pa.RecordBatch]], object]] = [partial(failing_after, 2), kept]
    with pytest.raises(OSError, match="the disk is full"):
        deal(batches([1] * 200), [(100, kinds[each]) for each in files], threads)


@pytest.mark.parametrize("after", [0, 5, 150])
def test_rows_that_cannot_be_read_end_all_files(after: int) -> None:
    reported: list[str] = []

    def damaged() -> Iterator[pa.RecordBatch]:
        yield from batches([1] * after)
        raise OSError("a page is damaged")

    def write(rows: Iterator[pa.RecordBatch]) -> None:
        try:
            kept(rows)
        except OSError as failure:
            reported.append(str(failure))
            raise

    with pytest.raises(OSError, match="a page is damaged"):
        deal(damaged(), [(100, write), (100, write)], 2)
    assert reported == ["a page is damaged"], "no file was ended as if it had all of its rows"


def test_too_few_rows_are_no_file() -> None:
    with pytest.raises(RuntimeError, match="fewer rows"):
        deal(batches([3]), [(4, kept)], 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_made_ahead_comes_in_its_order(threads: int) -> None:
    later = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            later.set()
        return number if number or threads == 1 or later.wait(300) else -1

    assert list(ahead(work, iter(range(20)), threads)) == list(range(20))


def test_what_fails_ahead_is_told_in_its_place() -> None:
    found = ahead(lambda number: 1 // (3 - number), iter(range(10)), 2)
    assert [next(found), next(found), next(found)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)
