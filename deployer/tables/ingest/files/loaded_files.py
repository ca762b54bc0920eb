"""The record of the files that a load read: names, sizes and digests, by which a later load recognizes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from deployer.errors import InvalidInput
from deployer.platform.files.reading import parse_json
from deployer.state.model.entities import Job
from deployer.state.model.times import iso_utc
from deployer.tables.ingest.files.model import Format, Source
from deployer.tables.ingest.files.source_files import file_size, open_bytes

MOST_NAMED = 200  #: files of a load whose names are recorded; the others are only in the digest of all
LONGEST_NAME = 200  #: characters of a name; of a longer name, only the end is recorded
#: bytes of each part that is read of a file: its start, middle and end; a file up to four times as large is read wholly
PART_BYTES = 256 * 1024
AT_ONCE = 16  #: files that are read at the same time
SHOWN = 5  #: files that a message lists


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file of a load. Files with the same digest are regarded as the same file, whatever their names are."""

    name: str
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class LoadedFiles:
    """All files of a load. `digest` is the digest of all of them, `named` has the first `MOST_NAMED`."""

    count: int
    digest: str
    named: tuple[LoadedFile, ...]

    def to_text(self) -> str:
        """Returns the text that the record of a job stores; `of_text` reads it."""
        columns = {
            "count": self.count,
            "digest": self.digest,
            "names": [file.name for file in self.named],
            "bytes": [file.bytes for file in self.named],
            "digests": [file.digest for file in self.named],
        }
        return json.dumps(columns, ensure_ascii=False, separators=(",", ":"))

    @staticmethod
    def of_text(text: str) -> LoadedFiles | None:
        """Returns the files from the record of a job; None for a record without files, or of another form."""
        try:
            columns = parse_json(text)
            rows = zip(columns["names"], columns["bytes"], columns["digests"], strict=True)
            named = tuple(LoadedFile(str(name), int(size), str(digest)) for name, size, digest in rows)
            return LoadedFiles(int(columns["count"]), str(columns["digest"]), named)
        except (ValueError, KeyError, TypeError, OverflowError):
            return None

    def __str__(self) -> str:
        """Returns the first files with their sizes, and the number of further files."""
        shown = [f"{file.name} ({file.bytes:,} bytes)" for file in self.named[:SHOWN]]
        more = self.count - len(shown)
        return ", ".join(shown) + (f" and {more:,} more" if more else "")


@dataclass(frozen=True, slots=True)
class LoadedBefore:
    """A file that an earlier load of the table read, and that load; `at` is its time in ISO 8601 (UTC)."""

    file: str
    job_id: str
    lance_version: int
    at: str

    def __str__(self) -> str:
        return f"{self.file} was loaded before, as version {self.lance_version} ({self.at[:19]}Z)"


def identified(sources: Sequence[Source]) -> LoadedFiles:
    """Returns the files of a load. Raises InvalidInput and OSError for a file that cannot be read."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        files = list(pool.map(_identified, sources))
    digest = _digest(sorted(file.digest for file in files))
    return LoadedFiles(len(files), digest, tuple(files[:MOST_NAMED]))


def _identified(source: Source) -> LoadedFile:
    name = source.name[-LONGEST_NAME:].encode("utf-8", "replace").decode()
    if source.format is Format.LANCE:
        from deployer.tables.ingest.files.columnar import dataset_files

        paths = dataset_files(source)
        return LoadedFile(name, sum(paths.values()), _digest(sorted(paths)))
    size = file_size(source.path)
    parts = [f"{size}".encode(), *_sampled(source.path, size)]
    return LoadedFile(name, size, hashlib.blake2b(b"\n".join(parts), digest_size=16).hexdigest())


def _sampled(path: str, size: int) -> list[bytes]:
    if not size:
        return []
    with open_bytes(path) as data:
        if size <= 4 * PART_BYTES:
            return [data[0:size]]
        middle = size // 2
        return [data[0:PART_BYTES], data[middle : middle + PART_BYTES], data[size - PART_BYTES : size]]


def _digest(texts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(texts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def refuse_other_files(job: Job, files: LoadedFiles | None, address: str) -> None:
    """Raises InvalidInput where the job loaded other files. Does nothing where the files of either are unknown."""
    recorded = LoadedFiles.of_text(job.sources)
    if recorded is not None and files is not None and recorded.digest != files.digest:
        raise InvalidInput(
            f"job {job.job_id} was done before with other files: it loaded {recorded}, as version {job.lance_version}",
            where=address,
            remedy="nothing was loaded now; give these files another --job-id",
        )


def loaded_before(files: LoadedFiles, jobs: Iterable[Job]) -> tuple[LoadedBefore, ...]:
    """Returns the named files that one of the jobs loaded, each with the newest such job."""
    newest: dict[str, Job] = {}
    for job in jobs:
        if job.sources:
            newest.update((file.digest, job) for file in files.named if file.digest in job.sources)
    return tuple(
        LoadedBefore(file.name, job.job_id, job.lance_version, iso_utc(job.at))
        for file in files.named
        if file.bytes and file.digest in newest
        for job in (newest[file.digest],)
    )
