"""Packages beside the tables of an instance, `_udfs/HASH`: sealed with a checksum, and the author's name."""

from __future__ import annotations

import json

from deployer.datasets.storage.function_packages import is_package_hash, package_path
from deployer.datasets.storage.options import objects_at
from deployer.errors import Corrupt, InvalidFunction, NotFound
from deployer.functions.model import UDF
from deployer.functions.packages.package import LARGEST, PackageInfo, pack, read_package, unpack
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.objects import Missing

_LONGEST_AUTHOR = 256
_REMEDY = "package the function again: pass it to alter_columns"
_saved_here: set[str] = set()  #: hashes of packages that this process made itself, and whose code it therefore trusts


def save_function(root: str, udf: UDF, author: str) -> str:
    """Stores the package of a function below the root, and returns its hash. A stored package is kept, and its grace
    period begins again.

    This process trusts the package from now on. Raises InvalidFunction as `pack` does, and for an author without a
    name.
    """
    if not author or len(author) > _LONGEST_AUTHOR or not author.isprintable():
        raise InvalidFunction(f"{author!r} is not the name of an author", where="author", remedy="use a user's name")
    packed = pack(udf)
    sealed = seal(json.dumps({"author": author}).encode() + b"\n" + packed.bytes)
    objects, path = objects_at(root), package_path(packed.hash)
    if (
        objects.replace(path, sealed, None) is None
    ):  # it exists, and may be old enough for garbage collection to remove it
        objects.put(path, _kept(root, packed.hash) or sealed)
    _saved_here.add(packed.hash)
    return packed.hash


def function_info(root: str, package_hash: str) -> tuple[PackageInfo, str]:
    """Returns the description of a stored function, and its author, without running it.

    Raises NotFound for a package that is not stored, Corrupt for one that was changed.
    """
    data, author = _read(root, package_hash)
    return read_package(data, _where(package_hash)), author


def load_function(root: str, package_hash: str, trusted: TrustedFunctions) -> UDF:
    """Returns a stored function, whose code runs here from now on.

    Raises Refused, before any of it runs, where neither its author, its hash nor all functions are trusted and this
    process did not package it. Raises NotFound, Corrupt and InvalidFunction as `function_info` and `unpack` do.
    """
    data, author = _read(root, package_hash)
    where = _where(package_hash)
    if package_hash not in _saved_here:
        trusted.require_package(package_hash, author, read_package(data, where).name, where)
    return unpack(data, where)


def _kept(root: str, package_hash: str) -> bytes | None:
    """Returns the stored package with its first author; None for a damaged or missing one."""
    try:
        _read(root, package_hash)
        return objects_at(root).get(package_path(package_hash))
    except (Corrupt, NotFound, Missing):
        return None


def _where(package_hash: str) -> str:
    return f"function {package_hash}"


def _read(root: str, package_hash: str) -> tuple[bytes, str]:
    """Returns the package and its author, checked against its hash."""
    where = _where(package_hash)
    if not is_package_hash(package_hash):
        raise InvalidFunction("this is not the hash of a function", where=where, remedy="use that of the column")
    objects, path = objects_at(root), package_path(package_hash)
    try:
        if objects.size(path) > 2 * LARGEST:
            raise Corrupt("the package is larger than any that is saved", where=where, remedy=_REMEDY)
        sealed = objects.get(path)
    except Missing:
        raise NotFound("its package is not stored below the root", where=where, remedy=_REMEDY) from None
    try:
        head, _, data = unseal(sealed, where).partition(b"\n")
        author = str(json.loads(head)["author"])
    except Corrupt as error:
        raise Corrupt(error.what, where=where, remedy=_REMEDY) from None
    except (ValueError, KeyError, TypeError):
        raise Corrupt("this is not a stored package", where=where, remedy=_REMEDY) from None
    if read_package(data, where).hash != package_hash:
        raise Corrupt("the package is that of another function", where=where, remedy=_REMEDY)
    return data, author
