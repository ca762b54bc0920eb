"""The columns of a dataset: the union of the columns of its layers, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from deployer.errors import InvalidInput

_SLASH, _ESCAPE = re.compile(r"(?<!\\)/"), re.compile(r"\\(.)")
_RUN = re.compile(r"[0-9]{1,40}|.", re.DOTALL)
_ZERO = ord("0")


class Columns:
    """The union of the columns of several schemas, in which each name has one type. Not safe for threads."""

    def __init__(self, schemas: Iterable[pa.Schema] = ()) -> None:
        self._fields = dict[str, pa.Field]()
        self._known = dict[int, pa.Schema]()  # by `id`: hashing or comparing schemas would take most of the time
        for each in schemas:
            self.add(each)

    def fault(self, schema: pa.Schema) -> str | None:
        """Returns a sentence that names a column of `schema` with another type than here; None where all types fit."""
        for field in schema:
            known = self._fields.get(field.name)
            if known is not None and known.type != field.type:
                return f"the column {field.name} is {field.type}, and the dataset has it as {known.type}"
        return None

    def add(self, schema: pa.Schema) -> None:
        """Adds the columns of a schema. Raises InvalidInput, and adds nothing, where a column has another type than in
        the dataset."""
        if id(schema) in self._known:
            return
        if fault := self.fault(schema):
            raise InvalidInput(fault, remedy="record the component with one type, or register it in another dataset")
        for field in schema:
            known = self._fields.get(field.name)
            metadata = {**(field.metadata or {}), **((known.metadata if known is not None else None) or {})}
            self._fields[field.name] = field.with_metadata(metadata or None)
        self._known[id(schema)] = schema

    def schema(self) -> pa.Schema:
        """Returns all columns in this order: the row id, the timelines, and the components, sorted by entity, archetype
        and name."""
        return pa.schema(sorted(self._fields.values(), key=_place))


def _place(field: pa.Field) -> tuple[int, tuple[Any, ...], str, str]:
    metadata: Mapping[bytes, bytes] = field.metadata or {}
    kind = metadata.get(b"rerun:kind")
    if kind == b"control":
        return 0, (), "", ""
    if kind == b"index":
        return 1, (field.name,), "", ""
    entity, archetype, component = (
        metadata.get(key, b"").decode() for key in (b"rerun:entity_path", b"rerun:archetype", b"rerun:component")
    )
    return 2, entity_order(entity), archetype, component


def entity_order(path: str) -> tuple[Any, ...]:
    """Returns a sort key that gives entity paths Rerun's order.

    Paths are compared part by part: numbers in them by value, and letters without their case. Paths that begin with
    `__` come last.
    """
    parts = [_ESCAPE.sub(r"\1", each) for each in _SLASH.split(path.strip("/"))]
    return parts[0].startswith("__"), tuple((_natural(each), each) for each in parts)


def _natural(part: str) -> tuple[tuple[int, int], ...]:
    """Returns a pair of numbers for each character of a part; the digits of a number become one pair."""
    return tuple(
        (_ZERO, int(each)) if each.isascii() and each.isdecimal() else (ord(each[0].lower()[:1]), 0)
        for each in _RUN.findall(part)
    )
