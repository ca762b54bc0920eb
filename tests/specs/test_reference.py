from __future__ import annotations

import re

import pytest

from deployer.specs.reference.document import reference
from deployer.specs.schema.document import KINDS, json_schema
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import format_type
from deployer.specs.yaml.nodes import parse_yaml

PAGES = reference()


def anchors(text: str) -> set[str]:
    return {line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines() if line.startswith("#")}


@pytest.mark.parametrize("path", PAGES)
def test_links_lead_to_sections_of_the_pages(path: str) -> None:
    for page, anchor in re.findall(r"\]\(([\w/-]+\.md|)#([^)]+)\)", PAGES[path]):
        target = f"{path.rpartition('/')[0]}/{page}".lstrip("/") if page else path
        assert anchor in anchors(PAGES[target])


def test_every_kind_and_every_definition_with_fields_has_a_section() -> None:
    headings = {line.lstrip("# ") for text in PAGES.values() for line in text.splitlines() if line.startswith("#")}
    titles = {each["title"] for each in json_schema()["$defs"].values() if "properties" in each and "title" in each}
    assert {*KINDS} <= titles <= headings


@pytest.mark.parametrize("path", PAGES)
def test_examples_are_yaml(path: str) -> None:
    for example in re.findall(r"```yaml\n(.*?)```", PAGES[path], re.DOTALL):
        parsed = parse_yaml(example.encode(), "example.yaml")
        assert parsed.documents
        assert not parsed.problems


def test_the_types_of_the_table_are_written_as_they_are_printed() -> None:
    for row in TYPE_ROWS:
        assert format_type(parse_type(row.text)) == row.text
