"""The parts that the tables of conflicts are made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of transaction: its name in the table, and what it requires, in words."""

    name: str
    requires: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The second of two is refused with these words; with `only`, no other than a second of the same."""

    words: str
    only: str = ""
