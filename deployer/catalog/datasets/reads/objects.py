"""Checks that objects in S3 have not changed since their registration. Many objects of one folder are listed instead of
being requested one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from deployer.platform.storage.objects import ObjectInfo
from deployer.platform.storage.s3_objects import S3Objects

MANY = 16  #: least number of objects of one folder for which the folder is listed
_THREADS = 32  #: requests at the same time
_PAGE = 1000  #: most objects that one request lists

Known = tuple[str, int, str]  #: the URL of an object, and its size and tag at its registration


def require_objects(known: Sequence[Known], failure: Callable[[str, str], Exception]) -> None:
    """Raises `failure(url, what)` for an object that is gone or was changed.

    A folder with `MANY` or more of the objects is listed in pages of up to 1,000 objects: as many pages as the objects
    can fill, and a few more for other objects between them. The remaining objects are requested one by one.
    """
    folders = dict[str, dict[str, Known]]()
    for each in known:
        folder, _, name = each[0].rpartition("/")
        folders.setdefault(folder, {})[name] = each
    if not folders:
        return
    with ThreadPoolExecutor(min(_THREADS, len(known)), "sources") as pool:
        seen: dict[str, ObjectInfo] = {}
        for found in pool.map(_listed, folders.items()):
            seen |= found
        missing = [each for each in known if each[0] not in seen]
        infos = zip(missing, pool.map(_requested, missing), strict=True)
        seen |= {each[0]: info for each, info in infos if info is not None}
    for url, size, tag in known:
        info = seen.get(url)
        if info is None:
            raise failure(url, "is gone")
        if (info.bytes, info.tag) != (size, tag):
            raise failure(url, "was changed")


def _listed(folder: tuple[str, Mapping[str, Known]]) -> dict[str, ObjectInfo]:
    """Returns the listed objects of a folder, by URL. The listing begins after the folder's first object."""
    url, names = folder
    if len(names) < MANY:
        return {}
    return {f"{url}/{name}": info for name, info in _wanted(S3Objects(url), sorted(names))}


def _wanted(objects: S3Objects, names: Sequence[str]) -> Iterator[tuple[str, ObjectInfo]]:
    wanted = set(names)
    for info in objects.described_after(names[0], len(names) // _PAGE + 3):
        if info.path in wanted:
            yield info.path, info
        if info.path >= names[-1]:
            return


def _requested(known: Known) -> ObjectInfo | None:
    parsed = urlsplit(known[0])
    return S3Objects(f"s3://{parsed.netloc}").about(parsed.path.lstrip("/"))
