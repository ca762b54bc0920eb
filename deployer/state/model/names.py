"""Types of strings in the state that become paths, keys, SQL or addresses. Each type has a form that is checked.

Names from a log, a snapshot or an export are untrusted. For a field of one of these types, the codec refuses a string
of another form, both when it is read and when it is committed.
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
    """The form of a string, for the type of a field.

    `fault` returns the reason why a string does not have the form, as the rest of a sentence; None if it has the form.
    """

    fault: Callable[[str], str | None]


def fault_of_name(text: str) -> str | None:
    """Returns the reason why a text is not a valid name of a database or a table, as the rest of a sentence; None if it
    is valid."""
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


Name = Annotated[str, Form(fault_of_name)]  #: the name of a database or a table, with the same rule as in specs
TableId = Annotated[str, Form(_fault_of_table_id)]  #: the id of a table, which also names a log and a folder
SavepointName = Annotated[str, Form(_fault_of_savepoint)]  #: the name of a savepoint; its tag in Lance names a file


def is_log_name(text: str) -> bool:
    """Returns whether a text is a valid name of a log."""
    return _TABLE_ID.fullmatch(text) is not None


def is_savepoint_name(text: str) -> bool:
    """Returns whether a text is a valid name of a savepoint."""
    return _SAVEPOINT.fullmatch(text) is not None and ".." not in text and not text.endswith((".", ".lock"))


def has_control_characters(text: str) -> bool:
    """Returns whether a text has invisible characters: control and format characters, line and paragraph separators,
    and halves of surrogate pairs."""
    if text.isascii():
        return not text.isprintable()
    return any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") for each in text)
