"""Assets and archives: their hashes, by which the engine and providers detect whether their contents changed.

An asset's hash is the SHA-256 of its contents. An archive's hash is the SHA-256 over its files in name order, each as
name, size and contents; it only has to be the same for the same contents.
"""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deployer.engine.values.values import ARCHIVE, ASSET, SIG
from deployer.errors import NotFound, Refused

HERE = Path()


def with_hashes(value: Any, folder: Path = HERE) -> Any:
    """Returns the value with a `hash` on every asset and archive in it; relative paths start from `folder`."""
    if isinstance(value, dict):
        if value.get(SIG) in {ASSET, ARCHIVE}:
            return hashed(value, folder)
        return {key: with_hashes(item, folder) for key, item in value.items()}
    return [with_hashes(item, folder) for item in value] if isinstance(value, list) else value


def hashed(value: dict[str, Any], folder: Path = HERE) -> dict[str, Any]:
    if value[SIG] == ASSET:
        return {
            **value,
            "hash": _hash_of_text(value["text"]) if "text" in value else _hash_of_file(folder / _local(value)),
        }
    if isinstance(value.get("assets"), dict):
        value = {**value, "assets": {name: hashed(item, folder) for name, item in sorted(value["assets"].items())}}
    digest = hashlib.sha256()
    for name, contents in sorted(_members(value, folder)):
        digest.update(f"{name}\0{len(contents)}\0".encode())
        digest.update(contents)
    return {**value, "hash": digest.hexdigest()}


def _contents(asset: dict[str, Any], folder: Path) -> bytes:
    if "text" in asset:
        return str(asset["text"]).encode()
    return _read(folder / _local(asset))


def _members(archive: dict[str, Any], folder: Path) -> Iterator[tuple[str, bytes]]:
    if "assets" in archive:
        for name, item in archive["assets"].items():
            if item[SIG] == ASSET:
                yield name, _contents(item, folder)
            else:
                yield from ((f"{name}/{inner}", contents) for inner, contents in _members(item, folder))
        return
    path = folder / _local(archive)
    if path.is_dir():
        yield from ((str(file.relative_to(path)), _read(file)) for file in path.rglob("*") if file.is_file())
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as zipped:
            yield from ((name, zipped.read(name)) for name in zipped.namelist() if not name.endswith("/"))
    elif path.is_file() and tarfile.is_tarfile(path):
        with tarfile.open(path) as tarred:
            for member in tarred.getmembers():
                if member.isfile() and (stream := tarred.extractfile(member)) is not None:
                    yield member.name, stream.read()
    else:
        raise NotFound("no folder, zip or tar file", where=path, remedy="correct the path of the archive")


def _local(value: dict[str, Any]) -> str:
    if "path" in value:
        return str(value["path"])
    uri = str(value.get("uri", ""))
    if uri.startswith("file://"):
        return uri.removeprefix("file://")
    raise Refused(
        f"assets over the network ({uri.partition('://')[0]}://) need the Pulumi CLI",
        where=uri,
        remedy="install `pulumi`, or use a file in the project",
    )


def _hash_of_text(text: Any) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()


def _hash_of_file(path: Path) -> str:
    """Returns the hash of a file, which is read in parts because it may be large."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> NotFound:
    return NotFound(f"cannot read the asset: {error.strerror}", where=path, remedy="correct its path")
