"""Writes a log with every kind of update and requirement of a release, for the upgrade test.

It runs under the release's own code, and prints an entry's JSON a line, as the log stores it:

    git worktree add /tmp/release df93aa6
    PYTHONPATH=/tmp/release .venv/bin/python tests/upgrade/write_entries.py > tests/upgrade/entries-df93aa6.jsonl

It imports modules by their names in this commit. For a release that has other names, take the script as it was then:
`git show 0fa0aad:tests/upgrade/write_entries.py`.

Each kind comes three times: with as little in it as its fields allow, with everything, and with extreme values. The
entries need not follow from each other: they are read and written again, and not folded.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from deployer.platform.storage.envelope import unseal
from deployer.state.log.entries import LogEntry, to_record
from deployer.state.log.requirements import Requirement
from deployer.state.log.updates import Update

LITTLE, MUCH, EXTREME = range(3)
TABLE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
PLACE = "nyc/flights-a1b2c3d4.lance"

#: Texts that the codec reads back only in one form, by the name of their field.
TEXTS: Mapping[str, tuple[str, str, str]] = {
    "table_id": (TABLE, TABLE, "0" * 32),
    "database": ("nyc", "nyc", "_N"),
    "name": ("flights", "flights", "f9"),
    "savepoint": ("loaded", "before-a-mistake", "version-1.2"),
    "location": (PLACE, PLACE, "nyc/flights-a1b2c3d4-g2.lance"),
    "retired_location": (PLACE, PLACE, "nyc/flights-a1b2c3d4-g12.lance"),
    "tables": (TABLE, TABLE, "0" * 32),
    "fingerprint": ("0" * 32, "9f86d081884c7d659a2feaa0c55ad015", "f" * 32),
}
SCALARS: Mapping[Any, tuple[Any, Any, Any]] = {
    str: ("", "a text", 'ünïcode "quoted" \\ \n 漢'),
    bytes: (b"", b"abc", bytes(range(256))),
    int: (0, 1_700_000_000_000, 2**63 - 1),
    bool: (False, True, True),
}
MAPS: tuple[Mapping[str, Any], ...] = (
    {},
    {"text": "a", "number": 1, "flag": True, "nothing": None, "list": [1, "b"], "map": {"a": 0.5}},
    {"": -(2**63), "ü": [[], {}, [1e300, -0.0, 1e-9]]},
)


def lines() -> Iterator[bytes]:
    members = [(kind, ()) for kind in get_args(Update)] + [(None, kind) for kind in get_args(Requirement)]
    for update, requirement in members:
        for version, amount in enumerate((LITTLE, MUCH, EXTREME), 1):
            updates = (filled(update, amount),) if update else ()
            requirements = (filled(requirement, amount),) if requirement else ()
            entry = LogEntry(TABLE, version, f"txn-{version}", 1_700_000_000_000, "ann", updates, requirements)
            yield bytes(unseal(to_record(entry).body, "here"))


def filled(kind: Any, amount: int) -> Any:
    """A value of a dataclass of the state's model, by the types and names of its fields."""
    hints = get_type_hints(kind)
    return kind(**{field.name: _value(field.name, hints[field.name], amount) for field in dataclasses.fields(kind)})


def _value(name: str, hint: Any, amount: int) -> Any:
    hint = getattr(hint, "__origin__", hint) if hasattr(hint, "__metadata__") else hint
    if (name in TEXTS and hint not in SCALARS) or (hint is str and name in TEXTS):
        return TEXTS[name][amount]
    if hint in SCALARS:
        return SCALARS[hint][amount]
    if dataclasses.is_dataclass(hint):
        return filled(hint, amount)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return args[(0, len(args) // 2, -1)[amount]]
    if type(None) in args:
        (inner,) = (each for each in args if each is not type(None))
        return None if amount == LITTLE else _value(name, inner, amount)
    if origin is tuple:
        amounts: tuple[tuple[int, ...], ...] = ((), (MUCH,), (EXTREME, LITTLE, MUCH))
        return tuple(_value(name, args[0], each) for each in amounts[amount])
    if origin is not None and issubclass(origin, Mapping):
        return MAPS[amount]
    raise TypeError(f"no value for {name}: {hint}")


if __name__ == "__main__":
    sys.stdout.buffer.write(b"".join(line + b"\n" for line in lines()))
