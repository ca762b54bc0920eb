"""The demo of the home page is true: its commands run, in order, and print what the page shows."""

from __future__ import annotations

import html
import os
import re
import sys
from pathlib import Path

import pytest

from tests.docs.tutorial import Command, Reader, fits, steps_of
from tests.projects import REPOSITORY

PAGE = REPOSITORY / "docs" / "index.md"


def test_the_picture_shows_the_commands_of_the_demo() -> None:
    """Blanks do not count: rich writes a text for each style, and wraps lines that are longer than the terminal."""
    picture = (REPOSITORY / "docs" / "images" / "demo.svg").read_text(encoding="utf-8")
    texts = re.findall(r"<text[^>]*>(.*?)</text>", picture, re.DOTALL)
    shown = "".join(html.unescape(text) for text in texts).replace("\xa0", " ")
    shown, at = re.sub(r"\s+", "", shown), 0
    for step in steps_of(PAGE.read_text(encoding="utf-8")):
        if isinstance(step, Command):
            at = shown.find("$" + re.sub(r"\s+", "", step.text), at)
            assert at >= 0, step.text
    assert {*re.findall(r"https?://[\w./]+", picture)} == {"http://www.w3.org/2000/svg"}


@pytest.mark.full
def test_the_demo_is_true(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    reader = Reader(tmp_path, {"PATH": path, "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"})
    steps = [*steps_of(PAGE.read_text(encoding="utf-8"))]
    assert sum(isinstance(step, Command) for step in steps) > 5
    for step in steps:
        output = reader.take(step)
        if isinstance(step, Command):
            where = f"{PAGE.name}:{step.line}: {step.text}"
            assert reader.code == 0, f"{where}\nends with {reader.code}:\n{output}"
            assert fits(step.shown, output), f"{where}\nshows\n{step.shown}\nand prints\n{output}"
            if step.text == "cd lake":
                reader.folder /= "lake"
