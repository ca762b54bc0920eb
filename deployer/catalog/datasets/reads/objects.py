"""The check whether objects in S3 are as they were registered. Many of one folder are listed, not asked for one by
one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from deployer.platform.storage.objects import ObjectInfo
from deployer.platform.storage.s3_objects import S3Objects

MANY = 16  #: objects of one folder from which it is listed
_THREADS = 32  #: requests at a time
_PAGE = 1000  #: objects that one request lists

Known = tuple[str, int, str]  #: the URL of an object, and the size and tag that it had when it was registered


def require_objects(known: Sequence[Known], failure: Callable[[str, str], Exception]) -> None:
    """Raises `failure(url, what)` for an object that is gone or was changed.

    Of a folder with `MANY` of them or more, pages with up to 1,000 objects are listed, as many as they could fill and a
    few for others between them. What these do not show is asked for.
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
        asked = [each for each in known if each[0] not in seen]
        seen |= {each[0]: info for each, info in zip(asked, pool.map(_asked, asked), strict=True) if info is not None}
    for url, size, tag in known:
        info = seen.get(url)
        if info is None:
            raise failure(url, "is gone")
        if (info.bytes, info.tag) != (size, tag):
            raise failure(url, "was changed")


def _listed(folder: tuple[str, Mapping[str, Known]]) -> dict[str, ObjectInfo]:
    """Returns what a listing shows of a folder's objects, by their URLs; the first is not listed."""
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


def _asked(known: Known) -> ObjectInfo | None:
    parsed = urlsplit(known[0])
    return S3Objects(f"s3://{parsed.netloc}").about(parsed.path.lstrip("/"))
