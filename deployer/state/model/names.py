"""Texts that the state holds and that become paths, keys, SQL or addresses: each has a form that is checked.

Names from a log, a snapshot or an export are untrusted. The codec refuses another text for a field whose
type is one of these, when it is read and when it is committed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

NAME = "[A-Za-z_][A-Za-z0-9_]*"  #: the pattern of the names of databases, tables and columns in specs
MAX_NAME = 128  #: characters
INSTANCE = "instance"  #: the name of the instance's own log, which no table may have as its id

_NAME = re.compile(NAME)
_TABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SAVEPOINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a text, for a field's type. `fault` says what is wrong with a text, as the rest of a sentence."""

    fault: Callable[[str], str | None]


def fault_of_name(text: str) -> str | None:
    """Returns what is wrong with a name of a database or a table, as the rest of a sentence; None when nothing is."""
    if _NAME.fullmatch(text) and len(text) <= MAX_NAME:
        return None
    return f"is not a name: names are letters, digits and _, do not start with a digit, and have at most {MAX_NAME}"


def _fault_of_table_id(text: str) -> str | None:
    if text == INSTANCE:
        return "is the instance's own log, and not a table id"
    return None if is_log_name(text) else "is not a table id: table ids are letters, digits, - and _, at most 64"


def _fault_of_savepoint(text: str) -> str | None:
    if is_savepoint_name(text):
        return None
    return "is not a savepoint name: those are letters, digits, `.`, `_` and -, and start with a letter or digit"


Name = Annotated[str, Form(fault_of_name)]  #: of a database or a table, by the rule that specs have
TableId = Annotated[str, Form(_fault_of_table_id)]  #: names a log, and a folder of snapshots
SavepointName = Annotated[str, Form(_fault_of_savepoint)]  #: its tag in Lance ends so, and that names a file


def is_log_name(text: str) -> bool:
    """Returns whether a log may be called that."""
    return _TABLE_ID.fullmatch(text) is not None


def is_savepoint_name(text: str) -> bool:
    """Returns whether a savepoint may be called that."""
    return _SAVEPOINT.fullmatch(text) is not None and ".." not in text and not text.endswith((".", ".lock"))


def has_control_characters(text: str) -> bool:
    """Returns whether a text holds characters that are not shown: control and format characters, and halves of
    pairs."""
    if text.isascii():
        return not text.isprintable()
    return any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") for each in text)
