"""Parts: values of rows of a fragment that are saved while the others are made, and what a later run makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.columns.fill import parts as parts_module
from deployer.columns.fill import run as fill_run
from deployer.columns.fill.checkpoint_sizes import CheckpointSizes
from deployer.columns.fill.checkpoints import JobFolder
from deployer.columns.fill.parts import HeldRows, Parts
from deployer.columns.fill.work import FragmentWork
from deployer.columns.load.joined import JoinedColumns
from deployer.platform.storage.envelope import DIGEST_BYTES, digest
from deployer.table import Table
from tests.columns.rows import source, values
from tests.tables.lakes import Lake

WORK = FragmentWork(0, 100, ("a.lance",), (None,))


class Stopped(Exception):
    """A failure in the middle of a fragment."""


def batch(start: int, stop: int) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(range(start, stop), pa.int64())})


def spans(parts: Parts) -> list[tuple[int, int, list[int] | None]]:
    return [
        (rows.start, rows.stop, None if saved is None else pa.Table.from_batches(saved)["value"].to_pylist())
        for rows, saved in parts.spans()
    ]


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(str(tmp_path), "t1", "monday")


def test_what_is_saved_is_found_again(folder: JobFolder, tmp_path: Path) -> None:
    parts = folder.parts(1, WORK, ())
    parts.save(range(20, 40), [batch(20, 30), batch(30, 40)])
    parts.save(range(60, 70), [batch(60, 70)])
    assert folder.saved() == {}
    known = folder.saved_parts()
    assert {number: sorted(map(str, rows)) for number, rows in known.items()} == {0: ["range(20, 40)", "range(60, 70)"]}
    again = folder.parts(1, WORK, known[0])
    assert spans(again) == [
        (0, 20, None),
        (20, 40, [*range(20, 40)]),
        (40, 60, None),
        (60, 70, [*range(60, 70)]),
        (70, 100, None),
    ]
    again.remove()
    assert folder.saved_parts() == {} and spans(again) == [(0, 100, None)]
    folder.remove()
    assert not [*(tmp_path / "_work").rglob("monday*")]


OTHERS: dict[str, Callable[[JobFolder, Path], Parts]] = {
    "another dataset": lambda folder, _: folder.parts(2, WORK, [range(20, 40)]),
    "a rewritten input": lambda folder, _: folder.parts(1, FragmentWork(0, 100, ("b",), (None,)), [range(20, 40)]),
    "a written output": lambda folder, _: folder.parts(1, FragmentWork(0, 100, ("a.lance",), ("x",)), [range(20, 40)]),
    "fewer rows": lambda folder, _: folder.parts(1, FragmentWork(0, 30, ("a.lance",), (None,)), [range(20, 40)]),
    "one that is gone": lambda folder, _: folder.parts(1, WORK, [range(20, 41)]),
    "a damaged one": lambda folder, path: _changed(folder, path, lambda data: data[:-5] + b"other"),
    "an empty one": lambda folder, path: _changed(folder, path, lambda _: b""),
    "one that no job saved": lambda folder, path: _changed(folder, path, lambda _: _forged(b"{}")),
    "one without JSON": lambda folder, path: _changed(folder, path, lambda _: _forged(b"no")),
    "one without rows": lambda folder, path: _changed(
        folder, path, lambda data: _forged(data[DIGEST_BYTES + 4 :].partition(b"\xff\xff\xff\xff")[0])
    ),
    "one that is cut off": lambda folder, path: _changed(folder, path, lambda data: data[: len(data) // 2]),
}


def _forged(document: bytes) -> bytes:
    payload = len(document).to_bytes(4, "big") + document + b"not Arrow"
    return digest(payload) + payload


def _changed(folder: JobFolder, path: Path, change: Callable[[bytes], bytes]) -> Parts:
    [file] = (each for each in path.rglob("20-40"))
    file.write_bytes(change(file.read_bytes()))
    return folder.parts(1, WORK, [range(20, 40)])


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_hold_counts_as_missing(name: str, folder: JobFolder, tmp_path: Path) -> None:
    folder.parts(1, WORK, ()).save(range(20, 40), [batch(20, 40)])
    parts = OTHERS[name](folder, tmp_path)
    assert [saved for _, _, saved in spans(parts)] == [None]


#: Sizes, the most bytes that are held, seconds of each of ten batches of ten rows, and the parts that are saved.
SAVES: dict[str, tuple[CheckpointSizes, int, list[float], list[tuple[int, int]]]] = {
    "nothing within the interval": (CheckpointSizes(seconds=60), 10**9, [5.0] * 10, []),
    "each interval": (CheckpointSizes(seconds=60), 10**9, [20.0] * 10, [(0, 30), (30, 60), (60, 90)]),
    "each batch": (CheckpointSizes(flush_seconds=0), 10**9, [0.0] * 10, [(n, n + 10) for n in range(0, 90, 10)]),
    "too much memory, and soon done": (CheckpointSizes(seconds=60), 200, [1.0] * 10, []),
    "too much memory, and not soon done": (
        CheckpointSizes(seconds=60),
        400,
        [10.0] * 10,
        [(0, 50)],
    ),
    "more rows than the maximum": (
        CheckpointSizes(None, 1, 20, 30),
        10**9,
        [9.0] * 10,
        [(n, n + 20) for n in (0, 20, 40, 60)],
    ),
    "quick at first, then slow": (CheckpointSizes(seconds=60), 200, [0.1] * 5 + [40.0] * 5, [(30, 60), (60, 80)]),
}


@pytest.mark.parametrize("name", SAVES)
def test_when_parts_are_saved(name: str, folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, most, seconds, wanted = SAVES[name]
    monkeypatch.setattr(parts_module, "HELD_BYTES", most)
    now = 1000.0
    held = HeldRows(folder.parts(1, WORK, ()), range(100), sizes, lambda: now)
    for number, each in enumerate(seconds):
        now += each
        held.add(batch(number * 10, number * 10 + 10))
    saved = folder.saved_parts().get(0, [])
    assert sorted((rows.start, rows.stop) for rows in saved) == wanted
    for rows in saved:
        [own] = [found for start, stop, found in spans(folder.parts(1, WORK, [rows])) if found is not None]
        assert own == [*rows]


def stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> list[range]:
    """Lets values fail when `after` rows of a fragment were made; returns the rows that are made."""
    made: list[range] = []
    of_fragment = JoinedColumns.of_fragment

    def counting(self: JoinedColumns, dataset: Any, work: Any, rows: range, size: Any) -> Iterator[pa.RecordBatch]:
        start = rows.start
        for each in of_fragment(self, dataset, work, rows, size):
            if start >= after:
                raise Stopped
            yield each
            made.append(range(start, start + each.num_rows))
            start += each.num_rows

    monkeypatch.setattr(JoinedColumns, "of_fragment", counting)
    return made


@pytest.mark.parametrize("on_missing", ["carry", "null"])
def test_the_next_run_makes_what_no_part_has(
    on_missing: str, table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"])
    lance.dataset(lake.open().opened.location).delete("id IN (1, 13, 14)")
    path = str(lake.file(source(range(0, 30, 2), 2)))
    given: dict[str, Any] = {
        "source": path, "pk": "id", "columns": ["label"], "on_missing": on_missing, "job_id": "monday",
        "checkpoint_size": 2, "checkpoint_interval_seconds": 0,
    }  # fmt: skip
    with monkeypatch.context() as patch:
        stopping(patch, 6)
        with pytest.raises(Stopped):
            table.load_columns(**given)
    found = sorted(each.name for each in (Path(lake.root) / "_work").rglob("parts-*/*"))
    assert {*found} == {"0-2", "2-4", "4-6"} and 3 <= len(found) <= 9
    with monkeypatch.context() as patch:
        made = stopping(patch, 100)
        table.load_columns(**given)
        assert sum(map(len, made)) == 30 - 2 * len(found)
    want = {i: f"label {2 * i:g}" if i % 2 == 0 else f"label {i}" if on_missing == "carry" else None for i in range(30)}
    assert values(table, "label") == {i: each for i, each in want.items() if i not in (1, 13, 14)}
    assert not [each for each in (Path(lake.root) / "_work").rglob("*") if each.is_file()]


def test_a_quick_load_writes_no_part(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parts, "save", lambda *_: pytest.fail("a part was written"))
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"], checkpoint_size=2)
    assert values(table, "label") == {i: f"label {i}" for i in range(30)}


def test_columns_that_are_there_and_new_ones_share_parts(
    table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files are written for each fragment: the values of the second come from what was saved for the first."""
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"])
    made = stopping(monkeypatch, 100)
    given = {"checkpoint_size": 2, "checkpoint_interval_seconds": 0}
    table.load_columns(str(lake.file(source(range(30), 2))), "id", ["label", "place"], **given)  # type: ignore[arg-type]
    assert sum(map(len, made)) == 30 + 2 * 3  # the last rows of each fragment are in no part
    assert values(table, "label") == {i: f"label {2 * i:g}" for i in range(30)}
    assert values(table, "place")[29] == {"x": 29, "tags": ["t29", "all"]}


def test_a_failed_run_without_values_leaves_nothing(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise Stopped

    monkeypatch.setattr(fill_run, "works_of", fail)
    with pytest.raises(Stopped):
        table.load_columns(str(lake.file(source(range(30)))), "id", ["label"], job_id="monday")
    assert not [*(Path(lake.root) / "_work").rglob("job")]
