"""Messages of DataFusion and Lance about SQL, without the inner forms of expressions that some of them show."""

from __future__ import annotations

import re

_AGGREGATE = re.compile(r"AggregateUDF \{ inner: (\w+)")
_WINDOW = re.compile(r"Window(?:UDF|Function)\b")
_LITERAL = re.compile(
    r"Received literal (?:\w+\((\"?)(?P<value>.*)\1\)|(?P<other>\S+)) and could not convert to literal of type "
    r"'(?P<type>.+?)'"
)
_PLANNED = re.compile(r"Error optimizing sql filter: .*?\((?:Error during planning|Parser error|Cast error): (.*)\)$")
_FAILED = re.compile(r"^Error during planning: ")


def in_plain_words(message: str) -> str:
    """Returns a readable form of a message; a message that is readable already is returned unchanged."""
    if found := _AGGREGATE.search(message):
        return f"{found[1].lower()} is a function of many rows, but the value may depend on one row only"
    if _WINDOW.search(message):
        return "a window function reads many rows, but the value may depend on one row only"
    if found := _LITERAL.search(message):
        value = found["value"] if found["value"] is not None else found["other"]
        return f"the value {value!r} cannot be converted to {found['type']}"
    if found := _PLANNED.search(message):
        message = found[1]
    return _FAILED.sub("", message)
