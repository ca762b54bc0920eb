"""Split points as a text file, with one split point on each line, in ascending order.

A value has the form of specs. A point of several row keys is a JSON list such as `["DL", 500]`. With `base64`, each
line is the base64 of that text, or of the bytes of a binary key, so that keys may contain line ends.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deployer.errors import InvalidInput
from deployer.platform.files.reading import read_limited
from deployer.specs.editing.write import split_point_document
from deployer.specs.model import KeyValue
from deployer.specs.types.names import BINARIES, FLOATS, INTEGERS
from deployer.specs.types.types import Column, Scalar
from deployer.specs.values.keys import key_value, order_of
from deployer.specs.yaml.nodes import resolve_plain

MAX_BYTES = 256 * 2**20  #: the largest size of a file of split points
_NOT_TEXT = frozenset(("bool", *INTEGERS, *FLOATS, "duration"))


def read_split_points(
    path: Path, keys: Sequence[Column], *, in_base64: bool = False
) -> tuple[tuple[KeyValue, ...], ...]:
    """Returns the split points of a file for these row keys. Raises InvalidInput, which names the line, for errors in
    the file."""
    try:
        lines = read_limited(path, MAX_BYTES).decode().splitlines()
    except OSError as error:
        raise InvalidInput(
            f"it cannot be read: {error.strerror}", where=path, remedy="give a file of split points"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput("it is not UTF-8 text", where=path, remedy="give --base64 for keys of other bytes") from None
    if not keys:
        raise InvalidInput("the table has no row keys", where=path, remedy="leave the split points out")
    points: list[tuple[KeyValue, ...]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        point = _point(_decoded(line.strip(), keys, where) if in_base64 else line, keys, where)
        if points and _order(point, keys) <= _order(points[-1], keys):
            raise InvalidInput(
                f"the split point {line.strip()!r} is not above the one before it",
                where=where,
                remedy="write each once, in ascending order",
            )
        points.append(point)
    return tuple(points)


def split_points_text(points: Iterable[Sequence[KeyValue]], keys: Sequence[Column], *, in_base64: bool = False) -> str:
    """Returns the text of a file, which `read_split_points` reads. Raises InvalidInput for a key that is empty or has a
    line end, unless `in_base64`."""
    lines = []
    for point in points:
        document = split_point_document(tuple(point), keys)
        text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False, default=str)
        if not in_base64 and len(text.splitlines()) != 1:
            raise InvalidInput("a key has a line end or is empty", remedy="give --base64")
        single_binary = len(point) == 1 and isinstance(point[0], bytes)
        data = point[0] if single_binary else text.encode()
        lines.append(base64.b64encode(data).decode() if in_base64 else text)  # type: ignore[arg-type]
    return "".join(f"{line}\n" for line in lines)


def _decoded(line: str, keys: Sequence[Column], where: str) -> str:
    try:
        data = base64.b64decode(line, validate=True)
        binary = isinstance(keys[0].type, Scalar) and keys[0].type.name in (*BINARIES, "fixed_size_binary")
        return data.hex() if binary and len(keys) == 1 else data.decode()
    except (binascii.Error, UnicodeDecodeError):
        raise InvalidInput(
            f"{line[:40]!r} is not a key in base64", where=where, remedy="leave --base64 out for plain text"
        ) from None


def _point(text: str, keys: Sequence[Column], where: str) -> tuple[KeyValue, ...]:
    try:
        if len(keys) > 1 and text.lstrip().startswith("["):
            values: Any = json.loads(text)
            if not values or len(values) > len(keys):
                raise InvalidInput(f"{len(values)} values for {len(keys)} row keys", remedy="give one to each at most")
            return tuple(key_value(column, value) for column, value in zip(keys, values, strict=False))
        not_text = isinstance(keys[0].type, Scalar) and keys[0].type.name in _NOT_TEXT
        return (key_value(keys[0], resolve_plain(text) if not_text else text),)
    except json.JSONDecodeError:
        raise InvalidInput(f"{text!r} is not a JSON list", where=where, remedy='write it as ["DL", 500]') from None
    except InvalidInput as error:
        raise InvalidInput(error.what, where=where, remedy=error.remedy) from None


def _order(point: Sequence[KeyValue], keys: Sequence[Column]) -> tuple[Any, ...]:
    return tuple(order_of(column, value) for column, value in zip(keys, point, strict=False))
