"""Recordings, read by their footers and without them, and files that are none.

`files/closed.rrd` is a recording of rerun-sdk 0.28.2: properties, a static text, six scalars and three texts on two
timelines.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from deployer.catalog.protocol.messages import log_msg
from deployer.catalog.recordings.frames import END, frames
from deployer.catalog.recordings.recording import Recording, read_recordings
from deployer.catalog.recordings.source import open_source
from deployer.cli.main import run
from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.platform.storage.s3_objects import S3Objects

CLOSED = Path(__file__).parent / "files" / "closed.rrd"
DATA = CLOSED.read_bytes()
START, LENGTH = struct.unpack_from("<QQ", DATA, len(DATA) - 32)
MESSAGES = DATA[: START - 16]  #: without the message of the end: as a recording that was not closed


def read(folder: Path, data: bytes) -> list[Recording]:
    path = folder / "some.rrd"
    path.write_bytes(data)
    with open_source(str(path)) as source:
        return read_recordings(source)


def with_footer(footer: Any) -> bytes:
    """The recording with another footer, whose checksum fits."""
    payload = footer.SerializeToString()
    end = struct.pack("<QQ", END, len(payload)) + payload
    checksum = xxhash.xxh32_intdigest(payload, 7850921)
    stream_footer = struct.pack("<QQI4s4sI", len(MESSAGES) + 16, len(payload), checksum, b"RRF2", b"FOOT", 1)
    return bytes(MESSAGES + end + stream_footer)


def described(recording: Recording) -> Any:
    manifest = recording.manifest.to_pylist()
    chunks = {each["chunk_id"]: (each["chunk_byte_offset"], each["chunk_byte_size"]) for each in manifest}
    columns = {field.name: (field.type, field.metadata) for field in recording.schema}
    ranges = {each.name: (each.type, each.first, each.last) for each in recording.timelines()}
    return recording.segment, chunks, columns, ranges, recording.size, recording.entities


def test_a_footer_and_a_scan_give_the_same(tmp_path: Path) -> None:
    [closed], [scanned] = read(tmp_path, DATA), read(tmp_path, MESSAGES)
    assert described(closed) == described(scanned)
    assert (closed.segment, closed.chunks) == ("rec_0", 5)
    assert {each.name: (each.first, each.last) for each in closed.timelines() if each.name in ("tick", "at")} == {
        "tick": (0, 5),
        "at": (0, 2_500_000_000),
    }
    assert {"/scalars/a:Scalars:scalars", "property:info:robot"} <= set(closed.schema.names)


def test_chunks_are_where_the_manifest_says(tmp_path: Path) -> None:
    [closed] = read(tmp_path, DATA)
    for each in closed.manifest.to_pylist():
        payload = DATA[each["chunk_byte_offset"] :][: each["chunk_byte_size"]]
        assert log_msg.ArrowMsg.FromString(payload).store_id.recording_id == "rec_0"


def test_files_after_each_other_are_read_whole(tmp_path: Path) -> None:
    [twice] = read(tmp_path, DATA + DATA)
    assert (twice.segment, twice.chunks) == ("rec_0", 10)


def test_a_footer_that_does_not_fit_its_checksum_is_not_used(tmp_path: Path) -> None:
    damaged = bytearray(DATA)
    damaged[START + LENGTH // 2] ^= 1
    assert described(read(tmp_path, bytes(damaged))[0]) == described(read(tmp_path, DATA)[0])


def test_ranges_of_a_footer_are_within_the_file(tmp_path: Path) -> None:
    footer = log_msg.RrdFooter.FromString(DATA[START : START + LENGTH])
    assert described(read(tmp_path, with_footer(footer))[0]) == described(read(tmp_path, DATA)[0])
    moved = DATA[: START - 16][:-2000]
    cut = moved + with_footer(footer)[len(MESSAGES) :]
    shift = bytearray(cut)
    struct.pack_into("<Q", shift, len(shift) - 32, len(moved) + 16)
    with pytest.raises(InvalidInput, match=r"its footer names bytes .* which do not hold a chunk"):
        read(tmp_path, bytes(shift))


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "foreign": (b"PAR1" + bytes(100), "it begins with b'PAR1'"),
    "magic number alone": (b"RRF2", "the file is not a recording"),
    "amid a message": (MESSAGES[:-10], "the file is truncated: the message at byte"),
    "amid a header": (MESSAGES + b"\2\0\0", "the file is truncated: the message at byte"),
    "unknown message": (MESSAGES + struct.pack("<QQ", 77, 0), "there is no message at byte"),
    "endless message": (MESSAGES + struct.pack("<QQ", 2, 1 << 63), "the file is truncated"),
    "not a chunk": (MESSAGES + struct.pack("<QQ", 2, 3) + b"\xff\xff\xff", "the file is damaged"),
}


@pytest.mark.parametrize("case", BAD)
def test_files_that_are_no_recordings_are_named(case: str, tmp_path: Path) -> None:
    data, match = BAD[case]
    with pytest.raises(InvalidInput, match=match) as raised:
        read(tmp_path, data)
    assert "some.rrd" in str(raised.value.where)


@given(place=st.integers(0, len(DATA) - 1), value=st.integers(0, 255), cut=st.integers(0, len(DATA)))
def test_a_damaged_file_is_an_error_or_is_read(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int, cut: int
) -> None:
    damaged = bytearray(DATA)
    damaged[place] = value
    folder = tmp_path_factory.getbasetemp()
    for data in (bytes(damaged), DATA[:cut]):
        try:
            found = read(folder, data)
        except DeployerError:
            continue
        for each in found:
            ends = [row["chunk_byte_offset"] + row["chunk_byte_size"] for row in each.manifest.to_pylist()]
            assert max(ends, default=0) <= len(data)


@pytest.mark.full
def test_an_object_in_a_bucket_is_read_by_ranges(bucket: str) -> None:
    S3Objects(f"s3://{bucket}").put("some.rrd", DATA)
    with open_source(f"s3://{bucket}/some.rrd") as source:
        assert read_recordings(source)[0].segment == "rec_0"
        assert source.size == len(DATA) and source.tag
        assert [each.kind for each in frames(source)][-1] == END
    with pytest.raises(NotFound, match="the object does not exist"), open_source(f"s3://{bucket}/none.rrd"):
        pass


def test_the_command_shows_the_good_and_names_the_bad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.rrd"
    bad.write_bytes(MESSAGES[:-10])
    assert run(["catalog", "inspect", str(CLOSED), str(bad), str(tmp_path / "none.rrd"), "ftp://x/y", "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    [recording] = shown["recordings"]
    assert (recording["segment"], recording["chunks"], len(recording["columns"])) == ("rec_0", 5, 11)
    kinds = [each["error"]["kind"] for each in shown["failed"]]
    assert kinds == ["InvalidInput", "NotFound", "InvalidInput"]
    assert run(["catalog", "inspect", str(CLOSED)]) == 0
    assert "rec_0" in capsys.readouterr().out
