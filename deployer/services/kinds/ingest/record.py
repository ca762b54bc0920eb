"""The files that a table has loaded, as lists of files. A list is valid exactly while the table has its commit.

A list is written before its commit, to `_ingest/TABLE_ID/` below the root, and the commit's job has the list's digest
among its sources. So a list and its commit are one: a list without a job is left by a run that ended before its commit,
and a job without a list means damage. The number in a job's id is one more than the newest number. If two runs commit
at the same time, such as one that was considered dead, both use the same number, which the table accepts once.

A restore that undoes a commit makes its files new again, since their rows are gone. Later ids name the restore, so that
an id is never used for two commits. `MERGED_AT` lists are merged into one larger list.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deployer.datasets.commit_metadata import RESTORE
from deployer.datasets.storage.job_folders import FILE_LISTS
from deployer.datasets.storage.options import objects_at
from deployer.errors import Corrupt
from deployer.platform.files.reading import parse_json
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.objects import Missing, ObjectStore
from deployer.services.kinds.ingest.landing import LandedFile
from deployer.state.model.entities import Job, TableState

MERGED_AT = 32  #: the number of lists of one level that become one list of the next level
FORMAT = 1
_JOB = re.compile(r"files-(?P<restored>[0-9]+)-(?P<number>[0-9]{8,})")
_LIST = re.compile(r"list-(?P<level>[0-9])-(?P<digest>[0-9a-f]{32})")


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file that a commit loaded at `at` (ms). `content` is a hash of its content; empty for objects and datasets."""

    path: str
    tag: str
    bytes: int
    content: str
    job_id: str
    lance_version: int
    at: int


@dataclass(frozen=True, slots=True)
class FileList:
    """A list as it is stored.

    `jobs` has the ids of the jobs with the digests that their commits name. `job` has for each file the index of its
    job.
    """

    jobs: tuple[tuple[str, str], ...]
    job: tuple[int, ...]
    paths: tuple[str, ...]
    tags: tuple[str, ...]
    sizes: tuple[int, ...]
    contents: tuple[str, ...]

    @staticmethod
    def of(job_id: str, files: Sequence[LandedFile], contents: Mapping[str, str]) -> FileList:
        """Returns the list of one commit."""
        return FileList(
            ((job_id, ""),),
            (0,) * len(files),
            tuple(each.path for each in files),
            tuple(each.tag for each in files),
            tuple(each.bytes for each in files),
            tuple(contents.get(each.path, "") for each in files),
        )

    @staticmethod
    def merged(lists: Sequence[FileList]) -> FileList:
        """Returns one list with the files of several."""
        jobs, job = list[tuple[str, str]](), list[int]()
        for each in lists:
            job += [len(jobs) + i for i in each.job]
            jobs += each.jobs
        columns = ([value for each in lists for value in getattr(each, name)] for name in _COLUMNS)
        paths, tags, sizes, contents = map(tuple, columns)
        return FileList(tuple(jobs), tuple(job), paths, tags, sizes, contents)

    def to_bytes(self) -> bytes:
        form = {name: getattr(self, name) for name in ("jobs", "job", *_COLUMNS)}
        return json.dumps({"format": FORMAT, **form}, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )

    @staticmethod
    def from_bytes(data: bytes, where: str, digest: str) -> FileList:
        """Reads a stored list. `digest` is the digest in its name, which its commit also has if the list has one job.

        Raises Corrupt for an invalid list.
        """
        try:
            form = parse_json(data.decode("utf-8", "surrogatepass"))
            jobs = tuple((str(job_id), str(of) or digest) for job_id, of in form["jobs"])
            columns = [tuple(form[name]) for name in ("job", *_COLUMNS)]
            if len({len(each) for each in columns}) != 1 or not all(0 <= i < len(jobs) for i in columns[0]):
                raise ValueError("its columns differ in length")
            return FileList(jobs, *columns)
        except (ValueError, KeyError, TypeError) as failure:
            raise _damaged(where, f"it is not a list of files ({failure})") from None


_COLUMNS = ("paths", "tags", "sizes", "contents")


@dataclass(frozen=True, slots=True)
class Record:
    """The files that a table has loaded at one state, with the newest load of each path. `next_job` is the id of the
    next commit."""

    files: Mapping[str, LoadedFile]
    next_job: str
    lists: Mapping[str, FileList] = field(default_factory=dict)  #: by their names

    def of(self, path: str) -> LoadedFile | None:
        return self.files.get(path)


