"""The pages on administering and recovering tables are true: their commands run, in order, and print what is shown."""

from __future__ import annotations

import pytest

from tests.docs.test_tutorial import clone, reader
from tests.docs.tutorial import Command, Reader, fits, steps_of
from tests.projects import REPOSITORY

__all__ = ["clone", "reader"]  # fixtures

PAGES = [REPOSITORY / "docs" / name for name in ("tables.md", "recovery.md")]


@pytest.mark.full
def test_the_pages_are_true(reader: Reader) -> None:
    steps = [(page, step) for page in PAGES for step in steps_of(page.read_text(encoding="utf-8"))]
    assert sum(isinstance(step, Command) for _, step in steps) > 20
    for page, step in steps:
        output = reader.take(step)
        if isinstance(step, Command):
            where = f"{page.name}:{step.line}: {step.text}"
            assert reader.code == 0 or step.text.startswith("deployer drift"), (
                f"{where}\nends with {reader.code}:\n{output}"
            )
            assert fits(step.shown, output), f"{where}\nshows\n{step.shown}\nand prints\n{output}"
