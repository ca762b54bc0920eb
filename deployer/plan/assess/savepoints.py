"""Savepoints that are deleted with a table: a deletion shows their names, and needs a separate option.

A savepoint keeps rows that the table may no longer have, so this rule holds for empty and for unprotected tables too.
Savepoints that services made count like those of people.
"""

from __future__ import annotations

from collections.abc import Sequence

OPTION = "--delete-savepoints"
SHOWN = 5  #: at most this many names are in a message, the newest first


def describe_savepoints(names: Sequence[str]) -> str:
    """Returns `savepoint before-2026`, or `12 savepoints (…, … and 7 older)`; `names` are in order, the newest
    first."""
    if len(names) == 1:
        return f"savepoint {names[0]}"
    older = f" and {len(names) - SHOWN} older" if len(names) > SHOWN else ""
    return f"{len(names)} savepoints ({', '.join(names[:SHOWN])}{older})"


def savepoint_loss(names: Sequence[str]) -> str:
    """Returns the text about the savepoints that a deletion loses; empty where the table has no savepoint."""
    if not names:
        return ""
    return f"{describe_savepoints(names)} {'goes' if len(names) == 1 else 'go'} with it"


def savepoint_refusal(names: Sequence[str], *, allowed: bool) -> str:
    """Returns why a table with these savepoints is not deleted; empty where it may be deleted."""
    return "" if allowed or not names else f"{savepoint_loss(names)}; to allow it: {OPTION}"
