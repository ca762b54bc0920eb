"""Price files: what they may say, what a quantity costs by them, and the one that is part of deployer."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.cost.prices import UNITS, Tier, amount, read_prices
from deployer.errors import DeployerError, InvalidInput, NotFound

HEAD = "format: 1\ndated: 2026-01-31\ncurrency: EUR\n"


def test_the_prices_that_are_part_of_deployer() -> None:
    prices = read_prices()
    assert prices.currency == "USD" and prices.dated.startswith("20")
    assert {"us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-central-1"} <= prices.regions.keys()
    assert all(page.startswith("https://aws.amazon.com/") for page in prices.pages.values())
    found = prices.regions["us-east-1"]
    assert {name.partition("/")[0] for name in found} == UNITS.keys()
    assert all(tier.price > 0 for region in prices.regions.values() for price in region.values() for tier in price)
    assert prices.price("us-east-1", "ec2/m5.xlarge") == (Tier(0.192),)
    assert prices.price("us-east-1", "ec2/none.xlarge") is None and prices.price("xx-north-1", "s3-storage") is None


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [(0, 0.0), (10, 20.0), (100, 200.0), (150, 250.0), (1000, 1100.0), (1001, 1100.5)],
)
def test_tiers(quantity: float, expected: float) -> None:
    assert amount((Tier(2.0, 100), Tier(1.0, 1000), Tier(0.5)), quantity) == pytest.approx(expected)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        f"{HEAD}pages: {{s3: https://prices.example}}\n"
        "regions:\n  here:\n    s3-storage: [{up_to: 5, price: 1}, {price: 0.5}]\n    logs-kept: 0\n    ec2: {a.b: 2}",
        encoding="utf-8",
    )
    prices = read_prices(file)
    assert (prices.source, prices.dated, prices.currency) == (str(file), "2026-01-31", "EUR")
    assert prices.regions["here"] == {
        "s3-storage": (Tier(1.0, 5.0), Tier(0.5)), "logs-kept": (Tier(0.0),), "ec2/a.b": (Tier(2.0),),
    }  # fmt: skip


BAD = {
    # name: (text, where and what it is said to be)
    "not YAML": ("a: [", "prices.yaml:2:1: not valid YAML"),
    "a list": ("- a", "prices.yaml: not a mapping"),
    "no format": ("dated: 2026-01-31", "its format is None"),
    "later format": ("format: 2", "its format is 2, and this deployer reads 1"),
    "unknown field": (f"{HEAD}region: {{}}", "unknown field region"),
    "no date": ("format: 1\ndated: soon\ncurrency: USD", "`dated` is not a date"),
    "no currency": ("format: 1\ndated: 2026-01-31", "`currency` is not a string"),
    "pages": (f"{HEAD}pages: x", "`pages` is not a mapping"),
    "no regions": (HEAD, "`regions` is not a mapping"),
    "region": (f"{HEAD}regions: {{here: 1}}", "prices.yaml: here: not a mapping"),
    "unknown price": (f"{HEAD}regions: {{here: {{s3-storag: 1}}}}", "here: there is no price called s3-storag"),
    "a text": (f"{HEAD}regions: {{here: {{s3-storage: free}}}}", "here.s3-storage: 'free' is not a valid price"),
    "a boolean": (f"{HEAD}regions: {{here: {{s3-storage: true}}}}", "here.s3-storage: True is not a valid price"),
    "below zero": (f"{HEAD}regions: {{here: {{s3-storage: -1}}}}", "here.s3-storage: -1 is not a valid price"),
    "endless": (f"{HEAD}regions: {{here: {{s3-storage: .inf}}}}", "here.s3-storage: inf is not a valid price"),
    "no number": (f"{HEAD}regions: {{here: {{s3-storage: .nan}}}}", "here.s3-storage: nan is not a valid price"),
    "nothing": (f"{HEAD}regions: {{here: {{s3-storage: }}}}", "here.s3-storage: None is not a valid price"),
    "types": (f"{HEAD}regions: {{here: {{ec2: 1}}}}", "here.ec2: not a mapping of instance types"),
    "of a type": (f"{HEAD}regions: {{here: {{ec2: {{a.b: x}}}}}}", "here.ec2.a.b: 'x' is not a valid price"),
    "tier": (f"{HEAD}regions: {{here: {{s3-storage: [{{prize: 1}}]}}}}", "a tier has `price` and `up_to`"),
    "no tiers": (f"{HEAD}regions: {{here: {{s3-storage: []}}}}", "tiers ascend"),
    "last tier": (f"{HEAD}regions: {{here: {{s3-storage: [{{price: 1, up_to: 1}}]}}}}", "tiers ascend"),
    "order": (
        f"{HEAD}regions: {{here: {{s3-storage: [{{price: 1, up_to: 2}}, {{price: 1, up_to: 1}}, {{price: 1}}]}}}}",
        "tiers ascend",
    ),
    "twice": (
        f"{HEAD}regions: {{here: {{s3-storage: [{{price: 1, up_to: 2}}, {{price: 1, up_to: 2}}, {{price: 1}}]}}}}",
        "tiers ascend",
    ),
    "an end": (
        f"{HEAD}regions: {{here: {{s3-storage: [{{price: 1}}, {{price: 1}}]}}}}",
        "tiers ascend",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_in_a_file_is_said(name: str, tmp_path: Path) -> None:
    text, message = BAD[name]
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_prices(file)
    assert message in str(caught.value) and caught.value.remedy == "write it as docs/cost.md says"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="this price file does not exist"):
        read_prices(tmp_path / "none.yaml")
    with pytest.raises(DeployerError, match="cannot be read"):
        read_prices(tmp_path)
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_prices(tmp_path / "latin")
