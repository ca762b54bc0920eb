"""Reads small recordings in groups: thousands of them have the same columns and are checked as one batch.

A file with an unusual form or a fault is left to `recording.read_recordings`, which reports the fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.message import DecodeError

from deployer.catalog.protocol.messages import log_msg
from deployer.catalog.recordings.frames import MESSAGE_HEADER, read_footer, require_recording
from deployer.catalog.recordings.manifest import columns_in, fault_of_columns, head_of, manifest_in
from deployer.catalog.recordings.recording import LARGEST, SHA256, Recording, lacked_field
from deployer.catalog.recordings.row_range import RowRange
from deployer.catalog.recordings.source import SmallFile, small_file
from deployer.errors import DeployerError

_LARGEST_CHUNK = 1 << 40  #: limit of a chunk's size in bytes; the sum of smaller sizes cannot overflow


@dataclass(frozen=True, slots=True)
class SmallRecording:
    """A small file and its only recording, which has passed the checks of `read_recordings`."""

    file: SmallFile
    recording: Recording


@dataclass(frozen=True, slots=True)
class _Footed:
    """A file and the content of its footer, whose chunks are not checked yet. A valid chunk lies before byte `end`.
    `columns` is the first message of the file's manifest."""

    file: SmallFile
    end: int
    segment: str
    columns: bytes
    manifest: pa.RecordBatch
    schema: pa.Schema
    schema_sha256: bytes


def read_small_files(urls: Sequence[str], kind: int) -> list[SmallRecording | None]:
    """Returns the only recording or blueprint (`kind`) of each file; None for a file that has to be read by itself."""
    files = [_footed(url, kind) for url in urls]
    alike = dict[bytes, list[int]]()
    for place, each in enumerate(files):
        if each is not None:
            alike.setdefault(each.columns, []).append(place)
    found: list[SmallRecording | None] = [None] * len(files)
    for places in alike.values():
        group = [each for each in (files[place] for place in places) if each is not None]
        try:
            checked = _checked(group)
        except (ValueError, KeyError, pa.ArrowException):
            continue
        for place, recording in zip(places, checked, strict=True):
            found[place] = recording
    return found


def _footed(url: str, kind: int) -> _Footed | None:
    try:
        file = small_file(url)
        if file is None:
            return None
        require_recording(file)
        footer = read_footer(file)
        if footer is None:
            return None
        message = log_msg.RrdFooter.FromString(footer.payload)
        [each] = [found for found in message.manifests if found.store_id.kind == kind]
        head = head_of(each.data.payload)
        if head is None or each.data.compression:
            return None
        manifest = manifest_in(each.data)
        schema = columns_in(each.sorbet_schema.arrow_schema, each.sorbet_schema_sha256)
    except (DeployerError, DecodeError, KeyError, ValueError, pa.ArrowException):
        return None
    return _Footed(
        file,
        footer.start,
        each.store_id.recording_id,
        each.data.payload[:head],
        manifest,
        schema,
        each.sorbet_schema_sha256,
    )


def _checked(group: Sequence[_Footed]) -> Sequence[SmallRecording | None]:
    """Returns the recordings of files whose manifests have the same columns; None for each file with a fault. Returns
    None for all files where a check of the whole group fails."""
    none = [None] * len(group)
    counts = np.array([each.manifest.num_rows for each in group])
    if not counts.all() or fault_of_columns(group[0].manifest.schema) is not None:
        return none
    [block] = pa.Table.from_batches([each.manifest for each in group]).combine_chunks().to_batches()
    if lacked_field(block) is not None:
        return none
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    sizes = block["chunk_byte_size_uncompressed"].to_numpy()
    if sizes.max() >= _LARGEST_CHUNK:
        return none
    totals = np.add.reduceat(sizes, starts).tolist()
    sound = np.logical_and.reduceat(_lie_within(block, np.repeat([each.end for each in group], counts)), starts)
    found = list[SmallRecording | None]()
    for each, is_sound, size, start, count in zip(
        group, sound.tolist(), totals, starts.tolist(), counts.tolist(), strict=True
    ):
        if is_sound and each.segment and len(each.schema_sha256) == SHA256 and size < LARGEST:
            rows = RowRange(block, start, count)
            found.append(
                SmallRecording(each.file, Recording(each.segment, rows, size, each.schema, each.schema_sha256))
            )
        else:
            found.append(None)
    return found


def _lie_within(block: pa.RecordBatch, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Returns, for each chunk, whether it lies between the header of its file and its byte of `ends`."""
    ends_of_chunks = ends.astype(np.uint64)
    first, size = (block[name].to_numpy() for name in ("chunk_byte_offset", "chunk_byte_size"))
    within: npt.NDArray[np.bool_] = (
        (first >= MESSAGE_HEADER) & (first <= ends_of_chunks) & (size <= ends_of_chunks - first)
    )
    return within
