"""Assumptions of an estimate about what is not declared: how often and how long jobs run. Every estimate shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from deployer.errors import InvalidInput
from deployer.specs.yaml.suggestions import nearest


def _assumed(default: float, meaning: str) -> Any:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumed numbers. They may be fractions, and are 0 or more."""

    loads_per_day: float = _assumed(24, "loads and appends into all tables together")
    requests_per_load: float = _assumed(6, "requests on S3 for one, all priced as writes")
    write_units_per_load: float = _assumed(12, "DynamoDB's write units for one: two commits of two small items")
    runs_per_day: float = _assumed(1, "jobs on each cluster on AWS, besides scheduled table services")
    run_minutes: float = _assumed(30, "minutes that one takes")
    workers: float = _assumed(4, "workers of one on EMR Serverless, at most max_workers; a driver comes on top")
    log_mb_per_run: float = _assumed(20, "megabytes that one logs")

    def listed(self) -> list[tuple[str, float, str]]:
        """Returns name, value and meaning of each assumption."""
        return [(each.name, getattr(self, each.name), str(each.metadata["meaning"])) for each in fields(self)]


def assume(texts: Iterable[str], where: str) -> Assumptions:
    """Returns the defaults with the changes of `NAME=NUMBER` texts; for a repeated name, the last text counts.

    Raises InvalidInput for an unknown name or a wrong number; `where` names the origin of the texts.
    """
    names = [each.name for each in fields(Assumptions)]
    found: dict[str, float] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if name not in names:
            close = nearest(name, names)
            remedy = f"did you mean {close}?" if close else f"there are {', '.join(names)}"
            raise InvalidInput(f"no assumption is called {name!r}", where=where, remedy=remedy)
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not sign or not 0 <= number < float("inf"):
            raise InvalidInput(
                f"{text!r} does not say what to assume", where=where, remedy=f"write {name}=NUMBER, 0 or more"
            )
        found[name] = number
    return replace(Assumptions(), **found)
