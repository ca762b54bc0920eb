"""What the docs say is proven about the Pulumi CLI names tests that exist, and README leads there."""

from __future__ import annotations

import re

from tests.engine.conftest import UNLISTED
from tests.projects import REPOSITORY

PAGE = (REPOSITORY / "docs" / "design.md").read_text(encoding="utf-8")
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def section(text: str, title: str) -> str:
    _, found, rest = text.partition(f"\n## {title}\n")
    assert found, title
    return rest.partition("\n## ")[0]


def test_every_claim_names_its_tests() -> None:
    proven = section(PAGE, "What is proven about the Pulumi CLI")
    rows = [
        line.strip("|").split("|") for line in proven.splitlines() if line.startswith("| ") and "proven |" not in line
    ]
    assert len(rows) > 5
    for _, _, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests)
        assert named, tests
        for file, test in named:
            assert f"def {test}" in (REPOSITORY / file).read_text(encoding="utf-8"), (file, test)
    assert f"{NUMBERS[len(UNLISTED)]} fields that the cli writes" in proven.lower()
    assert "Not tried is the CLI itself" in proven


def test_readme_leads_there_and_says_that_the_cli_was_not_tested() -> None:
    with_cli = section((REPOSITORY / "README.md").read_text(encoding="utf-8"), "With the Pulumi CLI")
    assert "docs/design.md#what-is-proven-about-the-pulumi-cli" in with_cli
    assert "deployer has not been tested with the CLI itself" in with_cli
