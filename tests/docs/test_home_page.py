"""The demo of the home page is true: its commands run, in order, and print what the page shows."""

from __future__ import annotations

import html
import os
import re
import struct
import sys
from pathlib import Path

import pytest

from tests.docs.tutorial import Command, Reader, fits, steps_of
from tests.projects import REPOSITORY

sys.path.insert(0, str(REPOSITORY / ".ci"))

from screenshots import REPORT_SIZE  # its folder is on the path now

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


def test_the_picture_of_the_report_is_shown_and_has_the_size_of_the_script() -> None:
    header = (REPOSITORY / "docs" / "images" / "report.png").read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    assert struct.unpack(">II", header[16:]) == REPORT_SIZE
    for page, picture in (("README.md", "docs/images/report.png"), ("docs/review.md", "images/report.png")):
        assert f"]({picture})" in (REPOSITORY / page).read_text(encoding="utf-8")


def test_the_quick_start_of_the_readme_is_within_its_first_screen() -> None:
    first = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert [line for line in first if line.startswith("$ deployer ")][-1] == "$ deployer query trips --limit 5"


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
