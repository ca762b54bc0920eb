"""The diagrams of docs/concepts.md are those of `.ci/diagrams.py`, load nothing, and have a text alternative."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import pytest

from tests.projects import REPOSITORY

sys.path.insert(0, str(REPOSITORY / ".ci"))
from diagrams import DIAGRAMS, IMAGES, svg

sys.path.pop(0)

PAGE = (REPOSITORY / "docs" / "concepts.md").read_text(encoding="utf-8")


def test_the_page_shows_every_diagram() -> None:
    assert re.findall(r"\(images/(\w+)\.svg\)", PAGE) == [*DIAGRAMS]


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_current_and_is_there_as_text(name: str) -> None:
    picture = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert picture == svg(DIAGRAMS[name])
    assert f"![{DIAGRAMS[name].title}](images/{name}.svg)\n\n{DIAGRAMS[name].description}\n" in PAGE
    assert ElementTree.fromstring(picture).tag.endswith("svg")  # noqa: S314 -- made here
    assert re.findall(r"https?://[\w./]+", picture) == ["http://www.w3.org/2000/svg"]


@pytest.mark.parametrize("name", DIAGRAMS)
def test_no_box_lies_on_another_one(name: str) -> None:
    places = [(box.column, box.row) for box in DIAGRAMS[name].boxes.values()]
    assert len(places) == len({*places})


def test_the_crash_points_are_those_of_the_code() -> None:
    points = re.findall(r"^\| `(tables\.commit\.[\w-]+)`", PAGE, re.MULTILINE)
    code = "".join(file.read_text(encoding="utf-8") for file in (REPOSITORY / "deployer").rglob("*.py"))
    assert len(points) == 4
    assert [point for point in points if f'"{point}"' not in code] == []
