"""The generated pages are current, complete and legible. `make reference` brings them up to date."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping

import pytest

from tests.projects import REPOSITORY

sys.path.insert(0, str(REPOSITORY / ".ci"))

import python_reference  # its folder is on the path now
import reference

DOCS = REPOSITORY / "docs"


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    return reference.pages()


def test_the_pages_are_current(pages: Mapping[str, str]) -> None:
    stale = [path for path, text in pages.items() if (DOCS / path).read_text(encoding="utf-8") != text]
    assert not stale, "run `make reference`"


def test_the_folders_of_the_reference_have_no_other_pages(pages: Mapping[str, str]) -> None:
    written = {file.relative_to(DOCS).as_posix() for folder in reference.FOLDERS for file in (DOCS / folder).iterdir()}
    assert written == {path for path in pages if "/" in path}


@pytest.mark.parametrize("page", [pytest.param(page, id=page) for page in python_reference.PAGES])
def test_every_public_name_of_a_package_is_described(page: str, pages: Mapping[str, str]) -> None:
    text = pages[f"python/{page}.md"]
    for module in python_reference.PAGES[page]:
        names = module.names or getattr(importlib.import_module(module.name), "__all__", ()) or None
        for name in names or python_reference.public_names(module):
            described = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
            code, _, prose = described.partition("```python\n")[2].partition("\n```\n")
            assert code, name
            assert re.search(r"^\S.{15,}", prose, re.MULTILINE), f"{module.name}.{name} has no docstring"
