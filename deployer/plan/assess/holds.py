"""Legal holds: while one is declared, neither its table nor values of its rows are deleted."""

from __future__ import annotations

from collections.abc import Sequence

from deployer.plan import changes as c
from deployer.specs.model import Hold

SHOWN = 5  #: at most this many names of holds are in a message


def describe_hold_names(holds: Sequence[Hold]) -> str:
    """Returns `legal hold audit-7`, or `legal holds audit-7 and case-12`."""
    names = [each.name for each in holds[:SHOWN]] + ([f"{len(holds) - SHOWN} more"] if len(holds) > SHOWN else [])
    if len(names) == 1:
        return f"legal hold {names[0]}"
    return f"legal holds {', '.join(names[:-1])} and {names[-1]}"


def hold_refusal(change: c.Change, holds: Sequence[Hold], *, has_rows: bool = True) -> str | None:
    """Returns why `change` is refused on a table that has these holds now; None where they allow it.

    A hold is released by a separate `up`, so that a plan that releases it deletes nothing.
    """
    if not holds or not has_rows:
        return None
    match change:
        case c.DeleteTable():
            deletes = "the table"
        case c.DropColumn() | c.ConvertColumn():
            deletes = "values of its rows"
        case _:
            return None
    verb = "keeps" if len(holds) == 1 else "keep"
    return f"{describe_hold_names(holds)} {verb} {deletes}; release it first: remove it from `holds:` and run `up`"
