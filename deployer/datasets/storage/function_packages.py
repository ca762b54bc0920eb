"""Packages of functions below the root, `_udfs/HASH`: see `deployer.functions.packages`, which makes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deployer.datasets.storage.options import objects_at
from deployer.platform.storage.objects import ObjectInfo

UDFS = "_udfs"
_HASH = re.compile(r"[0-9a-f]{64}")


def is_package_hash(text: str) -> bool:
    """Returns whether a text can be the hash of a package."""
    return _HASH.fullmatch(text) is not None


def package_path(package_hash: str) -> str:
    """Returns the path of a package, relative to the root."""
    return f"{UDFS}/{package_hash}"


def stored_packages(root: str) -> dict[str, ObjectInfo]:
    """Returns the packages below the root by their hashes."""
    found = objects_at(root).described(UDFS)
    return {name: each for each in found if is_package_hash(name := each.path.removeprefix(f"{UDFS}/"))}


def remove_packages(root: str, hashes: Iterable[str]) -> None:
    """Removes packages."""
    objects_at(root).delete([package_path(each) for each in hashes])
