"""The names that columns and fields may have, how texts name them, and how SQL does.

Lance stores almost any text (tests/specs/test_column_names.py tries it). It refuses a dot at the top level, cannot
change a field with a dot in its name, and does not find a column with a backtick in its name or without a name: those
names are refused. So a path such as `address.Post Code` needs no quotes, and a name in backticks no escapes.
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
#: For editors, which show one message for all faults; `name_fault` knows more characters than it does.
_CHARACTERS = "[^.`\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]+"
PATTERN = f"^{_CHARACTERS}$"
PATH_PATTERN = rf"^{_CHARACTERS}(\.{_CHARACTERS})*$"  #: of a column, or of a field by its path: `column.field`
HINT = "write a name without dots, backticks and control characters"
_SHOWN = 40
_PLAIN = re.compile(r"[A-Za-z0-9_]{1,128}")
_WORDS = re.compile(r"\w+(\.\w+)*")
_REPLACED = str.maketrans({".": "_", "`": "'"})
_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^",][^,]*?|)\s*)(?=,|\Z)')


@dataclass(frozen=True, slots=True)
class NameFault:
    """The reason why a text cannot be the name of a column. `what` names it: "the name `a.b` has a dot, which …"."""

    rule: Rule
    what: str
    remedy: str


@lru_cache(maxsize=4096)  # each name is asked for more than once, and the tables of a lake share many
def name_fault(name: str, *, nested: bool = False) -> NameFault | None:
    """Returns why a column, or a field of a struct where `nested`, cannot have that name; None when it can."""
    if _PLAIN.fullmatch(name) and (nested or not name.lower().startswith(RESERVED)):  # as most names are
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
    """Returns why a text cannot be the path of a column or of a field: `column`, `column.field`; None when it can."""
    first, *rest = path.split(".")
    faults = (name_fault(first), *(name_fault(name, nested=True) for name in rest))
    return next((fault for fault in faults if fault and fault.rule is Rule.BAD_TEXT), None)


def alike(name: str) -> str:
    """Returns a text that is equal for names that look the same: they differ only in case or in Unicode's form."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).lower())


def legal_names(names: Sequence[str]) -> dict[str, str]:
    """Returns a name that a column can have for each of the distinct names, in order: the name itself where it can be
    one.

    A dot becomes `_`, an empty name `row_name` if it is the first one (R and pandas write row names so), else
    `column_2` by its place. Among names that look the same, all but the first get a number.
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
    """Returns a column, or a field by its path, in backticks, as Lance's conditions and DataFusion's SQL take it.

    Raises InvalidInput for what is not a path: nothing in it can end the quotes.
    """
    if fault := path_fault(path):
        raise InvalidInput(fault.what, remedy=fault.remedy)
    return ".".join(f"`{name}`" for name in path.split("."))


def listed(names: Iterable[str]) -> str:
    """Returns names as one text that `split_names` reads: `id, "Amount, net"`."""
    return ", ".join(map(shown, names))


def shown(name: str) -> str:
    """Returns a name or path in a line of text: in double quotes where it is not of words, so that it is seen where it
    ends."""
    return name if _WORDS.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def split_names(text: str, where: str) -> tuple[str, ...]:
    """Returns the names of a list such as `id, "Amount, net"`; `where` is the option that has it.

    Raises InvalidInput for a name that is missing, and for quotes that do not close.
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
    """Returns whether a name of a field in files can be a source: headers may have line ends, tabs and characters that
    are not shown, but no other control characters."""
    return len(name) <= MAX_SOURCE and not any(
        unicodedata.category(each) in ("Cc", "Cs") and each not in "\t\r\n" for each in name
    )
