"""docs/cost.md lists every assumption and price there is."""

from __future__ import annotations

import re
from pathlib import Path

from deployer.cost.assumptions import Assumptions
from deployer.cost.prices import UNITS, read_prices
from tests.projects import REPOSITORY

PAGE = (REPOSITORY / "docs" / "cost.md").read_text(encoding="utf-8")


def test_assumptions() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| (.+) \|$", PAGE, re.MULTILINE)
    listed = [(name, float(value), meaning.replace("`", "")) for name, value, meaning in rows]
    assert listed == Assumptions().listed()


def test_prices() -> None:
    table = PAGE.split("| price | per |", 1)[1]
    assert set(re.findall(r"`([a-z0-9_-]+)`", table)) == set(UNITS)
    prices = read_prices()
    assert all(page in PAGE for page in prices.pages.values())
    assert all(region in PAGE for region in prices.regions)
    missing = {name for name in UNITS if name not in ("ec2", "emr") and not prices.price("eu-central-1", name)}
    assert missing == {"scheduler", *(name for name in UNITS if name.startswith("emr-serverless"))}
    missing = {name for name in UNITS if name not in ("ec2", "emr") and not prices.price("eu-west-1", name)}
    assert missing == {
        "dynamodb-writes", "emr-serverless-vcpu-arm64", "emr-serverless-memory-arm64", "scheduler",
    }  # fmt: skip


def test_the_file_of_the_page(tmp_path: Path) -> None:
    text = PAGE.split("```yaml\nformat: 1", 1)[1].split("```", 1)[0]
    file = tmp_path / "prices.yaml"
    file.write_text(f"format: 1{text}", encoding="utf-8")
    assert read_prices(file).price("eu-north-1", "ec2/r7g.xlarge") is not None
