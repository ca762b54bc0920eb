"""Small recordings that are read together have what each has by itself, and so have those that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash

from deployer.catalog.datasets.model.properties import packed_properties, unpacked_properties
from deployer.catalog.datasets.model.rows import NewLayer, chunk_rows, layer_rows
from deployer.catalog.datasets.reading import ReadSource, Source, read, read_all
from deployer.catalog.recordings.recording import RECORDING
from deployer.catalog.recordings.small_files import read_small_files
from tests.catalog.datasets.recordings import Chunk, properties, scalars, write_recording

CLOSED = Path(__file__).parent / "files" / "closed.rrd"
SEED = 21


def written(folder: Path) -> list[Path]:
    """Recordings of several shapes in a mixed order, and files that are not read together."""
    found = []
    for number in range(12):
        chunks = [properties("episode", number=number, title=f"n{number * 37}"), scalars("/j", range(number + 1))]
        found.append(write_recording(folder / f"a{number:02}.rrd", f"a{number}", chunks, first=10 * number + 1))
    for number in range(5):
        chunks = [scalars("/j", [number, number + 3]), scalars("/k", [5])]
        found.append(write_recording(folder / f"b{number}.rrd", f"b{number}", chunks, first=900 + number))
    twice = [properties("episode", number=1), properties("episode", number=2, late="x"), properties("task", title="y")]
    found.append(write_recording(folder / "twice.rrd", "twice", twice))
    two_rows = Chunk("/__properties/episode", {"number": [[1.0], [2.0]]})
    found.append(write_recording(folder / "two_rows.rrd", "two", [two_rows, scalars("/j", [1])]))
    found.append(write_recording(folder / "null.rrd", "null", [Chunk("/__properties/episode", {"number": [None]})]))
    found.append(write_recording(folder / "no_footer.rrd", "open", [scalars("/j", [1])], closed=False))
    found.append(write_recording(folder / "50% of (a) é #1.rrd", "named", [scalars("/j", [1])]))
    found.append(write_recording(folder / "no_segment.rrd", "", [scalars("/j", [1])]))
    found.append(write_recording(folder / "blueprint.rrd", "blue", [scalars("/j", [1])], blueprint=True))
    large = folder / "large.rrd"
    found.append(
        write_recording(large, "large", [scalars("/j", range(9000), list(np.random.default_rng(SEED).random(9000)))])
    )
    for name, content in {"empty": b"", "text": b"no recording", "real": CLOSED.read_bytes()}.items():
        (folder / f"{name}.rrd").write_bytes(content)
        found.append(folder / f"{name}.rrd")
    found = [found[at] for at in np.random.default_rng(SEED).permutation(len(found))]
    return [*found, folder / "missing.rrd"]


def damaged(folder: Path) -> list[Path]:
    """Recordings in which one byte is another, also of a footer whose checksum fits, or whose end is cut off."""
    chances, found = np.random.default_rng(SEED), []
    whole = write_recording(
        folder / "whole.rrd", "w", [properties("e", title="ab"), scalars("/j", [1, 2])]
    ).read_bytes()
    [length] = struct.unpack_from("<Q", whole, len(whole) - 24)
    for number in range(300):
        data = bytearray(whole)
        in_footer = number % 3 > 0
        place = chances.integers(len(data) - 32 - length, len(data) - 32) if in_footer else chances.integers(len(data))
        data[place] ^= 1 << int(chances.integers(8))
        if in_footer:
            data = bytearray(with_checksum(bytes(data)))
        if number % 6 == 0:
            data = data[: chances.integers(len(data))]
        found.append(folder / f"{number}.rrd")
        found[-1].write_bytes(data)
    return found


def described(found: ReadSource) -> Any:
    """What is registered of a file: its rows."""
    layers = found.layers
    tags = [(each.layer, each.url, each.size, each.tag, each.recording.segment) for each in layers]
    rows = [each.recording.manifest.to_pylist() for each in layers]
    values = [None if each.properties is None else each.properties.rows for each in layers]
    shown = [None if each is None else (each.schema, each.to_pylist()) for each in values]
    columns = [{field.name: (field.type, field.metadata) for field in each.recording.schema} for each in layers]
    sizes = [(each.recording.size, each.recording.chunks, each.recording.schema_sha256) for each in layers]
    return found.source, str(found.error), tags, rows, shown, columns, sizes


@pytest.mark.parametrize("make", [written, damaged])
@pytest.mark.parametrize("kind", ["dataset", "blueprints"])
def test_reading_together_gives_what_reading_one_by_one_gives(make: Any, kind: Any, tmp_path: Path) -> None:
    files = make(tmp_path)
    sources = [Source(str(each) if at % 3 == 0 else each.as_uri(), "base") for at, each in enumerate(files)]
    together, one_by_one = list(read_all(sources, kind)), [read(each, kind) for each in sources]
    for found, expected in zip(together, one_by_one, strict=True):
        assert described(found) == described(expected)
    assert rows_of(together) == rows_of(one_by_one)


def rows_of(found: list[ReadSource]) -> Any:
    layers: list[NewLayer] = [layer for each in found for layer in each.layers]
    stored = layer_rows(layers, 5, 0).drop_columns(["schema", "schema_number", "properties"])
    chunks = chunk_rows(layers, 5)
    values = [packed_properties([each.properties]) for each in layers]
    return stored.to_pylist(), chunks.to_pylist(), [unpacked_properties(each).to_pylist() for each in values]


def test_recordings_with_the_same_columns_share_batches(tmp_path: Path) -> None:
    """What makes the registration of many files fast: their rows are those of one batch."""
    files = written(tmp_path)
    alike = [Source(each.as_uri(), "base") for each in files if each.name.startswith("a")]
    layers = [layer for each in read_all(alike, "dataset") for layer in each.layers]
    assert len(layers) == 12
    assert len({id(each.recording.rows.batch) for each in layers}) == 1
    assert len({id(each.properties.batch) for each in layers if each.properties is not None}) == 1
    assert len({id(each.recording.schema) for each in layers}) == 1


def test_a_file_whose_hash_names_the_columns_of_another_keeps_its_own(tmp_path: Path) -> None:
    """The hash in a footer is not believed: columns are compared."""
    one = write_recording(tmp_path / "one.rrd", "one", [scalars("/j", [1])])
    other = write_recording(
        tmp_path / "two.rrd",
        "two",
        [Chunk("/j", {"Scalars:scalars": [["x"]]}, {"tick": [1]}, {"Scalars:scalars": pa.utf8()})],
    )
    first, second = read_small_files([one.as_uri(), other.as_uri()], RECORDING)
    assert first is not None and second is not None
    data = other.read_bytes().replace(second.recording.schema_sha256, first.recording.schema_sha256)
    other.write_bytes(with_checksum(data))
    _, lying = read_small_files([one.as_uri(), other.as_uri()], RECORDING)
    assert lying is not None and lying.recording.schema_sha256 == first.recording.schema_sha256
    assert lying.recording.schema == second.recording.schema != first.recording.schema


def with_checksum(data: bytes) -> bytes:
    """The file with the checksum of its footer made to fit."""
    start, length, _, rest = struct.unpack("<QQI12s", data[-32:])
    checksum = xxhash.xxh32_intdigest(data[start : start + length], 7850921)
    return data[:-32] + struct.pack("<QQI12s", start, length, checksum, rest)
