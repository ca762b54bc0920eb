"""Documents as nobody writes them who means well: strategies that change a JSON document, or the bytes of a file."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, MutableMapping, MutableSequence
from typing import Any

from hypothesis import strategies as st

Container = MutableMapping[str, Any] | MutableSequence[Any]


def nested(levels: int) -> Any:
    value: Any = "x"
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


#: Values that a reader may not expect where it finds them.
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    2**63,
    float("nan"),
    float("inf"),
    "",
    ".",
    "..",
    "/",
    "../../outside",
    "../../../../outside/kept",
    "_state",
    "_other/x",
    "a\x00b",
    "\x1b[2J\u202e",
    "\ud800",
    "x" * 5000,
    "{",
    "urn:pulumi:dev::lakes::lake:index:Table::air.flights",
    "pulumi:providers:a/evil",
    "${PATH}",
    [],
    [None],
    ["../../outside"],
    {},
    {"a": 1},
    {"type": "levitate"},
    {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"},
    {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x:y"},
    nested(150),
    nested(400),
)


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """The document with one to three changes: a value is odd, goes, comes twice, has another name or place."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(changed))
        if not places:
            break
        container, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(("odd", "odd", "gone", "twice", "renamed", "moved", "longer"))):
            case "odd":
                container[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
            case "gone":
                del container[key]
            case "twice" if isinstance(container, MutableSequence):
                container.insert(key, copy.deepcopy(container[key]))
            case "renamed" if isinstance(container, MutableMapping):
                name = draw(st.sampled_from(("", "..", "../../outside", "a", "b" * 300, "\x1b[0m")))
                container[name] = container.pop(key)
            case "longer" if isinstance(container[key], str):
                container[key] = draw(st.sampled_from(("{}/../../../outside", "../{}", "{}\n", "{}{}"))).replace(
                    "{}", container[key]
                )
            case _:
                other, other_key = places[draw(st.integers(0, len(places) - 1))]
                container[key] = copy.deepcopy(other[other_key])
    return changed


@st.composite
def mutated_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes cut off, with others among them, or with many brackets."""
    place = draw(st.integers(0, len(data)))
    match draw(st.sampled_from(("cut", "insert", "replace", "brackets"))):
        case "cut":
            return data[:place]
        case "insert":
            return data[:place] + draw(st.binary(min_size=1, max_size=8)) + data[place:]
        case "replace":
            return data[:place] + draw(st.binary(min_size=1, max_size=1)) + data[place + 1 :]
        case _:
            return data[:place] + b"[" * 50_000


def written(document: Any) -> bytes:
    """The document as JSON; what JSON does not have is written as Python does."""
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container within a value with each of its keys, from the outside inwards."""
    level = [value]
    while level:
        below: list[Any] = []
        for each in level:
            keys = each if isinstance(each, MutableMapping) else range(len(each)) if isinstance(each, list) else ()
            for key in list(keys):
                yield each, key
                below.append(each[key])
        level = below
