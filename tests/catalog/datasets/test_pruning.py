"""Pruning of queries against none: whatever a query of a range needs is in the chunks that are named for it.

A query of a range shows the rows of the range, and for each component the last value at its start (`fill_latest_at`).
What that takes is found here row by row, without bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.catalog.datasets.model.record import DatasetRecord
from deployer.catalog.datasets.model.rows import NewLayer, chunk_rows, layer_rows
from deployer.catalog.datasets.reading import Source, read
from deployer.catalog.datasets.reads import query as queries
from deployer.catalog.datasets.reads.index import DatasetIndex
from deployer.catalog.datasets.reads.query import ChunkQuery, TimeRange
from tests.catalog.datasets.recordings import Chunk, properties, scalars, write_recording

CLEAR = "Clear:is_recursive"
RECORD = DatasetRecord("0" * 31 + "1", "drives", "dataset", 0, 0)

times = st.integers(-3, 12)
cells = st.one_of(st.none(), st.lists(st.floats(0, 1), max_size=2))


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    """Rows of one of two entities, in any order and with repeated times, on one or two timelines, or static."""
    count = draw(st.integers(1, 4))
    names = draw(st.lists(st.sampled_from(["A:x", "A:y", CLEAR]), min_size=1, max_size=2, unique=True))
    values = {name: draw(st.lists(cells, min_size=count, max_size=count)) for name in names}
    timelines = draw(st.lists(st.sampled_from(["tick", "other"]), max_size=2, unique=True))
    found = {name: draw(st.lists(times, min_size=count, max_size=count)) for name in timelines}
    return Chunk(draw(st.sampled_from(["/a", "/b"])), values, found)


segments = st.lists(st.tuples(st.lists(chunks(), min_size=1, max_size=6), st.booleans()), min_size=1, max_size=3)


def index_of(folder: Path, recordings: Sequence[tuple[Sequence[Chunk], bool]]) -> DatasetIndex:
    layers = list[NewLayer]()
    for number, (listed, closed) in enumerate(recordings):
        path = folder / f"{number}.rrd"
        write_recording(path, f"s{number}", listed, closed=closed, first=100 * number)
        found = read(Source(str(path)), "dataset")
        assert found.error is None
        layers += found.layers
    rows = layer_rows(layers, 0, 1)
    record = DatasetRecord(RECORD.dataset_id, "drives", "dataset", 0, 0, sources=len(layers))
    return DatasetIndex(record, "none", rows, chunk_rows(layers, 0))


def answer(index: DatasetIndex, query: ChunkQuery) -> pa.Table:
    return queries.answer(index, queries.needed(index, query))


def needed(recordings: Sequence[tuple[Sequence[Chunk], bool]], timeline: str, first: int, last: int) -> set[int]:
    """The numbers of the chunks that have a row that the query shows, or that hides one."""
    found = set[int]()
    for segment, (listed, _) in enumerate(recordings):
        before = dict[tuple[str, str], list[tuple[int, int]]]()
        for number, chunk in enumerate(listed, 100 * segment):
            if not chunk.times:
                found.add(number)
            for name, values in chunk.values.items():
                for at, value in zip(chunk.times.get(timeline, ()), values, strict=False):
                    if first <= at <= last:
                        found.add(number)
                    elif at < first and value is not None:
                        before.setdefault((chunk.entity, name), []).append((at, number))
        for (_, name), rows in before.items():
            newest = max(at for at, _ in rows)
            found |= {number for at, number in rows if at == newest or name == CLEAR}
    return found


@given(recordings=segments, timeline=st.sampled_from(["tick", "other", "none"]), first=times, length=st.integers(0, 5))
def test_what_a_range_needs_is_named(
    tmp_path_factory: pytest.TempPathFactory,
    recordings: list[tuple[list[Chunk], bool]],
    timeline: str,
    first: int,
    length: int,
) -> None:
    index = index_of(tmp_path_factory.getbasetemp(), recordings)
    everything = answer(index, ChunkQuery())
    assert everything.num_rows == sum(len(listed) for listed, _ in recordings)
    query = TimeRange(timeline, first, first + length)
    for chosen in ((), ("s0",)):
        found = answer(index, ChunkQuery(chosen, ranges=[query]))
        numbers = {int.from_bytes(each, "big") for each in found["chunk_id"].to_pylist()}
        expected = needed(recordings, timeline, first, first + length)
        assert {each for each in expected if not chosen or each < 100} <= numbers
        assert numbers <= {int.from_bytes(each, "big") for each in everything["chunk_id"].to_pylist()}


def test_a_chunk_that_overlaps_but_has_no_earlier_value_does_not_hide_one_that_has(tmp_path: Path) -> None:
    """The bounds of chunks alone would not do: the second chunk begins earlier, and its only value of x is late."""
    early = Chunk("/a", {"A:x": [[1.0]]}, {"tick": [5]})
    late = Chunk("/a", {"A:x": [None, [2.0]], "A:y": [[1.0], None]}, {"tick": [8, 20]})
    far = Chunk("/a", {"A:x": [[0.0]]}, {"tick": [1]})
    index = index_of(tmp_path, [([early, late, far], True)])
    found = answer(index, ChunkQuery(ranges=[TimeRange("tick", 10, 12)]))
    assert [int.from_bytes(each, "big") for each in found["chunk_id"].to_pylist()] == [0, 1]


def test_chunks_of_a_manifest_without_bounds_of_components_are_kept(tmp_path: Path) -> None:
    index = index_of(tmp_path, [([scalars("/a", [1]), scalars("/a", [2]), scalars("/a", [9])], True)])
    chunks = index.chunk_rows
    assert chunks is not None
    at = chunks.schema.get_field_index("last")
    none = pa.array([[]] * chunks.num_rows, chunks.schema.field(at).type)
    unbounded = DatasetIndex(index.record, "none", index.rows, chunks.set_column(at, chunks.schema.field(at), none))
    found = answer(unbounded, ChunkQuery(ranges=[TimeRange("tick", 5, 6)]))
    assert found.num_rows == 2


def test_only_chunks_of_the_range_are_named_where_many_are(tmp_path: Path) -> None:
    listed = [scalars("/a", range(10 * number, 10 * number + 10)) for number in range(50)]
    index = index_of(tmp_path, [([*listed, properties("info", x=1.0)], True)])
    found = answer(index, ChunkQuery(ranges=[TimeRange("tick", 205, 214)]))
    assert [int.from_bytes(each, "big") for each in found["chunk_id"].to_pylist()] == [19, 20, 21, 50]
