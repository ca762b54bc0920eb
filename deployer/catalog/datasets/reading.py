"""Finds the recordings to register below a prefix, and reads and checks each of them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from google.protobuf.message import DecodeError

from deployer.catalog.datasets.model.properties import properties_of
from deployer.catalog.datasets.model.properties_together import UNUSUAL, properties_together
from deployer.catalog.datasets.model.record import Kind
from deployer.catalog.datasets.model.rows import NewLayer
from deployer.catalog.recordings.manifest import fault_of_columns
from deployer.catalog.recordings.recording import (
    BLUEPRINT,
    LARGEST,
    RECORDING,
    SHA256,
    Recording,
    read_recordings,
)
from deployer.catalog.recordings.row_range import RowRange
from deployer.catalog.recordings.small_files import read_small_files
from deployer.catalog.recordings.source import ByteSource, open_source, url_of, url_of_file
from deployer.errors import DeployerError, InvalidInput
from deployer.platform.storage.s3_objects import S3Objects

SUFFIX = ".rrd"
BASE = "base"  #: the layer of a recording that is registered without a layer
_THREADS = 16  #: objects that are read at the same time
_TOGETHER = 256  #: small files that are read in one group
_SOUND = deque[pa.Schema](maxlen=4)  #: the last valid schemas of manifests; most recordings have the same
_KINDS = {"dataset": RECORDING, "blueprints": BLUEPRINT}


@dataclass(frozen=True, slots=True)
class Source:
    """A file to register. `url` is a path, `file://` or `s3://bucket/key`."""

    url: str
    layer: str = BASE


@dataclass(frozen=True, slots=True)
class ReadSource:
    """The content of a file: its layers, or the error why it cannot be registered."""

    source: Source
    layers: tuple[NewLayer, ...] = ()
    error: DeployerError | None = None


def below(prefix: str, layer: str = BASE) -> list[Source]:
    """Returns the recordings below a folder or a prefix in S3, sorted by name.

    Raises InvalidInput for a folder that does not exist, for a file, and for a folder without recordings.
    """
    parsed = urlsplit(prefix)
    if parsed.scheme == "s3":
        bucket, key = f"s3://{parsed.netloc}", parsed.path.strip("/")
        listed = S3Objects(bucket).list(f"{key}/" if key else "")
        if not listed and key and S3Objects(bucket).has(key):
            raise _not_a_folder(prefix)
        found = [f"{bucket}/{each}" for each in sorted(listed)]
    elif parsed.scheme in ("", "file"):
        files = _files(Path(unquote(parsed.path) if parsed.scheme else prefix), prefix)
        found = [url_of_file(each) for each in files if each.lower().endswith(SUFFIX)]
    else:
        raise InvalidInput(
            f"{parsed.scheme}:// is not a known kind of URL", where=prefix, remedy="give a path, file:// or s3://"
        )
    found = [each for each in found if each.lower().endswith(SUFFIX)]
    if not found:
        raise InvalidInput(f"no rrd files found in {prefix}", remedy=f"give a folder with recordings ({SUFFIX})")
    return [Source(each, layer) for each in found]


def _files(folder: Path, prefix: str) -> Sequence[str]:
    """Returns the paths of the files below a folder, sorted by their parts."""
    folder = folder.absolute()
    if folder.is_file():
        raise _not_a_folder(prefix)
    if not folder.is_dir():
        raise InvalidInput(f"the folder does not exist: {prefix}", remedy="check the path")
    return sorted(_files_below(str(folder)), key=lambda each: each.split("/"))


def _files_below(folder: str) -> Iterator[str]:
    try:
        listed = list(os.scandir(folder))
    except OSError:  # the folder is not readable, or was removed
        return
    for each in listed:
        if each.is_dir(follow_symlinks=False):
            yield from _files_below(each.path)
        elif each.is_file():
            yield each.path


def _not_a_folder(prefix: str) -> InvalidInput:
    return InvalidInput(
        f"expected prefix / directory but got an object: {prefix}", remedy="register the file itself, without a prefix"
    )


def read_all(sources: Sequence[Source], kind: Kind) -> Iterator[ReadSource]:
    """Yields the content of each file, in the order of the files. Objects in S3 are read in parallel, and small local
    files are checked in groups."""
    if any(each.url.startswith("s3://") for each in sources):
        with ThreadPoolExecutor(_THREADS, "register") as pool:
            yield from pool.map(lambda each: read(each, kind), sources)
    else:
        for start in range(0, len(sources), _TOGETHER):
            yield from _read_together(sources[start : start + _TOGETHER], kind)


def _read_together(sources: Sequence[Source], kind: Kind) -> Iterator[ReadSource]:
    files = read_small_files([each.url for each in sources], _KINDS[kind])
    properties = properties_together(files)
    for source, small, found in zip(sources, files, properties, strict=True):
        if small is None or found is UNUSUAL:
            yield read(source, kind)
        else:
            file = small.file
            layer = NewLayer(source.layer, file.url, file.size, file.tag, small.recording, found)
            yield ReadSource(source, (layer,))


def _properties(recording: Recording, source: ByteSource) -> RowRange | None:
    found = properties_of(recording, source)
    return None if found is None else RowRange.of(found)


def read(source: Source, kind: Kind) -> ReadSource:
    """Returns the layers of one file, or the error, which names the file."""
    try:
        with open_source(source.url) as opened:
            layers = tuple(
                NewLayer(source.layer, opened.url, opened.size, opened.tag, each, _properties(each, opened))
                for each in read_recordings(opened, _KINDS[kind])
            )
        what = "recording" if kind == "dataset" else "blueprint"
        if not layers:
            raise InvalidInput(f"the file holds no {what}", remedy=f"give a file with a {what}")
        for each in layers:
            if fault := _fault(each.recording):
                raise InvalidInput(f"the file is damaged: {fault}", remedy="copy or record it again")
    except DeployerError as failure:
        return ReadSource(source, error=_named(failure, source))
    except (ValueError, KeyError, DecodeError, pa.ArrowException) as failure:
        damaged = InvalidInput(f"the file is damaged: {failure}", remedy="copy or record it again")
        return ReadSource(source, error=_named(damaged, source))
    return ReadSource(source, layers)


def _named(failure: DeployerError, source: Source) -> DeployerError:
    """Returns the error, whose place is the URL of the file, as that of the registered layers is."""
    failure.where = url_of(source.url)
    return failure


def _fault(recording: Recording) -> str | None:
    """Returns a sentence that states the fault of a recording whose bytes are complete; None for a valid one."""
    if not recording.segment:
        return "a recording in it has no id"
    if len(recording.schema_sha256) != SHA256:
        return "its footer has no hash of its columns"
    if recording.size >= LARGEST:
        return "its footer names chunks that are larger than any file"
    manifest = recording.manifest.schema
    if any(manifest.equals(each, check_metadata=True) for each in tuple(_SOUND)):
        return None
    fault = fault_of_columns(manifest)
    if fault is None:
        _SOUND.append(manifest)
    return fault
