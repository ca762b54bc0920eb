"""The present files at the places that `ingest` names. Listing them opens none of the files."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from deployer.errors import DeployerError, InvalidInput, Refused
from deployer.platform.storage.objects import ObjectInfo
from deployer.platform.storage.s3_objects import S3Objects
from deployer.tables.ingest.files.find import known_format, refuse_credentials
from deployer.tables.ingest.files.folder_names import is_hidden
from deployer.tables.ingest.files.s3_sources import GLOB, fit
from deployer.tables.ingest.files.source_files import SCHEME, is_on_s3

AT_ONCE = 16  #: requests for single objects at the same time
FEW = 64  #: up to this number of files, each is requested by itself instead of listing the place
DATASET_ENDING = ".lance"
_VERSIONS = "_versions"
_PART = 1 << 20


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file or Lance dataset. `tag` changes with its content.

    The tag of an object is its entity tag; that of another file consists of size and time. `changed` is in seconds
    since 1970. `place` is the declared folder or glob that has the file.
    """

    path: str
    bytes: int
    tag: str
    changed: float
    is_lance: bool = False
    place: str = ""


@dataclass(frozen=True, slots=True)
class Landing:
    """A place: its `folder` (a path, or s3://…), and the parts of the glob below the folder, if there is a glob."""

    files: str
    folder: str
    pattern: tuple[str, ...]
    any_name: bool  #: whether files whose names show no format belong to the place
    listed: bool = True  #: whether listing all files is cheaper than a request for each of many files

    @staticmethod
    def of(files: str, root: str, *, any_name: bool, listed: bool = True) -> Landing:
        """Returns the declared place. Raises InvalidInput for an invalid place, and Refused where the place lies within
        the lake's root or covers it."""
        refuse_credentials([files])
        scheme = SCHEME if is_on_s3(files) else "/"
        if not files.startswith(scheme) or not files.removeprefix(scheme).strip("/"):
            raise InvalidInput(
                "the place is neither a folder nor a glob",
                where=files,
                remedy="write s3://BUCKET/PATH, or a path from /",
            )
        parts = [part for part in files.removeprefix(scheme).split("/") if part]
        fixed = next((i for i, part in enumerate(parts) if GLOB.search(part)), len(parts))
        if is_on_s3(files) and not fixed:
            raise InvalidInput("the bucket's name is a glob", where=files, remedy="name one bucket")
        place = Landing(files, scheme + "/".join(parts[:fixed]), tuple(parts[fixed:]), any_name, listed)
        if place.covers(root):
            raise Refused(
                f"the place lies within the lake's own root {root}, or covers it",
                where=files,
                remedy="use a place outside of the root",
            )
        return place

    def covers(self, root: str) -> bool:
        """Returns whether the place is within the root, or may include files of the root."""
        if is_on_s3(root) != is_on_s3(self.folder):
            return False
        own, lake = (each if is_on_s3(each) else os.path.realpath(each) for each in (self.folder, root.rstrip("/")))
        if f"{own}/".startswith(f"{lake}/"):
            return True
        if not f"{lake}/".startswith(f"{own.rstrip('/')}/"):
            return False
        below = lake.removeprefix(own.rstrip("/")).strip("/").split("/")
        for part, pattern in zip(below, self.pattern, strict=False):
            if pattern == "**":
                return True
            if fit([part], [pattern]) is None:
                return False
        return True  # a glob that matches a folder takes everything in the folder

    def takes(self, path: str) -> bool:
        """Returns whether the file with this full path belongs to the place."""
        below = path.removeprefix(self.folder).strip("/").split("/")
        return path.startswith(f"{self.folder.rstrip('/')}/") and self._fits(below, is_lance=False)

    def list(self) -> list[LandedFile]:
        """Returns all files of the place, ordered by path. Returns no file where the folder does not exist."""
        listed = self._on_s3() if is_on_s3(self.folder) else self._here()
        return sorted((each for each in _with_datasets(listed)), key=lambda each: each.path)

    def now(self, paths: Sequence[str]) -> Mapping[str, LandedFile]:
        """Returns the present files among the paths, by path."""
        if not is_on_s3(self.folder):
            found = (_stat(path) for path in paths)
            return {each.path: each for each in found if each is not None} | self._datasets(paths)
        if self.listed and len(paths) > FEW:
            wanted = frozenset(paths)
            return {each.path: each for each in self.list() if each.path in wanted}
        objects = S3Objects(self.folder)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            infos = pool.map(lambda path: _about(objects, self.folder, path), paths)
            there = {path: self._of_object(info) for path, info in zip(paths, infos, strict=True) if info is not None}
        return there | self._datasets([path for path in paths if path not in there])

    def _datasets(self, paths: Sequence[str]) -> dict[str, LandedFile]:
        """Returns the Lance datasets among the paths. Only names with the ending of a dataset are checked."""
        wanted = {path for path in paths if path.endswith(DATASET_ENDING)}
        return {each.path: each for each in self.list() if each.path in wanted} if wanted else {}

    def _of_object(self, info: ObjectInfo) -> LandedFile:
        return LandedFile(f"{self.folder}/{info.path}", info.bytes, info.tag, info.changed)

    def _fits(self, below: Sequence[str], *, is_lance: bool) -> bool:
        depth = fit(below, self.pattern)
        if depth is None:
            return False
        rest = below[depth:]
        if any(map(is_hidden, below)) and not any(part[0] in "._" for part in self.pattern):
            return False  # hidden files, such as those that a writer has not renamed yet
        return not rest or is_lance or self.any_name or known_format(rest[-1]) is not None

    def _kept(self, below: str) -> bool:
        parts = below.split("/")
        if _VERSIONS in parts:
            return self._fits(parts[: parts.index(_VERSIONS)], is_lance=True)
        return self._fits(parts, is_lance=False)

    def _on_s3(self) -> Iterator[LandedFile]:
        for info in S3Objects(self.folder).described(""):
            if info.path and self._kept(info.path):
                yield self._of_object(info)

    def _here(self) -> Iterator[LandedFile]:
        yield from self._below(self.folder, "", 0)

    def _may_hold(self, name: str, depth: int) -> bool:
        """Returns whether a folder may hold files of the place; `depth` counts the folders above it in the place."""
        if depth >= len(self.pattern) or "**" in self.pattern:
            return True
        return fit([name], [self.pattern[depth]]) is not None

    def _below(self, folder: str, below: str, depth: int) -> Iterator[LandedFile]:
        try:
            entries = [*os.scandir(folder)]
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            name = f"{below}{entry.name}"
            try:
                if entry.is_dir():
                    if self._may_hold(entry.name, depth) or entry.name == _VERSIONS:
                        yield from self._below(entry.path, f"{name}/", depth + 1)
                elif self._kept(name) and (found := _landed(entry.path, entry.stat())) is not None:
                    yield found
            except FileNotFoundError:  # another process removed it meanwhile
                continue