@dataclass(frozen=True, slots=True)
class FileLists:
    """The lists of one table."""

    root: str
    table_id: str

    @property
    def objects(self) -> ObjectStore:
        return objects_at(self.root)

    def put(self, listed: FileList, level: int = 0) -> str:
        """Stores a list durably and returns its digest."""
        data = listed.to_bytes()
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        self.objects.put(self._path(f"list-{level}-{digest}"), seal(data))
        return digest

    def read(self, state: TableState) -> Record:
        """Returns the files that the table has loaded. Raises Corrupt where the list of a commit is missing or
        damaged."""
        lists = dict[str, FileList]()
        for path in sorted(self.objects.list(f"{FILE_LISTS}/{self.table_id}")):
            name = path.rpartition("/")[2]
            if (found := _LIST.fullmatch(name)) is None:
                continue
            try:
                data = unseal(self.objects.get(path), f"{self.root}/{path}")
            except Missing:
                continue  # another run has merged it, and stored the merged list before it removed this one
            lists[name] = FileList.from_bytes(data, f"{self.root}/{path}", found["digest"])
        return self._record(state, lists)

    def _record(self, state: TableState, lists: Mapping[str, FileList]) -> Record:
        done = {job_id: job for job_id, job in state.jobs.items() if _JOB.fullmatch(job_id)}
        wanted = {job_id: list_of(job) for job_id, job in done.items()}
        files, found = dict[str, LoadedFile](), set[str]()
        for listed in lists.values():
            jobs = [done[job_id] if wanted.get(job_id) == digest else None for job_id, digest in listed.jobs]
            found |= {job.job_id for job in jobs if job is not None}
            for i, *about in zip(listed.job, *(getattr(listed, name) for name in _COLUMNS), strict=True):
                if (job := jobs[i]) is None:
                    continue
                path, tag, size, content = about
                known = files.get(path)
                if known is None or _order(known.job_id) < _order(job.job_id):
                    files[path] = LoadedFile(path, tag, size, content, job.job_id, job.lance_version, job.at)
        if missing := sorted(done.keys() - found):
            what = f"the list of the files that {missing[0]} loaded is missing"
            raise _damaged(f"{self.root}/{FILE_LISTS}/{self.table_id}", what)
        return Record(files, next_job(state), lists)

    def merge(self, record: Record) -> None:
        """Merges lists of a level whose commits the table all has. Other lists stay, since a restore may need them."""
        done = {each.job_id for each in record.files.values()}
        for level in range(9):
            named = {
                name: listed
                for name, listed in record.lists.items()
                if name.startswith(f"list-{level}-") and all(job_id in done for job_id, _ in listed.jobs)
            }
            if len(named) >= MERGED_AT:
                self.put(FileList.merged([*named.values()]), level + 1)
                self.objects.delete([self._path(name) for name in named])

    def _path(self, name: str) -> str:
        return f"{FILE_LISTS}/{self.table_id}/{name}"


def next_job(state: TableState) -> str:
    """Returns the id of the next commit of files."""
    ids = (found for job_id in state.jobs if (found := _JOB.fullmatch(job_id)))
    number = max((int(found["number"]) for found in ids), default=0) + 1
    restored = max((job.lance_version for job in state.jobs.values() if job.kind == RESTORE), default=0)
    return f"files-{restored}-{number:08d}"


def own_intents(state: TableState) -> list[str]:
    """Returns the jobs of commits of files that have begun and not ended."""
    return [job_id for job_id in state.intents if _JOB.fullmatch(job_id)]


def sources_of(files: Sequence[LandedFile], digest: str) -> str:
    """Returns the sources of the commit's job, in JSON: the list's digest, the number of files and the first files."""
    first = files[:5]
    columns = {
        "count": len(files),
        "digest": digest,
        "names": [each.path[-200:].encode("utf-8", "replace").decode() for each in first],
        "bytes": [each.bytes for each in first],
        "digests": [""] * len(first),
        "list": digest,
    }
    return json.dumps(columns, ensure_ascii=False, separators=(",", ":"))


def list_of(job: Job) -> str:
    """Returns the digest of a job's list; empty where the job names no list."""
    try:
        return str(parse_json(job.sources)["list"])
    except (ValueError, KeyError, TypeError):
        return ""


def _order(job_id: str) -> int:
    found = _JOB.fullmatch(job_id)
    return int(found["number"]) if found else 0


def _damaged(where: str, what: str) -> Corrupt:
    return Corrupt(
        what,
        where=where,
        remedy="restore the folder _ingest of the root from a backup; without it, which files were loaded is unknown",
    )
