"""How fragments are parted into tasks, and runs that split fragments: the same values, and no row made twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployer.columns.fill.tasks import Piece, dealt, number_of_tasks, pieces_of, rows_of_task, task_rows, tasks_of
from deployer.columns.fill.work import FragmentWork
from deployer.functions import udf
from deployer.table import Table
from tests.columns.rows import rows, values
from tests.tables.lakes import Lake


def works(*sizes: int) -> list[FragmentWork]:
    return [FragmentWork(number, size, (), ()) for number, size in enumerate(sizes)]


def shown(tasks: list[tuple[Piece, ...]]) -> list[list[tuple[int, int, int]]]:
    return [[(each.work.fragment_id, each.rows.start, each.rows.stop) for each in task] for task in tasks]


CASES = {
    "no fragment": ((), 4, []),
    "no size": ((5, 9), None, [[(1, 0, 9)], [(0, 0, 5)]]),
    "one that fits": ((4,), 4, [[(0, 0, 4)]]),
    "one that is split evenly": ((9,), 4, [[(0, 0, 3)], [(0, 3, 6)], [(0, 6, 9)]]),
    "small ones together, in order": ((2, 1, 3, 1), 4, [[(2, 0, 3), (3, 0, 1)], [(0, 0, 2), (1, 0, 1)]]),
    "a large one between small ones": ((1, 6, 2), 4, [[(1, 0, 3)], [(1, 3, 6)], [(0, 0, 1), (2, 0, 2)]]),
    "one row each": ((2, 1), 1, [[(0, 0, 1)], [(0, 1, 2)], [(1, 0, 1)]]),
}


@pytest.mark.parametrize("name", CASES)
def test_tasks(name: str) -> None:
    sizes, size, expected = CASES[name]
    found = tasks_of(works(*sizes), size)
    assert shown(found) == expected
    if size is not None:
        assert number_of_tasks(sizes, size) == len(expected)


def test_sizes_of_tasks() -> None:
    assert task_rows(7, 10**6, 2) == 7
    assert task_rows(None, 10**6, 4) == 125_000
    assert task_rows(None, 100, 8) == task_rows(None, 0, 0) == 1_000
    assert [len(each.rows) for each in pieces_of(works(10)[0], 4)] == [3, 3, 4]


def test_tasks_are_dealt_to_few_workers() -> None:
    tasks = tasks_of(works(9, 5, 4, 1), 100)
    assert dealt(tasks, 3) == tasks
    single = [task for size in (9, 5, 4, 1) for task in tasks_of(works(size), None)]
    assert sorted(map(rows_of_task, dealt(single, 2))) == [9, 10]


@udf(version="1")
def noted(id: int) -> float:
    with Path(_calls[0]).open("a") as file:
        file.write(f"{id}\n")
    if _bad[0] == id:
        raise ValueError("stopped")
    return id * 1.5


_calls, _bad = [""], [-1]


@pytest.fixture
def computed(table: Table, tmp_path: Path) -> Table:
    """The table with a column that `noted` computes."""
    _calls[0], _bad[0] = str(tmp_path / "calls"), -1
    table.add_columns({"more": "cast(null as double)"})
    return table


def made() -> list[int]:
    return sorted(int(line) for line in Path(_calls[0]).read_text().split())


@pytest.mark.parametrize("size", [1, 4, 10, 25])
def test_split_fragments_get_the_same_values(size: int, computed: Table, lake: Lake) -> None:
    done = computed.backfill("more", udf=noted, where="1=1", task_size=size, concurrency=2)
    assert values(computed, "more") == {i: i * 1.5 for i in range(30)} and made() == [*range(30)]
    assert (done.rows, done.stats.fragments) == (30, 3)
    assert not [each for each in (Path(lake.root) / "_work").rglob("*") if each.is_file()]


def test_pieces_of_conditions_and_deleted_rows(computed: Table) -> None:
    computed.backfill("more", udf=noted, where="id % 2 = 0", task_size=3)
    computed.delete("id in (3, 17)")
    computed.add(rows(30, 41))
    computed.backfill("more", udf=noted, where="id % 2 = 1 or id > 30", task_size=3)
    expected = {i: None if i == 30 else i * 1.5 for i in range(41) if i not in (3, 17)}
    assert values(computed, "more") == expected


def test_a_job_resumes_with_pieces_of_another_size(computed: Table) -> None:
    """The values of pieces that were done are saved, whatever pieces the next run makes of the fragment."""
    _bad[0] = 29
    given: dict[str, Any] = {"udf": noted, "where": "1=1", "job_id": "monday", "concurrency": 1}
    with pytest.raises(Exception, match="stopped"):
        computed.backfill("more", **given, task_size=5)
    before = made()
    _bad[0] = -1
    assert 5 <= len(before) <= 30
    computed.backfill("more", **given, task_size=4)
    assert values(computed, "more") == {i: i * 1.5 for i in range(30)}
    assert len(made()) <= 30 + 5
