"""The JSON forms of retention, legal holds and the retention of changes, for Pulumi's inputs and the state store."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from deployer.errors import InvalidInput
from deployer.platform.text.units import SPEC_DURATION, canonical_duration
from deployer.specs.model import Hold, Retention
from deployer.specs.schema.parts import list_of, ref
from deployer.specs.validation.plain_values import refuse_unfit, text

JSON = Any


def retention_to_json(retention: Retention) -> dict[str, JSON]:
    """Returns the retention as JSON."""
    return {"column": retention.column, "keep": retention.keep}


def retention_from_json(form: JSON) -> Retention | None:
    """Returns the retention from the form that `retention_to_json` returns; None for None.

    Raises InvalidInput for a form that a spec cannot declare.
    """
    if form is None:
        return None
    refuse_unfit("retention", partial(ref, "retention"), form)
    keep = canonical_duration(text(form, "keep"))
    if keep == "0d":
        raise InvalidInput("`retention` keeps rows for zero time")
    return Retention(text(form, "column"), keep)


def retained_changes_from_json(form: JSON) -> str | None:
    """Returns how long a table's changes can be read, in canonical form; None for None. Raises InvalidInput for a form
    that a spec cannot declare."""
    if form is None:
        return None
    if not isinstance(form, str) or not re.fullmatch(SPEC_DURATION, form) or canonical_duration(form) == "0d":
        raise InvalidInput(f"`retain_changes` is {form!r}, which is not a time", remedy="write a time such as 7d")
    return canonical_duration(form)


def holds_to_json(holds: Iterable[Hold]) -> list[JSON]:
    """Returns the holds as JSON, in their order. Omits empty texts, except the name."""
    return [
        {name: value for name in Hold.__slots__ if (value := getattr(hold, name)) or name == "name"} for hold in holds
    ]


def holds_from_json(form: JSON) -> tuple[Hold, ...]:
    """Returns the holds from the form that `holds_to_json` returns, sorted by name; empty for None.

    Raises InvalidInput for a form that a spec cannot declare.
    """
    if form is None:
        return ()
    refuse_unfit("holds", partial(list_of, "Holds.", ref("hold")), form)
    found = (Hold(text(each, "name"), text(each, "where", ""), text(each, "reason", "")) for each in form)
    return tuple(sorted(found, key=lambda each: each.name))
