"""The location of a dataset below an instance's root, which is how state, plans and commands name a dataset.

The dataset of a new table is at `DATABASE/NAME-ID.lance`, where ID is the first eight digits of the table's id. Dataset
number N of the table is at `DATABASE/NAME-ID-gN.lance`. A dataset that was imported in place keeps its path below the
root.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import Annotated, Self

from deployer.platform.text.visible import shortened
from deployer.state.model.names import NAME, Form, has_control_characters

LONGEST = 900  #: bytes; a key in a bucket has at most 1,024 bytes, including the root's prefix

#: The folders of the root that deployer itself or Lance's catalog uses. A database must not have such a name.
RESERVED = frozenset(
    {
        "_state",
        "_state-removed",
        "_work",
        "_udfs",
        "_errors",
        "_ingest",
        "_jobs",
        "_runs",
        "_uploads",
        "_job-logs",
        "__manifest",
    }
)
_OF_LANCE = frozenset({"_versions", "_transactions", "_deletions", "_indices", "_refs", "_rewrite", "_deployer"})

_MADE = re.compile(rf"(?P<database>{NAME})/{NAME}-[0-9a-f]{{8}}(-g[1-9][0-9]{{0,8}})?\.lance")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")
_END = re.compile(r"(?:-g(?P<number>[0-9]{1,9}))?\.lance$")


class Location(str):
    """The path of a dataset below the root: relative, separated by `/`, without `.` or `..`. Raises ValueError for any
    other text."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if isinstance(text, cls):
            return text
        if (wrong := cls.fault(text)) is not None:
            raise ValueError(f"{shortened(text)} {wrong}")
        return super().__new__(cls, text)

    @staticmethod
    def fault(text: str) -> str | None:
        """Returns the reason why a text is not a valid location, as the rest of a sentence; None if it is valid."""
        if (made := _MADE.fullmatch(text)) and made["database"].lower() not in RESERVED:
            return None
        if not text:
            return "is empty, which would be the root itself"
        if len(text.encode(errors="surrogatepass")) > LONGEST:
            return f"is longer than {LONGEST} bytes"
        if has_control_characters(text):
            return "holds control or format characters"
        if text.startswith("/"):
            return "is an absolute path"
        if _SCHEME.match(text):
            return "begins with a scheme or a drive"
        if odd := next((each for each in "\\#?" if each in text), "") or _ESCAPED.search(text):
            return f"holds {odd if isinstance(odd, str) else odd[0]}, which may mean another path"
        return _fault_of_parts(text.split("/"))

    @property
    def number(self) -> int | None:
        """The number N of a dataset that a rewrite made, from `-gN.lance`; None for any other location."""
        found = _END.search(self)
        return int(found["number"]) if found and found["number"] else None

    def base(self, table_id: str) -> str:
        """Returns the part of the location that is the same for all datasets of the table."""
        return _END.sub("", self).removesuffix(f"-{table_id[:8]}")

    def carries(self, table_id: str) -> bool:
        """Returns whether the table's id is part of the location, which means that deployer made it for this table."""
        return _END.sub("", self).endswith(f"-{table_id[:8]}")

    @property
    def comparable(self) -> str:
        """The location in a form that is equal for names that may be the same file, such as names that differ only in
        case."""
        return f"{unicodedata.normalize('NFC', self).casefold()}/"


#: A location, or an empty string for no location.
LocationOrNone = Annotated[str, Form(lambda text: Location.fault(text) if text else None)]


def is_made(path: str) -> bool:
    """Returns whether the path has the form of a dataset that deployer made, unlike one that was imported in place."""
    made = _MADE.fullmatch(path)
    return made is not None and made["database"].lower() not in RESERVED


def new_location(database: str, name: str, table_id: str) -> Location:
    """Returns the location for a new table's dataset. It is unique, because the table's id is part of it."""
    return Location(f"{database}/{name}-{table_id[:8]}.lance")


def rewrite_location(location: Location, table_id: str, number: int) -> Location:
    """Returns the location for dataset `number` of a table whose current dataset is at `location`.

    It is in the same folder, and has the table's id.
    """
    return Location(f"{location.base(table_id)}-{table_id[:8]}-g{number}.lance")


def is_within(inner: str, outer: str) -> bool:
    """Returns whether the location `inner` is equal to `outer` or lies inside it."""
    return f"{inner}/".startswith(f"{outer}/")


def first_clash(locations: Iterable[str]) -> tuple[str, str] | None:
    """Returns two of the locations (outer, inner) that are equal or of which one lies inside the other; None if all
    are separate."""
    ordered = sorted(f"{each}/" for each in locations)
    for outer, inner in pairwise(ordered):
        if inner.startswith(outer):
            return outer[:-1], inner[:-1]
    return None


def _fault_of_parts(parts: list[str]) -> str | None:
    for part in parts:
        if not part:
            return "has an empty part"
        if part in (".", ".."):
            return f"has the part `{part}`, which leads elsewhere"
        if part.strip() != part:
            return "has a part that begins or ends with a blank"
        if part.startswith("."):
            return f"has the hidden part `{part}`"
        if part.lower() in _OF_LANCE:
            return f"has the part `{part}`, which is inside of a dataset"
    if any(part.lower().endswith(".lance") for part in parts[:-1]):
        return "lies inside of another dataset"
    if parts[0].startswith("_"):
        return f"begins with `{parts[0]}`: such folders of the root are not for datasets"
    return None
