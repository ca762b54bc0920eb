"""The types that Lance stores, according to trials with pylance 14 in file versions 2.1 and 2.2
(tests/specs/test_stored_types.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never
from zoneinfo import ZoneInfo, available_timezones

from deployer.specs.rules import Rule
from deployer.specs.types.column_names import alike, name_fault
from deployer.specs.types.names import BINARIES, FLOATS, INTEGERS, TEXTS
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    children,
    format_type,
)
from deployer.specs.yaml.suggestions import nearest

DICTIONARY_VALUES = frozenset((*INTEGERS, *FLOATS, *TEXTS, *BINARIES, "bool"))
NOT_IN_FIXED_SIZE = frozenset((*TEXTS, *BINARIES, "json", "uuid"))
NEWER = "2.2"
_OFFSET = re.compile(r"[+-](0[0-9]|1[0-4]):[0-5][0-9]")


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a type, without its place in the declaration."""

    rule: Rule
    what: str
    remedy: str


def type_findings(column: Column) -> Iterator[Finding]:
    """Yields the faults of a column's type, nested types included.

    Faults are types that Lance does not store in any file version, unknown time zones, and invalid or repeated names of
    nested fields.
    """
    column_type = column.type
    if isinstance(column_type, Scalar):
        if column_type.name == "null" and not column.nullable:
            what = f"the type null holds nothing but nulls, and `{column.name}` may not be null"
            yield Finding(Rule.UNSUPPORTED_TYPE, what, "let it be null, or use another type")
        elif column_type.name == "timestamp" and len(column_type.args) > 1 and column_type.args[1] != "UTC":
            yield from _zone_findings(str(column_type.args[1]))
        return
    yield from _nested_findings(column_type)
    for child in children(column_type):
        yield from type_findings(child)


def newer_findings(column_type: ColumnType) -> Iterator[Finding]:
    """Yields the first part of a type that needs file version 2.2; nothing where no part needs it."""
    for part in _parts(column_type):
        match part:
            case MapOf():
                what = "maps"
            case ListOf(item) if any(isinstance(inner, Blob) for inner in _parts(item.type)):
                what = "lists of blobs"
            case _:
                continue
        yield Finding(
            Rule.NEEDS_STORAGE_VERSION,
            f"Lance stores {what} in file version {NEWER} only",
            f'set `data_storage_version: "{NEWER}"` under `storage:`',
        )
        return


def _parts(column_type: ColumnType) -> Iterator[ColumnType]:
    yield column_type
    for child in children(column_type):
        yield from _parts(child.type)


def _nested_findings(column_type: ColumnType) -> Iterator[Finding]:
    match column_type:
        case FixedSizeList(item):
            yield from _fixed_size_findings(item)
        case Struct(fields):
            yield from _field_findings(fields)
        case MapOf(key, value):
            if any(isinstance(part, Blob) for child in (key, value) for part in _parts(child.type)):
                yield Finding(Rule.UNSUPPORTED_TYPE, "Lance does not store blobs in maps", "use large_binary")
        case Dictionary(_, value):
            if value.name not in DICTIONARY_VALUES:
                yield Finding(
                    Rule.UNSUPPORTED_TYPE,
                    f"Lance does not store dictionaries of {format_type(value)}",
                    f"use {format_type(value)} itself; Lance stores repeated values once anyway",
                )
        case Scalar() | ListOf() | Blob():
            pass
        case _:
            assert_never(column_type)


def _fixed_size_findings(item: Column) -> Iterator[Finding]:
    if not item.nullable:
        what = "Lance does not keep `not null` of the items of fixed-size lists"
        yield Finding(Rule.UNSUPPORTED_TYPE, what, "remove `not null`")
    if item.description:
        what = "Lance does not keep descriptions of the items of fixed-size lists"
        yield Finding(Rule.UNSUPPORTED_TYPE, what, "move it to the column's own description")
    match item.type:
        case Scalar(name) if name not in NOT_IN_FIXED_SIZE:
            return
        case Scalar("uuid"):
            remedy = "use fixed_size_binary[16] for the items, or list<uuid>"
        case Struct():
            # Lance writes such a column, but then reads no other column together with it: it counts its items as rows.
            what = "Lance does not read fixed-size lists of structs beside other columns"
            yield Finding(Rule.UNSUPPORTED_TYPE, what, f"use list<{format_type(item.type)}>")
            return
        case FixedSizeList():
            return
        case _:
            remedy = f"use list<{format_type(item.type)}>"
    yield Finding(Rule.UNSUPPORTED_TYPE, f"Lance does not store fixed-size lists of {format_type(item.type)}", remedy)


def _field_findings(fields: tuple[Column, ...]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for field in fields:
        if fault := name_fault(field.name, nested=True):
            yield Finding(fault.rule, f"a field of a struct: {fault.what}", fault.remedy)
        first = seen.setdefault(alike(field.name), field.name)
        if first is not field.name:
            how = "" if first == field.name else ", which differ only in case"
            what = f"a struct has fields `{first}` and `{field.name}`{how}"
            yield Finding(Rule.DUPLICATE_FIELD, what, "rename one of them")


def _zone_findings(zone: str) -> Iterator[Finding]:
    if not is_time_zone(zone):
        near = nearest(zone, sorted(available_timezones()))
        remedy = f"did you mean {near}?" if near else "use a name such as UTC or Europe/Berlin, or an offset as +05:30"
        yield Finding(Rule.UNKNOWN_TIME_ZONE, f"unknown time zone `{zone}`", remedy)


@lru_cache(maxsize=1024)
def is_time_zone(zone: str) -> bool:
    """Returns whether `zone` is in the time zone database or is an offset such as +05:30."""
    if _OFFSET.fullmatch(zone):
        return True
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # unknown, not a valid path, or a folder of zones such as Europe
        return False
    return zone != "localtime"
