"""Expressions of GitHub's workflows: the part of the language that deployer's own workflows use, and no more.

https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

#: What scripts may not hold: the text would be code.
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)

_TOKENS = re.compile(r"\s*(?:('(?:[^']|'')*')|(\|\||&&|==|!=|!|\(|\))|([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*))")
_STATUS = ("success", "failure", "cancelled", "always")


def evaluate(text: str, contexts: Mapping[str, Any]) -> Any:
    """The value of an expression without `${{ }}`. What is not in the contexts is an empty text."""
    tokens = list(_split(text))
    value, rest = _either(tokens, contexts)
    assert not rest, f"{text!r} goes on with {rest}"
    return value


def filled(value: Any, contexts: Mapping[str, Any]) -> str:
    """A text of a workflow with the values of its expressions in it."""
    return EXPRESSION.sub(lambda match: _as_text(evaluate(match[1], contexts)), _as_text(value))


def holds(condition: Any, contexts: Mapping[str, Any]) -> bool:
    """Whether a job or a step with this `if` runs. Unless it asks for the status itself, only after success."""
    text = str(condition).strip()
    if match := EXPRESSION.fullmatch(text):
        text = match[1]
    asks = any(f"{name}()" in text for name in _STATUS)
    return bool(evaluate(text, contexts)) and (asks or contexts["status"] == "success")


def _split(text: str) -> Iterator[str]:
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKENS.match(text, at)
        assert match, f"{text!r} is beyond what the tests evaluate, at {text[at:]!r}"
        yield match[0].strip()
        at = match.end()


def _either(tokens: list[str], contexts: Mapping[str, Any]) -> tuple[Any, list[str]]:
    value, rest = _both(tokens, contexts)
    while rest[:1] == ["||"]:
        other, rest = _both(rest[1:], contexts)
        value = value or other
    return value, rest


def _both(tokens: list[str], contexts: Mapping[str, Any]) -> tuple[Any, list[str]]:
    value, rest = _compared(tokens, contexts)
    while rest[:1] == ["&&"]:
        other, rest = _compared(rest[1:], contexts)
        value = value and other
    return value, rest


def _compared(tokens: list[str], contexts: Mapping[str, Any]) -> tuple[Any, list[str]]:
    value, rest = _single(tokens, contexts)
    while rest[:1] in (["=="], ["!="]):
        other, after = _single(rest[1:], contexts)
        same = _as_text(value).lower() == _as_text(other).lower()
        value, rest = same if rest[0] == "==" else not same, after
    return value, rest


def _single(tokens: list[str], contexts: Mapping[str, Any]) -> tuple[Any, list[str]]:
    token, rest = tokens[0], tokens[1:]
    if token == "!":
        value, rest = _single(rest, contexts)
        return not value, rest
    if token == "(":
        value, rest = _either(rest, contexts)
        assert rest[:1] == [")"]
        return value, rest[1:]
    if token.startswith("'"):
        return token[1:-1].replace("''", "'"), rest
    if rest[:2] == ["(", ")"]:
        return _status(token, contexts), rest[2:]
    return _looked_up(token, contexts), rest


def _status(function: str, contexts: Mapping[str, Any]) -> bool:
    assert function in _STATUS, f"{function}() is beyond what the tests evaluate"
    return function == "always" or contexts["status"] == function


def _looked_up(name: str, contexts: Mapping[str, Any]) -> Any:
    context, *keys = name.split(".")
    assert context in contexts, f"there is no context {context!r}"
    value: Any = contexts[context]
    for key in keys:
        value = value.get(key, "") if isinstance(value, Mapping) else ""
    return "" if value is None else value


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
