"""An estimate as a table, as Markdown and as JSON: golden files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deployer.cli.commands.deploy.cost import CostFormat, print_estimate
from deployer.cost.assumptions import Assumptions
from deployer.cost.estimate import GB, Estimate, Holding, StoredData, estimate
from deployer.cost.prices import read_prices
from tests.cost.test_estimate import LAKE, OTHER, SMALL, TABLE

GOLDEN = Path(__file__).parent / "golden"
BIG = replace(SMALL, name="big", kind="emr", options={"instance_type": "z9.huge", "instances": 4})
FULL = Holding(
    replace(LAKE, clusters=(SMALL, BIG)), (StoredData(TABLE, 70_000 * GB), StoredData(OTHER, GB // 3)), 12_345_678
)


def of(holding: Holding, region: str | None) -> Estimate:
    return estimate(holding, region, replace(read_prices(), dated="2025-06-30"), Assumptions())


CASES = {
    "known": of(Holding(LAKE, (StoredData(TABLE, 10 * GB),), 0), "us-east-1"),
    "some_unknown": of(FULL, "us-east-1"),
    "unread": of(Holding(LAKE, (StoredData(TABLE, None),)), "eu-central-1"),
    "another_region": of(FULL, "xx-north-1"),
    "no_region": of(FULL, None),
}


@pytest.mark.parametrize("name", CASES)
def test_every_form_is_as_its_golden_file_says(
    name: str, update_golden: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ""
    for form in CostFormat:
        print_estimate("demo", CASES[name], form)
        shown = "".join(line.rstrip() + "\n" for line in capsys.readouterr().out.splitlines())
        text += f"===== {form.value}\n{shown}\n"
        assert form is not CostFormat.JSON or json.loads(shown)["region"] == CASES[name].region
    file = GOLDEN / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
