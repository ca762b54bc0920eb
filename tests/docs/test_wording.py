"""The texts that people read avoid the words of the project's style guide that are hard to understand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

sys.path.insert(0, str(REPOSITORY / ".ci"))

from messages import Text, texts_of  # its folder is on the path now

AVOIDED = re.compile(
    r"\b(anew|whoever|nobody|anybody|for ever|in vain|in words|let go of|goes on|gone on|went on|by now|all the time"
    r"|there is no such|(?:is|are|was|were) told|is let|at three in the night"
    r"|(?<!there )(?:is|are) no (?!longer|more|less)"
    r"|(?<!`)somebody(?!`))\b",
    re.IGNORECASE,
)
#: Openings of clauses: a docstring of a function begins with a verb, and one of data with a noun.
CLAUSE = re.compile(r"(?:What|Which|How|Those|Who|Whose|Whether|That|Where|When|Why|Of)\b")
PACKAGES = sorted(each for each in (REPOSITORY / "deployer").iterdir() if (each / "__init__.py").exists())
NAMES = ("somebody",)  #: a value that the state stores
PAGES = sorted((REPOSITORY / "docs").rglob("*.md"))


@pytest.mark.parametrize(
    "package", [pytest.param(each, id=each.name) for each in (*PACKAGES, REPOSITORY / "spark_jobs")]
)
def test_texts_of_the_code_avoid_these_words(package: Path) -> None:
    found = [
        f"{file.relative_to(REPOSITORY)}:{each.line}: {word}"
        for file in package.rglob("*.py")
        for each in texts_of(file)
        if each.text not in NAMES
        for word in AVOIDED.findall(each.text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "package", [pytest.param(each, id=each.name) for each in (*PACKAGES, REPOSITORY / "spark_jobs")]
)
def test_docstrings_begin_with_a_verb_or_a_noun(package: Path) -> None:
    found = [
        f"{file.relative_to(REPOSITORY)}:{each.line}: {each.text[:60]}"
        for file in package.rglob("*.py")
        for each in texts_of(file)
        if each.kind == "docstring" and CLAUSE.match(each.text)
    ]
    assert found == []


@pytest.mark.parametrize("page", [pytest.param(each, id=each.stem) for each in (*PAGES, REPOSITORY / "README.md")])
def test_pages_avoid_these_words(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert AVOIDED.findall(prose) == []


def test_the_list_has_errors_remedies_help_and_docstrings() -> None:
    found = [each for name in ("open_table.py", "inspect/protection.py") for each in _texts(f"tables/{name}")]
    found += _texts("cli/options.py")
    assert {"docstring", "error", "help", "remedy", "text"} <= {each.kind for each in found}
    assert "there is no table {name}" in {each.text for each in found}


def _texts(path: str) -> list[Text]:
    return [*texts_of(REPOSITORY / "deployer" / path)]
