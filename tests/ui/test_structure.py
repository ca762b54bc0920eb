"""What every page has for people who use the keyboard or a screen reader, and contrasts of WCAG 2.2, level AA."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

import pytest

from deployer.ui.pages import _static
from tests.ui.conftest import Browser
from tests.ui.test_pages import PAGES

WHOLE = [path for path in PAGES if not path.endswith("/part") and not path.startswith("/dataset-runs/")]
FOCUSABLE = ("a", "button", "input", "select", "textarea", "summary")
VOID = ("meta", "link", "input", "line", "br")


@dataclass
class Outline(HTMLParser):
    """The elements of a page in their order, each with its attributes, its ancestors and its text."""

    page: str
    found: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Element] = []
        self.feed(self.page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.found.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for each in self._open:
            each.text += data

    def all(self, *tags: str) -> list[Element]:
        return [each for each in self.found if each.tag in tags]


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    inside: tuple[Element, ...]
    text: str = ""


@pytest.fixture(params=WHOLE)
def outline(browser: Browser, request: pytest.FixtureRequest) -> Outline:
    return Outline(browser.ask(request.param).text)


def test_the_order_of_the_focus_is_that_of_the_page(outline: Outline) -> None:
    assert {each.attributes.get("tabindex", "0") for each in outline.found} <= {"0"}
    assert not [each for each in outline.found if "autofocus" in each.attributes or "accesskey" in each.attributes]
    focusable = outline.all(*FOCUSABLE)
    assert focusable[0].attributes["class"] == "skip" and focusable[0].attributes["href"] == "#main"
    [main] = outline.all("main")
    assert main.attributes["id"] == "main"
    before = [each for each in focusable[1:] if main not in each.inside]
    assert all(any(above.tag == "header" for above in each.inside) for each in before)


def test_every_field_button_and_link_has_a_name(outline: Outline) -> None:
    labels = {each.attributes["for"] for each in outline.all("label")}
    for each in outline.all("input"):
        is_named = each.attributes.get("id") in labels or each.attributes.get("aria-label")
        assert each.attributes.get("type") == "hidden" or is_named, each
    assert all(each.text.strip() or each.attributes.get("aria-label") for each in outline.all("a", "button", "summary"))
    assert all(each.attributes.get("aria-label") for each in outline.all("nav", "progress"))
    drawings = [each for each in outline.all("svg") if each.attributes.get("aria-hidden") != "true"]
    assert all(each.attributes["role"] == "img" and each.attributes["aria-label"] for each in drawings)


def test_headings_and_landmarks_form_an_outline(outline: Outline) -> None:
    assert outline.all("html")[0].attributes["lang"] == "en"
    assert outline.all("title")[0].text.strip()
    levels = [int(each.tag[1]) for each in outline.all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below <= above + 1 for above, below in itertools.pairwise(levels))
    assert len(outline.all("main")) == len(outline.all("header")) == 1
    ids = Counter(each.attributes["id"] for each in outline.found if "id" in each.attributes)
    assert not [name for name, number in ids.items() if number > 1]


def test_tables_have_heads_and_can_be_scrolled_by_keys(outline: Outline) -> None:
    heads = outline.all("th")
    assert all(each.attributes.get("scope") in ("col", "row") and each.text.strip() for each in heads)
    scrolled = [each for each in outline.found if "scroll" in each.attributes.get("class", "").split()]
    assert all(each.attributes.get("tabindex") == "0" for each in scrolled)


def styles() -> str:
    return re.sub(r"/\*.*?\*/", "", _static("page.css").decode(), flags=re.DOTALL)


def palettes() -> dict[str, dict[str, str]]:
    light, dark = (
        dict(re.findall(r"--([\w-]+):\s*(#\w{6})", block))
        for block in re.findall(r":root\s*{(.*?)}", styles(), re.DOTALL)
    )
    return {"light": light, "dark": {**light, **dark}}


def contrast(one: str, two: str) -> float:
    """The ratio of WCAG 2.2 of two colors such as #1a2233."""

    def luminance(color: str) -> float:
        parts = (int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def rules() -> list[tuple[str, dict[str, str]]]:
    """The declarations of each rule that names a color of the palette, by property."""
    found = []
    for selector, body in re.findall(r"([^{}]+){([^{}]*)}", styles()):
        declared = re.findall(r"([\w-]+):[^;]*?var\(--([\w-]+)\)", body)
        if declared and ":root" not in selector:
            found.append((selector.strip(), dict(declared)))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_the_contrast_that_wcag_aa_wants(theme: str) -> None:
    palette = palettes()[theme]
    checked = 0
    for selector, declared in rules():
        ink = declared.get("color") or declared.get("fill") if "text" in selector else declared.get("color")
        own = declared.get("background")
        for ground in [own] if own else ["page", "card"]:
            for text in [ink] if ink else ["ink"] if own in ("page", "card") else []:
                checked += 1
                ratio = contrast(palette[text], palette[ground])
                assert ratio >= 4.5, f"{selector}: {text} on {ground} is {ratio:.2f}"
    assert checked >= 30
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marks_and_edges_have_the_contrast_that_wcag_aa_wants(theme: str) -> None:
    palette = palettes()[theme]
    marks = [
        (selector, declared.get("stroke") or declared.get("fill") or declared.get("outline"))
        for selector, declared in rules()
        if {"stroke", "fill", "outline"} & declared.keys() and not selector.endswith((" text", " line"))
    ]
    edges = [(selector, declared["border"]) for selector, declared in rules() if selector.startswith("input")]
    assert len(marks) >= 10 and edges
    for selector, color in marks + edges:
        assert color is not None
        ratio = contrast(palette[color], palette["card"])
        assert ratio >= 3, f"{selector}: {color} on card is {ratio:.2f}"
