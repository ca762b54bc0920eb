"""A function as bytes: a line of JSON with its description, and its pickle.

The hash in its name is that of all bytes; a package with another hash is refused. The description can be read without
running anything.
"""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from typing import Any

from deployer.errors import Corrupt, InvalidFunction, Refused
from deployer.functions.model import UDF
from deployer.functions.packages.imports import missing_modules, requirements_of
from deployer.functions.packages.needed import refuse_missing
from deployer.functions.packages.pickling import pickled, unpickled
from deployer.platform.text.formatting import size
from deployer.specs.types.types import format_type

FORMAT = 1
LARGEST = 10_000_000  #: bytes of a package
_REMEDY = "package the function again: pass it to alter_columns"


@dataclass(frozen=True, slots=True)
class PackedFunction:
    """A package: `hash` names it, `bytes` are what `unpack` reads."""

    hash: str
    bytes: bytes


@dataclass(frozen=True, slots=True)
class PackageInfo:
    """The description of a packaged function, which is read without running the function.

    `modules` are the top-level modules that it imports, `requirements` the packages that have them (`name==version`)
    where the package was made, `python` the version there. `outputs` are names and types; the name is empty for a
    single column. In bytes: `memory`.
    """

    hash: str
    name: str
    version: str
    form: str
    parameters: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]
    requirements: tuple[str, ...]
    python: str
    source: str
    num_cpus: float
    num_gpus: float
    memory: int | None

    def missing_modules(self) -> tuple[str, ...]:
        """Returns those of its modules that this Python does not find."""
        return missing_modules(self.modules)


def pack(udf: UDF) -> PackedFunction:
    """Returns the package of a function.

    Raises InvalidFunction for a function that refers to an object that cannot be pickled, imports a package that is not
    installed here, or is larger than 10 MB.
    """
    data, modules = pickled(udf)
    where = f"function `{udf.name}`"
    refuse_missing(missing_modules(modules), where)
    requirements = requirements_of(modules)
    head = {
        "format": FORMAT,
        "name": udf.name,
        "version": udf.version,
        "form": udf.form,
        "parameters": list(udf.parameters),
        "outputs": [[each.name or "", format_type(each.type)] for each in udf.outputs],
        "num_cpus": udf.num_cpus,
        "num_gpus": udf.num_gpus,
        "memory": udf.memory,
        "modules": sorted(modules),
        "requirements": list(requirements),
        "requirements_hash": _hash("\n".join(requirements).encode()),
        "python": _python(),
        "source": udf.source,
        "source_hash": _hash(udf.source.encode("utf-8", "surrogatepass")),
        "pickle_hash": _hash(data),
    }
    packed = json.dumps(head, sort_keys=True).encode() + b"\n" + data
    if len(packed) > LARGEST:
        raise InvalidFunction(
            f"its package has {size(len(packed))}, more than {size(LARGEST)}",
            where=where,
            remedy="load large values, such as a model, in the `setup` of a class",
        )
    return PackedFunction(_hash(packed), packed)


def read_package(data: bytes, where: str = "the package of a function") -> PackageInfo:
    """Returns the description of a package, without running anything. Raises Corrupt for bytes that are not a package
    or were changed, Refused for a newer format."""
    head, _ = _parts(data, where)
    try:
        return PackageInfo(
            hash=_hash(data),
            name=str(head["name"]),
            version=str(head["version"]),
            form=str(head["form"]),
            parameters=tuple(map(str, head["parameters"])),
            outputs=tuple((str(name), str(kind)) for name, kind in head["outputs"]),
            modules=tuple(map(str, head["modules"])),
            requirements=tuple(map(str, head["requirements"])),
            python=str(head["python"]),
            source=str(head["source"]),
            num_cpus=float(head["num_cpus"]),
            num_gpus=float(head["num_gpus"]),
            memory=None if head["memory"] is None else int(head["memory"]),
        )
    except (KeyError, TypeError, ValueError):
        raise Corrupt("this is not a package of a function", where=where, remedy=_REMEDY) from None


def unpack(data: bytes, where: str = "the package of a function") -> UDF:
    """Returns the function of a package, whose author the caller trusts: reading it runs code.

    Raises the errors of `read_package`, and InvalidFunction where this Python lacks a requirement.
    """
    found = read_package(data, where)
    _, body = _parts(data, where)
    if found.python != _python():
        raise InvalidFunction(
            f"`{found.name}` was packaged by Python {found.python}, and this is {_python()}",
            where=where,
            remedy=f"run it by Python {found.python}, or package it again by {_python()}",
        )
    refuse_missing(found.missing_modules(), where, found.requirements)
    try:
        return unpickled(body)
    except Exception as error:  # the code may raise any exception
        raise InvalidFunction(
            f"`{found.name}` cannot be read: {type(error).__name__}: {error}",
            where=where,
            remedy="install the packages that it was made with: " + (", ".join(found.requirements) or "none are known"),
        ) from error


def _parts(data: bytes, where: str) -> tuple[dict[str, Any], bytes]:
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        fits = isinstance(head, dict) and head["pickle_hash"] == _hash(body)
    except (ValueError, KeyError):
        fits = False
    if not fits:
        raise Corrupt("this is not a package of a function", where=where, remedy=_REMEDY)
    if head.get("format") != FORMAT:
        raise Refused("the package was written by a newer deployer", where=where, remedy="upgrade")
    return head, body


def _python() -> str:
    return ".".join(platform.python_version_tuple()[:2])


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
