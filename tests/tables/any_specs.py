"""Any table and any change of it, with rows for both: what hypothesis draws, and what Python says the rows then are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from deployer.specs.model import Embedding, IndexSpec, Storage, TableSpec
from deployer.specs.schema.index_kinds import type_remedy
from deployer.specs.types.lance_support import newer_findings, type_findings
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
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
from deployer.specs.values.keys import is_key_type
from tests.values import ALSO_STORED
from tests.values import value as leaf_value

ID = Column("id", Scalar("int64"), nullable=False)
NAMES = ("a", "A", "b", "c", "select", "Dd", "e_1")
#: A wider type for each of some types, by what Arrow's own casts lose nothing in.
WIDER: Mapping[str, tuple[str, ...]] = {
    "int8": ("int16", "int64", "float32"),
    "int16": ("int32", "float32"),
    "int32": ("int64", "float64"),
    "uint8": ("int16", "uint64"),
    "uint32": ("int64", "uint64"),
    "float16": ("float32",),
    "float32": ("float64",),
    "string": ("large_string",),
    "binary": ("large_binary",),
    "date32": ("date64",),
    "decimal128(10, 2)": ("decimal128(12, 2)", "decimal128(14, 4)", "decimal256(50, 4)"),
    "dictionary<int32, string>": ("string",),
}
LOSSY = Scalar("time32", ("s",))  # nothing else is wholly a time of day
# Lance writes no column anew that holds blobs in another type, nor a column beside lists of them: blobs are columns.
TYPES = [
    kind
    for kind in map(parse_type, (*(row.text for row in TYPE_ROWS), *ALSO_STORED, *WIDER))
    if isinstance(kind, Blob) or "blob" not in format_type(kind)
]


@dataclass(frozen=True)
class Sql:
    """A SQL value over a row, and the same in Python."""

    text: str
    of: Callable[[Mapping[str, Any]], Any]


_NUMBER = Sql("id % 5", lambda row: row["id"] % 5)
_TEXT = Sql("'n' || CAST(id % 3 AS VARCHAR)", lambda row: f"n{row['id'] % 3}")
_FLAG = Sql("id % 2 = 0", lambda row: row["id"] % 2 == 0)
_DAY = Sql("DATE '2020-02-03'", lambda _: dt.date(2020, 2, 3))
#: What makes values of a type, and is never null.
MADE: Mapping[str, Sql] = {
    **dict.fromkeys(("int8", "int64", "uint16", "float32", "float64", "decimal128(10, 2)"), _NUMBER),
    **dict.fromkeys(("string", "large_string"), _TEXT),
    "bool": _FLAG,
    "date32": _DAY,
}
BY_TEXT = {sql.text: sql for sql in MADE.values()}


@dataclass
class Edited:
    """What is known of a change while it is drawn."""

    converted: dict[str, Sql] = field(default_factory=dict)  #: columns by their names after, with `using:`
    unsaid: bool = False  #: a type is changed, and nobody says how values become those of it
    wants_values: bool = False  #: a field that is never null is added, which an empty table only can have


@st.composite
def types(draw: st.DrawFn, version: str, depth: int = 2) -> ColumnType:
    """A type that Lance stores in that file version."""
    if depth and draw(st.booleans()):
        kind = draw(st.sampled_from(["struct", "list", "map"] if version == "2.2" else ["struct", "list"]))
        if kind == "struct":
            return Struct(tuple(draw(columns(version, depth - 1))))
        item = Column("item", draw(types(version, depth - 1)), draw(st.booleans()))
        found: ColumnType = ListOf(item, large=draw(st.booleans()))
        if kind == "map":
            found = MapOf(Column("key", Scalar("string"), nullable=False), replace(item, name="value"))
    else:  # Lance panics when it writes a slice of a struct of structs of nothing but nulls: they are columns only
        found = draw(st.sampled_from(TYPES if depth == 2 else [kind for kind in TYPES if not _is_alone(kind)]))
    return found if _fits(found, version) else Scalar("int16")


def _is_alone(kind: ColumnType) -> bool:
    return isinstance(kind, Blob) or kind == Scalar("null") or any(_is_alone(child.type) for child in children(kind))


def _fits(kind: ColumnType, version: str) -> bool:
    return not any(type_findings(Column("x", kind))) and (version >= "2.2" or not any(newer_findings(kind)))


@st.composite
def columns(draw: st.DrawFn, version: str, depth: int = 2) -> Sequence[Column]:
    """One to four columns, or fields of a struct."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique_by=str.lower))
    return [draw(column(name, version, depth)) for name in names]


