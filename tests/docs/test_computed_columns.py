"""The pages about computed columns are true: their examples run in order."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.table import connect
from tests.projects import REPOSITORY
from tests.tables.lakes import Lake


@pytest.fixture
def _lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake in the current folder with the table of the examples."""
    monkeypatch.chdir(tmp_path)
    lake = Lake(tmp_path, "lakes/demo")
    carrier = pa.field("carrier", pa.string(), nullable=False)
    schema = pa.schema([carrier, pa.field("distance", pa.int64()), pa.field("air_time", pa.int64())])
    lake.table(schema, row_keys=("carrier",), splits=())
    rows = [["AA", "DL", "UA"], [719, 762, 1400], [60, None, 200]]
    with connect(lake.root) as connection:
        connection.open_table("flights").add(pa.table(rows, schema=schema))


@pytest.mark.usefixtures("_lake")
def test_the_examples_run() -> None:
    pages = ("functions", "function-packages", "computed-columns", "backfill")
    text = "\n".join((REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in pages)
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    example = doctest.DocTestParser().get_doctest(code, {"__name__": "examples"}, "computed-columns.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(example, out=said.append)
    assert runner.tries > 15 and not runner.failures, "".join(said)
