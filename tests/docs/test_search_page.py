"""The page about searches is true: its examples run in order."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.specs.model import IndexSpec, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender
from tests.projects import REPOSITORY

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), 3))])
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "text": ["a red car", "a blue coat of wool", "green tea"],
        "vector": [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]],
    },
    schema=SCHEMA,
)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = TableSpec("shop", "items", columns_of(SCHEMA), indexes=(IndexSpec("words", ("text",), "inverted"),))
    create_table(create_store("lakes/demo"), "lakes/demo", spec, "tests/dev")
    writer = open_appender("lakes/demo", "shop.items")
    writer.append(ROWS)
    writer.close()
    text = (REPOSITORY / "docs" / "search.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    example = doctest.DocTestParser().get_doctest(code, {}, "search.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(example, out=said.append)
    assert runner.tries > 10 and not runner.failures, "".join(said)