@st.composite
def column(draw: st.DrawFn, name: str, version: str, depth: int = 2) -> Column:
    kind = draw(types(version, depth))
    nullable = kind == Scalar("null") or draw(st.integers(0, 3)) > 0
    return Column(name, kind, nullable, draw(st.sampled_from(["", "Said."])))


@st.composite
def tables(draw: st.DrawFn) -> TableSpec:
    """A table of any columns, keys, split points and indexes."""
    version = draw(st.sampled_from(["2.1", "2.2"]))
    found = [ID, *draw(columns(version))]
    spec = TableSpec("air", "flights", tuple(draw(st.permutations(found))), storage=Storage(version))
    return draw(_around(spec))


@st.composite
def _around(draw: st.DrawFn, spec: TableSpec) -> TableSpec:
    """The table with other keys, indexes and settings, as its columns allow."""
    able = [each for each in spec.columns if is_key_type(each.type)]
    whole = [each.name for each in able if not each.nullable]
    row_keys = tuple(draw(st.lists(st.sampled_from(whole), max_size=2, unique=True)))
    others = [each.name for each in able if each.name not in row_keys]
    sort_keys = tuple(draw(st.lists(st.sampled_from(others), max_size=1))) if others else ()
    points = tuple(draw(st.sampled_from([(), *_points(spec, row_keys)])))
    storage = replace(
        spec.storage,
        stable_row_ids=draw(st.sampled_from([None, True, False])),
        max_rows_per_file=draw(st.sampled_from([1_048_576, 3])),
    )
    texts = [each.name for each in spec.columns if each.type == Scalar("string")]
    vectors = [each.name for each in spec.columns if _is_vector(each)]
    embeddings = [Embedding("models.words:vectors", text, vector) for text in texts for vector in vectors]
    return replace(
        spec,
        embedding=draw(st.sampled_from([None, *embeddings])),
        row_keys=row_keys,
        sort_keys=sort_keys,
        split_points=points,
        max_rows_per_leaf=draw(st.sampled_from([None, 100])) if row_keys else None,
        unique=bool(row_keys) and draw(st.booleans()),
        indexes=tuple(draw(_indexes(spec.columns))),
        storage=storage,
        description=draw(st.sampled_from(["", "Flights."])),
        online=draw(st.booleans()),
        retain_changes=draw(st.sampled_from([None, "7d", "12h"])),
        tags=draw(st.sampled_from([{}, {"tier": "gold"}])),
    )


def _is_vector(column: Column) -> bool:
    return isinstance(column.type, FixedSizeList) and column.type.item.type == Scalar("float32")


def _points(spec: TableSpec, row_keys: Sequence[str]) -> Iterator[tuple[tuple[Any], ...]]:
    first = next((each.type for each in spec.columns if row_keys and each.name == row_keys[0]), None)
    if isinstance(first, Scalar) and first.name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"):
        yield from (((5,),), ((3,), (40,)))
    if isinstance(first, Scalar) and first.name in ("string", "large_string"):
        yield (("text 3",),)


@st.composite
def _indexes(draw: st.DrawFn, columns: Sequence[Column]) -> list[IndexSpec]:
    kinds = ("btree", "bitmap", "label_list", "inverted")
    able = [
        IndexSpec(f"i{place}", (path,), kind)
        for place, kind in enumerate(kinds)
        for path, kind_of in _paths(columns)
        if type_remedy(kind, kind_of) is None
    ]
    found = draw(st.lists(st.sampled_from(able), max_size=2, unique_by=lambda index: index.name)) if able else []
    return sorted(found, key=lambda index: index.name)


def _paths(columns: Sequence[Column], above: str = "") -> Iterator[tuple[str, ColumnType]]:
    for each in columns:
        if each.name.isidentifier():
            yield above + each.name, each.type
            if isinstance(each.type, Struct):
                yield from _paths(each.type.fields, f"{above}{each.name}.")


@st.composite
def changes(draw: st.DrawFn, spec: TableSpec) -> tuple[TableSpec, Edited]:
    """Another valid spec of the same table."""
    edited = Edited()
    version = draw(st.sampled_from(["2.2"] if spec.storage.data_storage_version == "2.2" else ["2.1", "2.1", "2.2"]))
    found = draw(_edited(spec.columns, version, edited, depth=2, top=True))
    after = replace(spec, columns=tuple(found), storage=replace(spec.storage, data_storage_version=version))
    return draw(_around(after)) if draw(st.booleans()) else _followed(spec, after), edited


