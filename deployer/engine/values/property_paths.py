"""Property paths, as in `ignore_changes`: `tags.owner`, `columns[0].type`, `labels["a.b"]`, `*` for any one part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

#: the kind of a difference that a provider reports for a path
DiffKind = Literal["add", "add-replace", "delete", "delete-replace", "update", "update-replace"]
Part = str | int
_PART = re.compile(r"""\.?(?:([^.\[\]"]+)|\[(\d+)\]|\[\*\]|\["((?:[^"\\]|\\.)*)"\])""")
_MISSING = object()


def parse_path(text: str) -> tuple[Part, ...]:
    """Returns the parts of a path. A text that is not a path is a single key."""
    parts: list[Part] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or match.end() == position:
            return (text,)
        name, index, quoted = match.groups()
        if name is not None:
            parts.append(name)
        elif index is not None:
            parts.append(int(index))
        elif quoted is not None:
            parts.append(quoted.replace('\\"', '"'))
        else:
            parts.append("*")
        position = match.end()
    return tuple(parts)


def contains(outer: tuple[Part, ...], inner: tuple[Part, ...]) -> bool:
    """Returns whether `inner` is `outer` or lies below it."""
    return len(outer) <= len(inner) and all(
        part in ("*", other) for part, other in zip(outer, inner[: len(outer)], strict=True)
    )


def with_old_values(old: Mapping[str, Any], new: Mapping[str, Any], paths: tuple[str, ...]) -> dict[str, Any]:
    """Returns `new` with the values that `old` has at the paths, for `ignore_changes`. Neither argument changes."""
    result: Any = dict(new)
    for path in paths:
        result = _reset(old, result, parse_path(path))
    return dict(result)


def _reset(old: Any, new: Any, path: tuple[Part, ...]) -> Any:
    if not path:
        return old
    part, rest = path[0], path[1:]
    if part == "*":
        keys = list(old) if isinstance(old, Mapping) else range(len(old)) if isinstance(old, list) else []
        for key in keys:
            new = _reset(old, new, (key, *rest))
        return new
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, now = old.get(str(part), _MISSING), new.get(str(part), _MISSING)
        if rest and (before is _MISSING or now is _MISSING):
            return new  # a path into a value that was added or removed has no effect
        after = before if not rest else _reset(before, now, rest)
        copy = {key: value for key, value in new.items() if key != part or after is not _MISSING}
        if after is not _MISSING:
            copy[str(part)] = after
        return copy
    if isinstance(old, list) and isinstance(new, list) and isinstance(part, int) and part < min(len(old), len(new)):
        return [*new[:part], _reset(old[part], new[part], rest), *new[part + 1 :]]
    return new
