"""The options of services in the form of command options."""

from __future__ import annotations

from collections.abc import Sequence

from deployer.errors import InvalidInput


def pairs(given: Sequence[str] | None) -> dict[str, str] | None:
    """Returns the values of NAME=VALUE texts by name; None without texts. Raises InvalidInput for another form, or for
    a name that is given twice."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"--option {text!r} is not NAME=VALUE", remedy="write NAME=VALUE")
        if name.strip() in found:
            raise InvalidInput(f"--option {name.strip()} is given twice", remedy="give it once")
        found[name.strip()] = value.strip()
    return found or None