def _followed(before: TableSpec, after: TableSpec) -> TableSpec:
    """The keys and indexes of before under the new names, as far as the columns are still there for them."""
    now = {each.renamed_from or each.name: each for each in after.columns}
    row_keys = [now[key].name for key in before.row_keys if key in now and _keeps(now[key], never_null=True)]
    sort_keys = [now[key].name for key in before.sort_keys if key in now and _keeps(now[key])]
    same = row_keys == [*before.row_keys] and all(now[key].type == _type(before, key) for key in row_keys)
    fits = dict(_paths(after.columns))
    indexes = [each for each in before.indexes if each.columns[0] in fits]
    return replace(
        after,
        row_keys=tuple(row_keys),
        sort_keys=tuple(key for key in sort_keys if key not in row_keys),
        split_points=before.split_points if same else (),
        indexes=tuple(each for each in indexes if type_remedy(each.kind, fits[each.columns[0]]) is None),
    )


def _keeps(column: Column, *, never_null: bool = False) -> bool:
    return is_key_type(column.type) and not (never_null and column.nullable)


def _type(spec: TableSpec, name: str) -> ColumnType:
    return next(each.type for each in spec.columns if each.name == name)


@st.composite
def _edited(
    draw: st.DrawFn, live: Sequence[Column], version: str, edited: Edited, depth: int, top: bool = False
) -> list[Column]:
    """Columns, or fields of a struct, each kept, dropped or changed; some new; in any order."""
    found: list[Column] = []
    for each in live:
        each = replace(each, renamed_from=None)
        what = ["keep", "keep", "drop", "rename", "type", "type", "null", "describe", "default"]
        if each.name == "id" and top:
            found.append(each)
            continue
        match draw(st.sampled_from(what)):
            case "drop" if len(live) > 1:
                continue
            case "rename":
                used = {other.name.lower() for other in (*live, *found)}
                free = [name for name in NAMES if name.lower() not in used]
                if free:
                    each = replace(each, name=draw(st.sampled_from(free)), renamed_from=each.name)
                each = replace(each, type=draw(_retyped(each.type, version, edited, depth)))
            case "type":
                each = draw(_converted(each, version, edited, depth, top))
            case "null" if each.type != Scalar("null"):
                each = replace(each, nullable=not each.nullable)
            case "describe":
                each = replace(each, description=draw(st.sampled_from(["", "Told."])))
            case "default" if top and str(_text_of(each.type)) in MADE:
                each = replace(each, default=MADE[str(_text_of(each.type))].text)
        if not any(other.name.lower() == each.name.lower() for other in found):
            found.append(each)
    found = found or [replace(live[0], renamed_from=None)]
    names = [name for name in NAMES if name.lower() not in {each.name.lower() for each in found}]
    # A name that is dropped and declared again is the column that it was, so new columns have others.
    names = [name for name in names if name not in {each.name for each in live}]
    for name in draw(st.lists(st.sampled_from(names), max_size=2, unique_by=str.lower)) if names else ():
        new = draw(column(name, version, depth))
        if top and (sql := MADE.get(str(_text_of(new.type)))) and draw(st.booleans()):
            new = replace(new, default=sql.text)
        elif not new.nullable:
            if draw(st.integers(0, 3)):
                new = replace(new, nullable=True)
            else:
                edited.wants_values = True
        found.append(new)
    return list(draw(st.permutations(found))) if draw(st.booleans()) else found


def _text_of(kind: ColumnType) -> str | None:
    return format_type(kind) if isinstance(kind, Scalar | Dictionary) else None


@st.composite
def _converted(draw: st.DrawFn, each: Column, version: str, edited: Edited, depth: int, top: bool) -> Column:
    if not top or draw(st.booleans()):
        return replace(each, type=draw(_retyped(each.type, version, edited, depth)))
    text = draw(st.sampled_from(sorted(MADE)))
    target = parse_type(text)
    if each.type == target or text in _wider(each.type):
        return each
    edited.converted[each.name] = MADE[text]
    return replace(each, type=target, using=MADE[text].text)


def _wider(kind: ColumnType) -> tuple[str, ...]:
    """All that a type widens to, in one step or several."""
    direct = WIDER.get(str(_text_of(kind)), ())
    more = tuple(further for each in direct for further in _wider(parse_type(each)))
    every = {
        "int8": ("int32", "float16", "float64"),
        "int16": ("float64",),
        "uint8": ("uint16", "int32", "int64", "float32", "float64"),
        "uint16": ("int64", "float32", "float64"),
        "uint32": ("float64",),
        "dictionary<int8, string>": ("string",),
    }
    return (*direct, *more, *every.get(str(_text_of(kind)), ()))


