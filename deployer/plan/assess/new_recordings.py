"""Unregistered recordings below the sources of datasets, which a plan shows beside its changes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from deployer.platform.text.formatting import count, size

_NAMED = 3  #: at most this many files are named


@dataclass(frozen=True, slots=True)
class NewRecordings:
    """The unregistered recordings below the sources of the dataset at `address`: the number of recordings and their
    bytes.

    `changed` are registered recordings whose files changed later, so that their chunks can no longer be read. `unknown`
    has the reasons why sources could not be read.
    """

    address: str
    register: Literal["auto", "manual"]
    recordings: int = 0
    bytes: int = 0
    changed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.address.partition("/")[2]

    @property
    def is_empty(self) -> bool:
        """Returns whether there is nothing to report."""
        return not (self.recordings or self.changed or self.unknown)


def describe_recordings(found: NewRecordings) -> str:
    """Returns `drives: 12 new recordings, 3.4 GB (registered by up)`."""
    parts = []
    if found.recordings:
        by_hand = f"`deployer catalog register {found.name}` registers them"
        who = "registered by up" if found.register == "auto" else by_hand
        parts.append(f"{count(found.recordings, 'new recording')}, {size(found.bytes)} ({who})")
    if found.changed:
        more = f" and {len(found.changed) - _NAMED:,} more" if len(found.changed) > _NAMED else ""
        files = f"{count(len(found.changed), 'file')} changed since registration"
        parts.append(f"{files}: {', '.join(found.changed[:_NAMED])}{more}")
    parts += found.unknown
    return f"{found.name}: {'; '.join(parts)}"


def recordings_as_json(found: NewRecordings) -> dict[str, Any]:
    """Returns the new recordings of a dataset, as a part of the plan's document."""
    return {**asdict(found), "changed": list(found.changed), "unknown": list(found.unknown)}
