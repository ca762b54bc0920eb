"""Reads the stored bytes of chunks from recordings. A recording must not have changed since its registration."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reads.chunk_index import Numbers
from deployer.catalog.datasets.reads.index import DatasetIndex, Indexes
from deployer.catalog.datasets.reads.objects import require_objects
from deployer.catalog.datasets.reads.query import ChunkKey
from deployer.catalog.recordings.source import ByteSource, ChangedObject, open_known
from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.platform.storage.objects import Missing

AT_ONCE = 8 << 20  #: most bytes of one read of an object in S3, unless one chunk is larger
_OF_FILE = 1 << 20  #: most bytes of one read of a file: they are sent while they are still in the processor's cache
_SOURCE = itemgetter(0, 1)  #: returns the dataset and the source of a chunk's key
_GAP = 64 << 10  #: most bytes between two chunks that are read together


class ChangedSource(DeployerError):
    """The error for a recording that was changed, moved or removed after its registration."""

    kind = "ChangedSource"


def chunks(datasets: Datasets, indexes: Indexes, keys: Sequence[ChunkKey]) -> Iterator[list[memoryview]]:
    """Yields lists of the stored messages (ArrowMsg) of chunks, in the order of the keys.

    Raises NotFound for a dataset or source that does not exist, InvalidInput for a range of bytes outside of its file,
    and ChangedSource, which names the file, for a recording that changed.
    """
    opened = dict[str, DatasetIndex]()
    for (dataset_id, source), found in groupby(keys, _SOURCE):
        index = opened.get(dataset_id)
        if index is None:
            index = opened[dataset_id] = indexes.of(datasets.by_id(dataset_id))
        yield from chunks_of_source(index, source, list(found))


def chunks_of_source(index: DatasetIndex, source: int, keys: Sequence[ChunkKey]) -> Iterator[list[memoryview]]:
    """Yields lists of the stored messages of chunks of one source. Raises as `chunks` does."""
    layer = int(index.source_of_layer.searchsorted(source))
    if layer >= len(index.source_of_layer) or index.source_of_layer[layer] != source:
        raise NotFound(
            "a chunk's recording is no longer a layer of the dataset",
            where=index.record.name,
            remedy="query again",
        )
    url, size, tag = (column[layer].as_py() for column in index.files)
    for each in keys:
        if each.offset < 0 or each.length < 0 or each.offset + each.length > size:
            raise InvalidInput(
                "a chunk_key names bytes that the recording does not have",
                where=url,
                remedy="send the keys that QueryDataset gave",
            )
    try:
        with open_known(url, size, tag) as opened:
            if (opened.size, opened.tag) != (size, tag):
                raise _changed(url, "was changed")
            for run in _runs(keys, _OF_FILE if url.startswith("file://") else AT_ONCE):
                yield _read(opened, run)
    except ChangedObject:
        raise _changed(url, "was changed") from None
    except (NotFound, Missing):
        raise _changed(url, "is gone") from None


def require_unchanged(index: DatasetIndex, sources: Numbers) -> None:
    """Raises ChangedSource, which names the file, where the file of a source changed after its registration.

    A query calls this before chunks are fetched: if only a fetch failed, the client would show the rows of the other
    files.
    """
    rows = index.layers.take(pa.array(np.searchsorted(index.source_of_layer, sources)))
    listed = list(zip(*(rows[name].to_pylist() for name in ("url", "size", "tag")), strict=True))
    for url, size, tag in listed:
        if url.startswith("file://"):
            _require_file(url, size, tag)
    require_objects([(url, size, tag) for url, size, tag in listed if not url.startswith("file://")], _changed)


def _require_file(url: str, size: int, tag: str) -> None:
    try:
        found = os.stat(unquote(urlsplit(url).path))  # noqa: PTH116 (faster than Path, for thousands of files in one query)
    except OSError:
        raise _changed(url, "is gone") from None
    if (found.st_size, str(found.st_mtime_ns)) != (size, tag):
        raise _changed(url, "was changed")


def _changed(url: str, what: str) -> ChangedSource:
    return ChangedSource(
        f"the recording {what} since it was registered", where=url, remedy="put it back, or register it again"
    )


def _runs(keys: Sequence[ChunkKey], most: int) -> Iterator[list[ChunkKey]]:
    """Yields groups of chunks that one read covers: they follow each other in the file and span at most `most` bytes.
    A larger chunk is a group of its own."""
    run, start, end = list[ChunkKey](), 0, 0
    for each in keys:
        if run and not (end <= each.offset <= end + _GAP and each.offset + each.length - start <= most):
            yield run
            run = []
        if not run:
            start = each.offset
        run.append(each)
        end = each.offset + each.length
    if run:
        yield run


def _read(source: ByteSource, run: Sequence[ChunkKey]) -> list[memoryview]:
    start = run[0].offset
    length = run[-1].offset + run[-1].length - start
    data = source.read(start, length)
    if len(data) != length:
        raise _changed(source.url, "was cut")
    view = memoryview(data)
    return [view[each.offset - start :][: each.length] for each in run]
