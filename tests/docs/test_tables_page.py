"""The page on administering tables is true: its commands run, in order, and print what it shows."""

from __future__ import annotations

import pytest

from tests.docs.test_tutorial import clone, reader
from tests.docs.tutorial import Command, Reader, fits, steps_of
from tests.projects import REPOSITORY

__all__ = ["clone", "reader"]  # fixtures

PAGE = REPOSITORY / "docs" / "tables.md"


@pytest.mark.full
def test_the_page_is_true(reader: Reader) -> None:
    steps = [*steps_of(PAGE.read_text(encoding="utf-8"))]
    assert sum(isinstance(step, Command) for step in steps) > 20
    for step in steps:
        output = reader.take(step)
        if isinstance(step, Command):
            where = f"{PAGE.name}:{step.line}: {step.text}"
            assert reader.code == 0 or step.text.startswith("deployer drift"), (
                f"{where}\nends with {reader.code}:\n{output}"
            )
            assert fits(step.shown, output), f"{where}\nshows\n{step.shown}\nand prints\n{output}"
