"""The objects on S3 that an address names: one object, all objects below a folder, or those that match a glob.

A Lance dataset counts as one object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from functools import lru_cache

from deployer.errors import InvalidInput, NotFound
from deployer.platform.storage.s3_objects import S3Objects
from deployer.tables.ingest.files.folder_names import is_hidden
from deployer.tables.ingest.files.source_files import SCHEME

GLOB = re.compile(r"[*?[]")


def expanded(given: str, wanted: Callable[[str], bool]) -> list[tuple[str, bool]]:
    """Returns the addresses, and whether each is a Lance dataset, in the order of their names.

    `wanted` decides by name which files of a folder are loaded. Raises NotFound where nothing matches, and InvalidInput
    for an address without a bucket.
    """
    bucket, _, key = given.removeprefix(SCHEME).partition("/")
    key = key.strip("/")
    if not bucket:
        raise InvalidInput("there is no bucket in the address", where=given, remedy="write s3://BUCKET/PATH")
    pattern = key.split("/") if key else []
    fixed = next((i for i, part in enumerate(pattern) if GLOB.search(part)), len(pattern))
    is_glob = fixed < len(pattern)
    folder = "/".join(pattern[:fixed])
    found = []
    if key and not is_glob and not given.endswith("/") and _is_object(bucket, key):
        return [(given, False)]
    for path, is_lance in _entries(bucket, folder):
        place = path.split("/") if path else []
        depth = fit(place, pattern[fixed:])
        if depth is None:
            continue
        below = place[depth:]
        hidden = any(map(is_hidden, below))
        if not below or (not hidden and (is_lance or wanted(below[-1]))):
            found.append(("/".join((f"{SCHEME}{bucket}", *filter(None, (folder, path)))), is_lance))
    if not found:
        what = "no such object, folder or glob" if is_glob or not folder else "no such object, and no folder with files"
        raise NotFound(f"{what} on S3", where=given, remedy="check the address, and give files of a known format")
    return found


def _is_object(bucket: str, key: str) -> bool:
    folder, _, name = key.rpartition("/")
    return S3Objects(f"{SCHEME}{bucket}/{folder}").has(name)


def _entries(bucket: str, folder: str) -> list[tuple[str, bool]]:
    """Returns the paths below the folder, and whether each is a Lance dataset. The objects of a dataset are left out.
    The empty path is the folder itself."""
    paths = sorted(S3Objects(f"{SCHEME}{bucket}/{folder}").list(""))
    datasets = {f"/{path}".partition("/_versions/")[0][1:] for path in paths if "/_versions/" in f"/{path}"}
    outside = [path for path in paths if not any(not each or path.startswith(f"{each}/") for each in datasets)]
    return sorted([(path, True) for path in datasets] + [(path, False) for path in outside])


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def fit(place: Sequence[str], pattern: Sequence[str]) -> int | None:
    """Returns how many leading parts of a path a glob matches: all parts, or those of a folder above; None for no
    match.

    As on a disk, a name that begins with a dot only matches a part of the glob that begins with a dot.
    """
    if not pattern:
        return 0
    if pattern[0] == "**":
        seen = next((i for i, part in enumerate(place) if part.startswith(".")), len(place))
        fits = (fit(place[skip:], pattern[1:]) for skip in range(seen + 1))
        return next((skip + depth for skip, depth in enumerate(fits) if depth is not None), None)
    if not place or not _compiled(pattern[0]).match(place[0]):
        return None
    if place[0].startswith(".") and not pattern[0].startswith("."):
        return None
    depth = fit(place[1:], pattern[1:])
    return None if depth is None else depth + 1
