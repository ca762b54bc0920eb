"""Hypothesis strategies for hostile content, made of the dataclasses themselves: what is new in them is covered.

`values(hint, atoms)` gives JSON for a field's type, right or wrong; `updates(atoms)` gives updates of a log, and
`entries(atoms)` whole entries. `atoms` are texts that mean something in the lake at hand, such as its locations, ids
and names: a fuzzer of another form (an export, a plan, a checkpoint) makes them by `atoms_of` and draws from `texts`,
`values` and `json_values` for the members of its documents.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from deployer.state.log.codec import Kinds
from deployer.state.log.updates import InstanceUpdate, TableUpdate, Update
from deployer.state.model.location import Location, rewrite_location

from . import forge

Json = Any

#: Paths that lead elsewhere, and texts that are none.
PATHS = (
    "",
    ".",
    "..",
    "/",
    "../../../outside",
    "air/../../../../outside",
    "air",
    "_state",
    "_state/state.db",
    "air/x.lance/..",
    "a\\..\\b",
    "file:///etc",
    "%2e%2e/outside",
    "air//x.lance",
    "x\x00y",
    "\x1b[2J",
    "\u202e",
    "x" * 2000,
)
NUMBERS = (0, 1, -1, 2, 9, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 10**30, 253402300799999, 1000)


def atoms_of(root: Path, outside: Path) -> tuple[str, ...]:
    """Texts that mean something in a lake: places, ids and names of its tables, and places outside of it."""
    tables = list(forge.instance(root).tables.values())
    found: list[str] = [str(outside), f"{outside}/deep/keep.lance", "air", "flights", "planes", "zz", "instance"]
    for entry in tables:
        found += [entry.table_id, entry.location, entry.name, f"{entry.location}/data"]
        found += [rewrite_location(entry.location, entry.table_id, number) for number in (1, 2, 9)]
        found += [f"air/plain-g{number}.lance" for number in (2, 9)]
    return tuple(dict.fromkeys(found))


def texts(atoms: Sequence[str]) -> st.SearchStrategy[str]:
    return st.sampled_from([*atoms, *PATHS])


def json_values(atoms: Sequence[str]) -> st.SearchStrategy[Json]:
    """Any JSON: also what a field of another type has."""
    single = st.none() | st.booleans() | st.sampled_from(NUMBERS) | texts(atoms) | st.just(1.5)
    return st.recursive(
        single, lambda each: st.lists(each, max_size=3) | st.dictionaries(texts(atoms), each, max_size=3), max_leaves=6
    )


def values(hint: Any, atoms: Sequence[str]) -> st.SearchStrategy[Json]:
    """JSON for a field of that type, mostly of its shape."""
    right = _right(hint, atoms)
    return st.integers(0, 30).flatmap(lambda n: json_values(atoms) if n == 0 else right)


def _right(hint: Any, atoms: Sequence[str]) -> st.SearchStrategy[Json]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _formed(hint.__metadata__[0].fault, atoms)
    if origin is Literal:
        return st.sampled_from(args)
    if origin is Mapping:
        return st.dictionaries(
            st.sampled_from(
                ["spec", "owner", "storage", "tags", "declared", "online", "deletion_protection", "row_keys"]
            )
            | texts(atoms),
            json_values(atoms),
            max_size=3,
        )
    if dataclasses.is_dataclass(hint):
        return objects(cast(type[Any], hint), atoms)
    if type(None) in args:
        (inner,) = (each for each in args if each is not type(None))
        return st.none() | values(inner, atoms)
    if origin is tuple:
        if dataclasses.is_dataclass(args[0]):
            single = objects(cast(type[Any], args[0]), atoms)
            return st.just({}) | single.map(lambda one: {name: [each] for name, each in one.items()})
        return st.lists(values(args[0], atoms), max_size=3)
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.sampled_from((1, 2, 3)) | st.sampled_from(NUMBERS)
    if hint is bytes:
        return st.sampled_from([b"", b"\x00", b"x" * 40]).map(lambda each: base64.b64encode(each).decode())
    if hint is Location:
        return _formed(Location.fault, atoms)
    assert hint is str, hint
    return texts(atoms)


def _formed(fault: Callable[[str], str | None], atoms: Sequence[str]) -> st.SearchStrategy[str]:
    """Mostly texts of that form: others are refused before they can do anything."""
    fitting = [each for each in atoms if fault(each) is None]
    return st.integers(0, 9).flatmap(lambda n: texts(atoms) if n == 0 or not fitting else st.sampled_from(fitting))


def objects(cls: type[Any], atoms: Sequence[str]) -> st.SearchStrategy[dict[str, Json]]:
    """JSON objects with the fields of a dataclass; some lack one."""
    hints = get_type_hints(cls, include_extras=True)
    fields = {field.name: values(hints[field.name], atoms) for field in dataclasses.fields(cls)}
    needed = {name for name in fields if name not in ("dataset", "cluster", "note", "log")}
    return st.fixed_dictionaries(
        {name: each for name, each in fields.items() if name in needed},
        optional={name: each for name, each in fields.items() if name not in needed},
    )


def updates(union: Any, atoms: Sequence[str]) -> st.SearchStrategy[dict[str, Json]]:
    """Updates of a closed union, as logs have them, each kind as often as another."""
    kinds = Kinds("update", union)
    return st.one_of(
        [
            objects(cls, atoms).map(lambda fields, name=name: {"type": name, **fields})  # type: ignore[misc]
            for name, cls in kinds.classes.items()
        ]
    )


@st.composite
def entries(draw: st.DrawFn, atoms: Sequence[str], logs: Sequence[str]) -> tuple[str, list[dict[str, Json]], int]:
    """A log, the updates of an entry of it, and the entry's time (ms)."""
    log = draw(st.sampled_from(logs))
    union = InstanceUpdate if log == "instance" else TableUpdate
    several = st.lists(updates(union, atoms), min_size=1, max_size=2)
    stray = st.lists(updates(Update, atoms), min_size=1, max_size=1)
    return (
        log,
        draw(st.integers(0, 9).flatmap(lambda n: stray if n == 0 else several)),
        draw(st.sampled_from([1, 1000])),
    )
