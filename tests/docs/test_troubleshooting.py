"""docs/troubleshooting.md quotes messages of the code: what does not vary in each is there."""

from __future__ import annotations

import re

import pytest

from tests.projects import REPOSITORY

PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
MESSAGES = [
    (double or single).strip() for double, single in re.findall(r"^\| (?:``(.+?)``|`([^`]+)`) \|", PAGE, re.MULTILINE)
]
#: The code with texts of several lines joined as Python joins them.
CODE = "".join(
    re.sub(r'"\s*\n\s*f?"', "", file.read_text(encoding="utf-8")) for file in (REPOSITORY / "deployer").rglob("*.py")
)


def test_the_page_has_the_messages_that_users_meet_most() -> None:
    assert len(MESSAGES) == len(re.findall(r"^\| `", PAGE, re.MULTILINE)) >= 20
    assert len(MESSAGES) == len({*MESSAGES})


@pytest.mark.parametrize("message", MESSAGES)
def test_each_message_is_in_the_code(message: str) -> None:
    fixed = [re.escape(part) for part in message.strip("… ").split("…")]
    assert sum(map(len, fixed)) > 12
    assert re.search(r"\{[^\n]+?\}".join(fixed), CODE)
