"""JSON from an untrusted writer, checked so that later code can rely on its form.

In addition to JSON's rules, a document is nested at most `DEEPEST` deep, its numbers are finite, its texts can be
encoded again (no lone surrogates), and no object has a member twice, because readers differ in which one they take.
"""

from __future__ import annotations

import json
from typing import Any

DEEPEST = 100  #: objects and lists within each other


class NotADocument(ValueError):
    """The bytes are not a valid document; the message has the reason."""


def read_document(data: bytes | str) -> Any:
    """Returns the value of a JSON document. Raises NotADocument."""
    try:
        value = json.loads(data, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except NotADocument:
        raise
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise NotADocument("it is not UTF-8 text") from None
    except ValueError as error:
        raise NotADocument(f"it is not JSON: {error}") from None
    _check(value)
    return value


def format_of(document: Any) -> int | None:
    """Returns the number of a document's format, from 1; None where `format` is anything else, such as true."""
    number = document.get("format") if isinstance(document, dict) else None
    return number if type(number) is int and number > 0 else None


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotADocument(f"an object has the member {twice[:40]!r} twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise NotADocument(f"it has the number {name}")


def _too_deep() -> NotADocument:
    return NotADocument(f"it is nested more than {DEEPEST} deep")


def _check(value: Any) -> None:
    level, depth = [value], 0
    while level:
        if depth > DEEPEST:
            raise _too_deep()
        below: list[Any] = []
        for each in level:  # the parser makes only a few types, and most values are texts
            kind = type(each)
            if kind is str:
                if not each.isascii():
                    _check_text(each)
            elif kind is dict:
                below += each
                below += each.values()
            elif kind is list:
                below += each
            elif kind is float and each - each != 0:  # such as 1e999
                raise NotADocument("it has a number that is too large")
        level, depth = below, depth + 1


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotADocument(f"it has a text that is not Unicode: {text[:40]!r}") from None
