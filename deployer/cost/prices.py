"""Price files: dated lists of AWS's prices by region. docs/cost.md describes their format."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from deployer.errors import InvalidInput, NotFound
from deployer.platform.files.reading import read_limited
from deployer.specs.yaml.nodes import parse_yaml

MAX_BYTES = 1024 * 1024  #: of a price file
FORMAT_VERSION = 1

#: The units of the prices. `ec2` and `emr` have a price for each type of instance.
UNITS: Mapping[str, str] = {
    "s3-storage": "GB-month",
    "s3-writes": "thousand requests",
    "dynamodb-writes": "million write units",
    "dynamodb-read-capacity": "unit-hour",
    "dynamodb-write-capacity": "unit-hour",
    "dynamodb-storage": "GB-month",
    "dynamodb-recovery": "GB-month",
    "kms-key": "key-month",
    "logs-ingested": "GB",
    "logs-kept": "GB-month",
    "alarm": "alarm-month",
    "scheduler": "million invocations",
    "emr-serverless-vcpu-x86_64": "vCPU-hour",
    "emr-serverless-memory-x86_64": "GB-hour",
    "emr-serverless-vcpu-arm64": "vCPU-hour",
    "emr-serverless-memory-arm64": "GB-hour",
    "ec2": "instance-hour",
    "emr": "instance-hour",
}
_BY_TYPE = ("ec2", "emr")


@dataclass(frozen=True, slots=True)
class Tier:
    """A price for the units of a month below `up_to` (None: no upper limit) and above the previous tier."""

    price: float
    up_to: float | None = None


Price = tuple[Tier, ...]


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of a file. `regions` has the prices of each region by name, such as `s3-storage` or `ec2/m5.xlarge`;
    `source` is the file."""

    source: str
    dated: str
    currency: str
    pages: Mapping[str, str]
    regions: Mapping[str, Mapping[str, Price]]

    def price(self, region: str, name: str) -> Price | None:
        """Returns the price; None where it is unknown."""
        return self.regions.get(region, {}).get(name)


def unit_of(name: str) -> str:
    """Returns the unit of a price."""
    return UNITS[name.partition("/")[0]]


def amount(price: Price, quantity: float) -> float:
    """Returns the monthly cost of a number of units."""
    total = below = 0.0
    for tier in price:
        end = quantity if tier.up_to is None else min(quantity, tier.up_to)
        total += max(end - below, 0) * tier.price
        below = max(end, below)
    return total


def read_prices(file: Path | None = None) -> PriceList:
    """Returns the prices of a file, or by default those of this release. Raises NotFound for a missing file, and
    InvalidInput that names what is wrong in it."""
    if file is None:
        data = resources.files("deployer.cost").joinpath("prices/aws.yaml").read_bytes()
        return _checked(data, "deployer/cost/prices/aws.yaml")
    try:
        return _checked(read_limited(file, MAX_BYTES), str(file))
    except FileNotFoundError:
        raise NotFound(
            "this price file does not exist", where=file, remedy="give --prices a file, see docs/cost.md"
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"it cannot be read: {error.strerror}", where=file, remedy="check its permissions"
        ) from error


def _checked(data: bytes, source: str) -> PriceList:
    def wrong(what: str, where: str = "") -> InvalidInput:
        place = f"{source}: {where}" if where else source
        return InvalidInput(what, where=place, remedy="write it as docs/cost.md says")

    parsed = parse_yaml(data, source)
    for problem in parsed.problems:
        what = f"not valid YAML: {problem.what}"
        raise InvalidInput(what, where=problem.at, remedy="write it as docs/cost.md says")
    document = parsed.documents[0].plain() if len(parsed.documents) == 1 else None
    if not isinstance(document, dict):
        raise wrong("not a mapping")
    version = document.get("format")
    if version != FORMAT_VERSION:
        raise wrong(f"its format is {version}, and this deployer reads {FORMAT_VERSION}")
    if unknown := sorted(map(str, document.keys() - {"format", "dated", "currency", "pages", "regions"})):
        raise wrong(f"unknown field {unknown[0]}")
    dated, currency, pages = document.get("dated"), document.get("currency"), document.get("pages", {})
    if not isinstance(dated, str) or not _is_date(dated):
        raise wrong("`dated` is not a date such as 2025-06-30")
    if not isinstance(currency, str):
        raise wrong("`currency` is not a string such as USD")
    if not isinstance(pages, dict):
        raise wrong("`pages` is not a mapping")
    regions = document.get("regions")
    if not isinstance(regions, dict):
        raise wrong("`regions` is not a mapping")
    found = {}
    for region, prices in regions.items():
        if not isinstance(prices, dict):
            raise wrong("not a mapping", str(region))
        found[str(region)] = dict(_prices(prices, str(region), wrong))
    pages_by_name = {str(name): str(page) for name, page in pages.items()}
    return PriceList(source, dated, currency, pages_by_name, found)


def _is_date(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _prices(prices: Mapping[Any, Any], region: str, wrong: Any) -> Any:
    for name, value in prices.items():
        if name not in UNITS:
            raise wrong(f"there is no price called {name}; there are {', '.join(UNITS)}", region)
        if name not in _BY_TYPE:
            yield name, _price(value, f"{region}.{name}", wrong)
            continue
        if not isinstance(value, dict):
            raise wrong("not a mapping of instance types", f"{region}.{name}")
        for kind, of_kind in value.items():
            yield f"{name}/{kind}", _price(of_kind, f"{region}.{name}.{kind}", wrong)


def _price(value: Any, where: str, wrong: Any) -> Price:
    if not isinstance(value, list):
        return (Tier(_number(value, where, wrong)),)
    tiers: list[Tier] = []
    for each in value:
        if not isinstance(each, dict) or each.keys() - {"price", "up_to"}:
            raise wrong("a tier has `price` and `up_to`", where)
        up_to = _number(each["up_to"], where, wrong) if "up_to" in each else None
        tiers.append(Tier(_number(each.get("price"), where, wrong), up_to))
    ends = [tier.up_to for tier in tiers]
    if not ends or ends[-1] is not None or None in ends[:-1] or ends[:-1] != sorted(set(ends[:-1]), key=float):  # type: ignore[arg-type]
        raise wrong("tiers ascend by `up_to`, which the last one alone does not have", where)
    return tuple(tiers)


def _number(value: Any, where: str, wrong: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise wrong(f"{value!r} is not a valid price", where)
    return float(value)