@dataclass(frozen=True, slots=True)
class Landings:
    """All places that one `ingest` names. A file that belongs to several places counts once."""

    places: tuple[Landing, ...]

    @staticmethod
    def of(files: Sequence[str], root: str, *, any_name: bool, listed: bool = True) -> Landings:
        """Returns the declared places. Raises the same errors as `Landing.of`."""
        return Landings(tuple(Landing.of(each, root, any_name=any_name, listed=listed) for each in files))

    @property
    def files(self) -> str:
        """The places as they are declared."""
        return ", ".join(each.files for each in self.places)

    def takes(self, path: str) -> bool:
        """Returns whether the file with this full path belongs to one of the places."""
        return any(each.takes(path) for each in self.places)

    def list(self) -> list[LandedFile]:
        """Returns all files of the places, ordered by path."""
        found: dict[str, LandedFile] = {}
        for each in self.places:
            found |= {file.path: replace(file, place=each.files) for file in each.list() if file.path not in found}
        return [found[path] for path in sorted(found)]

    def now(self, paths: Sequence[str]) -> Mapping[str, LandedFile]:
        """Returns the present files among the paths, by path."""
        found: dict[str, LandedFile] = {}
        for each in self.places:
            folder = f"{each.folder.rstrip('/')}/"
            own = [
                path
                for path in paths
                if path not in found
                and (each.takes(path) or (path.startswith(folder) and path.endswith(DATASET_ENDING)))
            ]
            if own:
                found |= {path: replace(file, place=each.files) for path, file in each.now(own).items()}
        return found


def _about(objects: S3Objects, folder: str, path: str) -> ObjectInfo | None:
    """Returns the object; None where it does not exist.

    S3 refuses a request for a missing object to a role that may list only a part of the bucket. So after a refusal, the
    object is looked for in a listing of its own name.
    """
    relative = path.removeprefix(folder).strip("/")
    try:
        return objects.about(relative)
    except DeployerError:
        from deployer.platform.aws.session import aws_session

        bucket, _, key = path.removeprefix(SCHEME).partition("/")
        try:
            listed = aws_session().client("s3").list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
        except (BotoCoreError, ClientError):
            listed = None
        if listed is None or any(each.get("Key") == key for each in listed.get("Contents", ())):
            raise
        return None


def _with_datasets(files: Iterator[LandedFile]) -> Iterator[LandedFile]:
    """Yields the files, with one entry for each Lance dataset. The tag of a dataset is a hash of its manifests'
    tags."""
    manifests: dict[str, list[LandedFile]] = {}
    others = []
    for each in files:
        dataset, within, _ = each.path.partition(f"/{_VERSIONS}/")
        if within:
            manifests.setdefault(dataset, []).append(each)
        else:
            others.append(each)
    for path, found in manifests.items():
        text = "\n".join(sorted(f"{each.path} {each.tag}" for each in found))
        tag = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
        yield LandedFile(path, sum(each.bytes for each in found), tag, max(each.changed for each in found), True)
    for each in others:
        if not any(each.path.startswith(f"{dataset}/") for dataset in manifests):
            yield each


def _stat(path: str) -> LandedFile | None:
    try:
        return _landed(path, Path(path).stat())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _landed(path: str, about: os.stat_result) -> LandedFile | None:
    """Returns a regular file; None for others, such as pipes, since reading them would block."""
    if not stat.S_ISREG(about.st_mode):
        return None
    return LandedFile(path, about.st_size, f"{about.st_size}-{about.st_mtime_ns}", about.st_mtime)


def content_hash(data: bytes) -> str:
    """Returns the hash that `content_of` returns for a file with this content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def content_of(path: str) -> str:
    """Returns a hash of a file's whole content. It recognizes a loaded file that was only touched or copied again."""
    found = hashlib.blake2b(digest_size=16)
    with Path(path).open("rb") as file:
        while block := file.read(_PART):
            found.update(block)
    return found.hexdigest()
