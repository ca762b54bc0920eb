"""The page about Python is true: its examples run in order."""

from __future__ import annotations

import doctest
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import create_store
from deployer.tables.admin.instance import create_instance
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender
from tests.projects import INSTANCE, REPOSITORY, make_project
from tests.projects import table as spec_of


@pytest.mark.full
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    schema = pa.schema(
        [
            pa.field("carrier", pa.string(), nullable=False),
            pa.field("flight", pa.int32(), nullable=False),
            pa.field("delay", pa.int16()),
        ]
    )
    create_instance("lakes/demo", InstanceSpec("demo", "lakes/demo"), "tests/dev")
    store = create_store("lakes/demo")
    spec = TableSpec("air", "flights", columns_of(schema), ("carrier", "flight"), split_points=(("DL",),))
    create_table(store, "lakes/demo", spec, "tests/dev")
    writer = open_appender("lakes/demo", "air.flights")
    rows = pa.table({"carrier": ["UA", "AA", "UA"], "flight": [1545, 1141, 1714], "delay": [11, -2, 4]})
    writer.append(rows)
    writer.close()
    orders = spec_of("orders", "amount: float64", database="shop")
    make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "orders.yaml": orders})
    text = (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8").replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {}, "python.md", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(example, out=said.append)
    assert runner.tries > 10 and not runner.failures, "".join(said)
