"""The names that columns and fields may have, and their form in texts and in SQL.

Lance stores almost any name (tests/specs/test_column_names.py tries it). But it refuses a dot in the name of a column,
cannot change a field with a dot in its name, and does not find a column whose name is empty or has a backtick. Specs
refuse these names. Therefore a path such as `address.Post Code` needs no quotes, and a name in backticks needs no
escapes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from deployer.errors import InvalidInput
from deployer.platform.text.visible import visible
from deployer.specs.rules import Rule
from deployer.state.model.names import has_control_characters

MAX_NAME = 255  #: characters
RESERVED = "_row"  #: Lance's own columns: _rowid, _rowaddr, _row_last_updated_at_version, …
#: the characters of names, for editors, which show one message for all faults; `name_fault` refuses more characters
_CHARACTERS = "[^.`\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]+"
PATTERN = f"^{_CHARACTERS}$"
PATH_PATTERN = rf"^{_CHARACTERS}(\.{_CHARACTERS})*$"  #: a column, or a field by its path: `column.field`
HINT = "write a name without dots, backticks and control characters"
_SHOWN = 40
_PLAIN = re.compile(r"[A-Za-z0-9_]{1,128}")
_WORDS = re.compile(r"\w+(\.\w+)*")
_REPLACED = str.maketrans({".": "_", "`": "'"})
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^",][^,]*?|)\s*)(?=,|\Z)')


@dataclass(frozen=True, slots=True)
class NameFault:
    """The reason why a text cannot be the name of a column. `what` contains the name: "the name `a.b` has a dot,
    which …"."""

    rule: Rule
    what: str
    remedy: str


@lru_cache(maxsize=4096)  # each name is checked more than once, and the tables of a lake share many names
def name_fault(name: str, *, nested: bool = False) -> NameFault | None:
    """Returns the reason why a column cannot have the name; None where it can. `nested`: the name is for a field of a
    struct."""
    if _PLAIN.fullmatch(name) and (nested or not name.lower().startswith(RESERVED)):  # true for most names
        return None
    shown = f"`{visible(name if len(name) <= _SHOWN else name[:_SHOWN] + '…')}`"
    if not name:
        return NameFault(Rule.BAD_TEXT, "the name is empty", "write a name")
    if "." in name:
        what = f"the name {shown} has a dot, which separates a column from its fields"
        return NameFault(Rule.BAD_TEXT, what, f"write `{name.replace('.', '_')}`" if len(name) <= _SHOWN else "write _")
    if "`" in name:
        what = f"the name {shown} has a backtick, with which Lance does not find it"
        return NameFault(Rule.BAD_TEXT, what, "write ' instead of the backtick, or leave it out")
    if has_control_characters(name):
        character = next(each for each in name if has_control_characters(each))
        what = f"the name {shown} has the character U+{ord(character):04X}, which is not shown"
        return NameFault(Rule.BAD_TEXT, what, "leave it out, or write a space in its place")
    if len(name) > MAX_NAME:
        return NameFault(Rule.BAD_TEXT, f"the name {shown} has {len(name)} characters", f"use at most {MAX_NAME}")
    if not nested and name == "*":
        return NameFault(Rule.RESERVED_NAME, "the name `*` means all columns", "write a name")
    if not nested and name.lower().startswith(RESERVED):
        what = f"column {shown} has a name that Lance keeps for itself"
        return NameFault(Rule.RESERVED_NAME, what, f"use a name that does not start with {RESERVED}")
    return None


def path_fault(path: str) -> NameFault | None:
    """Returns the reason why a text cannot be a path such as `column` or `column.field`; None where it can."""
    first, *rest = path.split(".")
    faults = (name_fault(first), *(name_fault(name, nested=True) for name in rest))
    return next((fault for fault in faults if fault and fault.rule is Rule.BAD_TEXT), None)


def alike(name: str) -> str:
    """Returns a text that is equal for names that look the same, which are names that differ only in case or in their
    Unicode form."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())


def legal_names(names: Sequence[str]) -> dict[str, str]:
    """Returns a valid column name for each of the distinct `names`, in their order. A valid name stays the same.

    A dot becomes `_`. An empty name becomes `row_name` at the first place, where R and pandas write row names without a
    header, and otherwise a name by its place, such as `column_2`. Among names that look the same, all except the first
    get a number.
    """
    found = {name: name for name in names if name_fault(name) is None}
    taken: set[str] = set()
    for name in list(found):
        if alike(name) in taken:
            del found[name]
        taken.add(alike(name))
    for place, name in enumerate(names):
        if name not in found:
            base, number = _proposed(name, place), 1
            new = base
            while alike(new) in taken:
                number += 1
                new = f"{base}_{number}"
            found[name] = new
            taken.add(alike(new))
    return {name: found[name] for name in names}


def _proposed(name: str, place: int) -> str:
    shown = "".join(" " if has_control_characters(each) else each for each in name)
    proposed = " ".join(shown.translate(_REPLACED).split())[: MAX_NAME - 10].strip()
    if proposed.lower().startswith(RESERVED):
        proposed = proposed.lstrip("_")
    usable = name_fault(proposed) is None and proposed.strip("_ ")
    return proposed if usable else f"column_{place + 1}" if place else "row_name"


def quoted(path: str) -> str:
    """Returns the path of a column or field in backticks, for Lance's conditions and DataFusion's SQL.

    Raises InvalidInput for a text that is not a path, so no part of the result can end the quotes early.
    """
    if fault := path_fault(path):
        raise InvalidInput(fault.what, remedy=fault.remedy)
    return ".".join(f"`{name}`" for name in path.split("."))


def listed(names: Iterable[str]) -> str:
    """Returns the names as one text, which `split_names` reads: `id, "Amount, net"`."""
    return ", ".join(map(shown, names))


def shown(name: str) -> str:
    """Returns a name or path for a line of text. It is in double quotes unless it consists of words, so that its end is
    visible."""
    return name if _WORDS.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def split_names(text: str, where: str) -> tuple[str, ...]:
    """Returns the names in a text such as `id, "Amount, net"`. `where` is the option with the text, for errors.

    Raises InvalidInput for a missing name, and for quotes that do not close.
    """
    names: list[str] = []
    at = 0
    while at <= len(text):
        if not (found := _ITEM.match(text, at)) or (found[1], found[2]) == (None, ""):
            what = "has an empty name" if found else "has a quote without its other half"
            remedy = 'part names by commas, and write one with a comma or quote as "Amount, net" or "5"" disk"'
            raise InvalidInput(f"`{text}` {what}", where=where, remedy=remedy)
        names.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        at = found.end() + 1
    return tuple(names)


MAX_SOURCE = 512  #: characters


def is_source(name: str) -> bool:
    """Returns whether the name of a field in files can be a column's source. It has at most MAX_SOURCE characters. Line
    ends, tabs and invisible characters, which headers may have, are allowed; other control characters are not."""
    return len(name) <= MAX_SOURCE and not any(
        unicodedata.category(each) in ("Cc", "Cs") and each not in "\t\r\n" for each in name
    )
