"""Notes for tables that cannot be read, each with the reason, beside a command's result for the other tables."""

from __future__ import annotations

from collections.abc import Iterable

from deployer.live.model import Unreadable


def note_unreadable(tables: Iterable[Unreadable]) -> None:
    """Prints a line for each table on stderr."""
    from deployer.cli.console.output import stderr

    for each in tables:
        stderr().print(f"{each.address}: unreadable: {each.why}", style="red", soft_wrap=True)
