"""Whether Lance keeps a JSON document as it is.

Lance stores documents in a binary form: it rounds numbers as doubles do, makes null of one that is too large, and fails
on an object that has two fields of one name.
"""

from __future__ import annotations

import json
from typing import Any


def check_document(text: str) -> None:
    """Raises ValueError for text that is not JSON, or that Lance would not store as the same document."""
    try:
        json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("values are nested too deep") from None


def _integer(digits: str) -> None:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise ValueError(f"{digits} has more than 64 bits")


def _float(digits: str) -> None:
    if abs(float(digits)) == float("inf"):
        raise ValueError(f"{digits} is too large for a double")


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _object(fields: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in fields]
    if len(names) != len(set(names)):
        raise ValueError("an object has two fields of one name")
