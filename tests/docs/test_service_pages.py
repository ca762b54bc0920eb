"""The pages on compaction, savepoints and clean-ups are true: their commands run after those of the demo, in order."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.tutorial import Command, Reader, fits, steps_of
from tests.projects import REPOSITORY

DEMO = REPOSITORY / "docs" / "index.md"
PAGES = [REPOSITORY / "docs" / name for name in ("compact.md", "savepoints.md", "clean.md")]


@pytest.mark.full
def test_the_pages_are_true(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    reader = Reader(tmp_path, {"PATH": path, "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8"})
    for step in steps_of(DEMO.read_text(encoding="utf-8")):
        if isinstance(step, Command) and step.text == "cd lake":
            reader.folder /= "lake"
            continue
        output = reader.take(step)
        assert reader.code == 0, output
    steps = [(page, step) for page in PAGES for step in steps_of(page.read_text(encoding="utf-8"))]
    assert all(isinstance(step, Command) for _, step in steps) and len(steps) >= 10
    for page, step in steps:
        output = reader.take(step)
        if isinstance(step, Command):
            where = f"{page.name}:{step.line}: {step.text}"
            assert reader.code == 0, f"{where}\nends with {reader.code}:\n{output}"
            assert fits(step.shown, output), f"{where}\nshows\n{step.shown}\nand prints\n{output}"
