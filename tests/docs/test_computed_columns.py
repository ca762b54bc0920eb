"""The page about computed columns is true: its examples run in order."""

from __future__ import annotations

import doctest
import re

from tests.projects import REPOSITORY


def test_the_examples_run() -> None:
    text = (REPOSITORY / "docs" / "computed-columns.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    example = doctest.DocTestParser().get_doctest(code, {"__name__": "examples"}, "computed-columns.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(example, out=said.append)
    assert runner.tries > 15 and not runner.failures, "".join(said)
