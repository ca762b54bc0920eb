"""The change of a lake's expected monthly cost by a plan: data that every rendering shows. `deployer.cost` makes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MonthlyCost:
    """The known monthly cost of the lake before and after.

    `unknown` names changed things without a known cost; `region` is None where none is set. `dated` is the day of the
    prices.
    """

    before: float
    after: float
    currency: str
    region: str | None
    dated: str
    unknown: tuple[str, ...] = ()

    @property
    def change(self) -> float:
        return self.after - self.before


def describe_cost(cost: MonthlyCost) -> str:
    """Returns `about +12.40 USD a month (3.10 → 15.50), by prices of 2025-06-30 in eu-central-1; not known: …`."""
    unknown = f"; unknown: {', '.join(cost.unknown)}" if cost.unknown else ""
    if cost.region is None:
        return "unknown: no region is set"
    by = f"by prices of {cost.dated} in {cost.region}"
    if round(cost.change, 2) == 0:
        text = "no known change" if cost.unknown else "no change"
        return f"{text} ({_money(cost.after)} {cost.currency} a month), {by}{unknown}"
    sign = "+" if cost.change > 0 else "-"
    text = f"about {sign}{_money(abs(cost.change))} {cost.currency} a month"
    return f"{text} ({_money(cost.before)} → {_money(cost.after)}), {by}{unknown}"


def _money(value: float) -> str:
    return f"{value:,.2f}"
