"""An estimate as text, Markdown and JSON."""

from __future__ import annotations

from typing import Any

from deployer.cost.estimate import CostLine, Estimate
from deployer.plan.render.escaping import markdown_code, markdown_text
from deployer.platform.text.formatting import count

FORMAT_VERSION = 1
UNKNOWN = "unknown"
HEADS = ("resource", "what", "a month's quantity", "price", "a month")
NOT_COUNTED = (
    "reads and data transfer, old versions and replaced datasets while they are kept, the code of jobs in the bucket, "
    "EBS volumes, NAT gateways and VPC endpoints, requests of KMS, free tiers, discounts, tax"
)


def headline(instance: str, estimate: Estimate) -> str:
    region = estimate.region or "no region is set, so no price is known: set AWS_REGION"
    prices = estimate.prices
    return f"Cost of {instance} a month in {prices.currency} ({region}; prices of {prices.dated}, {prices.source})"


def row(line: CostLine) -> tuple[str, str, str, str, str]:
    """Returns the cells of a line, under `HEADS`."""
    quantity = UNKNOWN if line.quantity is None else f"{_number(line.quantity)} {_many(line.unit)}"
    monthly = UNKNOWN if line.monthly is None else f"{line.monthly:,.2f}"
    return line.resource, line.what, quantity, _price(line), monthly


def _number(quantity: float) -> str:
    return f"{quantity:,.0f}" if quantity >= 1000 else f"{quantity:.4g}"


def _many(unit: str) -> str:
    return f"{unit}s" if unit.endswith(("hour", "month")) else unit


def _price(line: CostLine) -> str:
    """Returns the price of a unit, averaged over all tiers."""
    if line.unit_price is None:
        return UNKNOWN
    return f"{line.unit_price:.6g} per {line.unit}"


def total(estimate: Estimate) -> str:
    known = f"{estimate.known:,.2f} {estimate.prices.currency}"
    if not estimate.unknown:
        return known
    return f"at least {known}; {count(len(estimate.unknown), 'line is', 'lines are')} unknown"


def assumed(estimate: Estimate) -> list[str]:
    """Returns a text such as `runs_per_day=1: jobs on …` for each assumption."""
    return [f"{name}={value:g}: {meaning}" for name, value, meaning in estimate.assumptions.listed()]


def as_json(instance: str, estimate: Estimate) -> dict[str, Any]:
    prices = estimate.prices
    return {
        "format": FORMAT_VERSION,
        "instance": instance,
        "region": estimate.region,
        "currency": prices.currency,
        "prices": {"file": prices.source, "dated": prices.dated, "pages": dict(prices.pages)},
        "lines": [
            {
                "resource": line.resource,
                "what": line.what,
                "quantity": line.quantity,
                "unit": line.unit,
                "price": line.unit_price,
                "price_name": line.price,
                "monthly": line.monthly,
            }
            for line in estimate.lines
        ],
        "monthly_known": round(estimate.known, 4),
        "unknown": [line.name for line in estimate.unknown],
        "assumptions": {name: value for name, value, _ in estimate.assumptions.listed()},
        "not_counted": NOT_COUNTED,
    }


def as_markdown(instance: str, estimate: Estimate) -> str:
    """Returns a Markdown table with the total first; the assumptions are folded."""
    lines = [f"### Cost of {markdown_code(instance)} a month: {markdown_text(total(estimate))}", ""]
    lines += [markdown_text(headline(instance, estimate)), ""]
    lines += [f"| {' | '.join(HEADS)} |", "|---|---|--:|--:|--:|"]
    for line in estimate.lines:
        resource, *cells = row(line)
        lines.append(f"| {' | '.join([markdown_code(resource), *map(markdown_text, cells)])} |")
    lines += ["", "<details><summary>Assumed, and not counted</summary>", ""]
    lines += [f"- {markdown_text(text)}" for text in assumed(estimate)]
    lines += [f"- not counted: {NOT_COUNTED}", "", "</details>"]
    return "\n".join(lines) + "\n"
