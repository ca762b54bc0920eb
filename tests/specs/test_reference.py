from __future__ import annotations

import re
from pathlib import Path

from deployer.specs.reference.document import reference
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import format_type
from deployer.specs.yaml.nodes import parse_yaml

PAGE = Path(__file__).parents[2] / "docs" / "spec.md"


def test_the_page_is_current() -> None:
    """`python -m deployer.specs.reference > docs/spec.md` brings it up to date."""
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_links_lead_to_sections_of_the_page() -> None:
    text = reference()
    sections = {line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines() if line.startswith("#")}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= sections


def test_examples_are_yaml() -> None:
    for example in re.findall(r"```yaml\n(.*?)```", reference(), re.DOTALL):
        parsed = parse_yaml(example.encode(), "example.yaml")
        assert parsed.documents
        assert not parsed.problems


def test_the_types_of_the_table_are_written_as_they_are_printed() -> None:
    for row in TYPE_ROWS:
        assert format_type(parse_type(row.text)) == row.text