@st.composite
def _retyped(draw: st.DrawFn, kind: ColumnType, version: str, edited: Edited, depth: int) -> ColumnType:
    """The type with more room, or with something changed inside; seldom one that values may not fit."""
    wider = [parse_type(text) for text in WIDER.get(str(_text_of(kind)), ())]
    if draw(st.integers(0, 19)) == 0 and kind != LOSSY and not isinstance(kind, Struct | ListOf | MapOf):
        edited.unsaid = True
        return LOSSY
    if wider:
        return draw(st.sampled_from(wider))
    found = kind
    match kind:
        case Struct(fields):
            found = Struct(tuple(draw(_edited(fields, version, edited, max(depth - 1, 0)))))
        case ListOf(item, large):
            found = ListOf(draw(_edited_item(item, version, edited, depth)), large)
        case MapOf(key, value):
            found = MapOf(key, draw(_edited_item(value, version, edited, depth)))
        case FixedSizeList(item, size):
            found = FixedSizeList(replace(item, type=draw(_retyped(item.type, version, edited, depth))), size)
    assume(_fits(found, version))
    return found


@st.composite
def _edited_item(draw: st.DrawFn, item: Column, version: str, edited: Edited, depth: int) -> Column:
    nullable = item.nullable if item.type == Scalar("null") or draw(st.booleans()) else not item.nullable
    return replace(item, type=draw(_retyped(item.type, version, edited, depth)), nullable=nullable)


def rows_for(spec: TableSpec, ids: Sequence[int], seed: int) -> list[dict[str, Any]]:
    """Rows of any values with those ids, as `tests.values.array` takes them."""
    return [
        {
            each.name: number if each == ID else _value(each, number * 7 + seed + place)
            for place, each in enumerate(spec.columns)
        }
        for number in ids
    ]


def _value(column: Column, seed: int) -> Any:
    if column.nullable and seed % 5 == 3:
        return None
    match column.type:
        case Struct(fields):
            return {each.name: _value(each, seed * 3 + place) for place, each in enumerate(fields)}
        case ListOf(item):
            return [_value(item, seed + place + 1) for place in range(seed % 3)]
        case FixedSizeList(item, size):
            return [_value(item, seed + place) for place in range(size)]
        case MapOf(_, value):
            return [(f"k{place}", _value(value, seed + place)) for place in range(seed % 3)]
        case Scalar() | Dictionary() | Blob() as kind:
            return leaf_value(kind, seed % 97)


def row_after(before: TableSpec, after: TableSpec, edited: Edited, row: Mapping[str, Any]) -> dict[str, Any]:
    """What the change makes of a row, as Arrow's `to_pylist` gives it."""
    found: dict[str, Any] = {}
    old = {each.name: each for each in before.columns}
    for each in after.columns:
        source = old.get(each.name) or old.get(each.renamed_from or "")
        if source is None:
            found[each.name] = BY_TEXT[each.default].of(row) if each.default else None
        elif each.name in edited.converted:
            found[each.name] = edited.converted[each.name].of(row)
        else:
            found[each.name] = _kept(source.type, each.type, row[source.name])
    return found


def _kept(before: ColumnType, after: ColumnType, was: Any) -> Any:
    match before, after:
        case _ if was is None:
            return None
        case Struct(old), Struct(new):
            by_name = {each.name: each for each in old}
            sources = ((each, by_name.get(each.name) or by_name.get(each.renamed_from or "")) for each in new)
            return {each.name: _kept(src.type, each.type, was[src.name]) if src else None for each, src in sources}
        case (ListOf(old_item), ListOf(new_item)) | (FixedSizeList(old_item), FixedSizeList(new_item)):
            return [_kept(old_item.type, new_item.type, item) for item in was]
        case MapOf(_, old_item), MapOf(_, new_item):
            return [(key, _kept(old_item.type, new_item.type, item)) for key, item in was]
        case _:
            return was


def breaks_nullability(columns: Sequence[Column], row: Mapping[str, Any]) -> bool:
    """Whether a value is null where the columns forbid it."""
    return any(_breaks(each, row[each.name]) for each in columns)


def _breaks(column: Column, value: Any) -> bool:
    if value is None:
        return not column.nullable
    match column.type:
        case Struct(fields):
            return any(_breaks(each, value[each.name]) for each in fields)
        case ListOf(item) | FixedSizeList(item):
            return any(_breaks(item, inner) for inner in value)
        case MapOf(_, item):
            return any(_breaks(item, inner) for _, inner in value)
        case _:
            return False
