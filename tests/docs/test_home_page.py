"""The demo of the home page is true: its commands run, in order, and print what the page shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.tutorial import Command, Reader, fits, steps_of
from tests.projects import REPOSITORY

PAGE = REPOSITORY / "docs" / "index.md"


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
