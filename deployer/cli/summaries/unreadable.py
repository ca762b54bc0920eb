"""Tables that cannot be read, as commands print them: each with the reason, beside what they say of the others."""

from __future__ import annotations

from collections.abc import Iterable

from deployer.live.model import Unreadable


def note_unreadable(tables: Iterable[Unreadable]) -> None:
    """A line each on stderr."""
    from deployer.cli.console.output import stderr

    for each in tables:
        stderr().print(f"{each.address}: unreadable: {each.why}", style="red", soft_wrap=True)
