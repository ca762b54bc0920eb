"""SQL expressions over rows: each row gets its own value, however many rows there are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from deployer.platform.sql.process import compute
from deployer.specs.model import TableSpec
from deployer.tables.admin.tables import create_table
from deployer.tables.conversion.sql_values import values_of
from tests.tables.lakes import Lake
from tests.tables.schema.test_evolution import column

ROWS = 100_000  #: DataFusion divides more than 8,192 rows among its threads


@pytest.mark.parametrize("rows", [1, 8_193, ROWS])
def test_values_are_in_the_order_of_the_rows(rows: int) -> None:
    table = pa.table({"x": pa.array(range(rows), pa.int64())})
    expected = [2 * x for x in range(rows)]
    assert values_of(table.to_batches()[0], "x * 2", pa.int64()).to_pylist() == expected
    assert compute(table, "x * 2").to_pylist() == expected


def test_a_default_of_many_rows_gives_each_row_its_own_value(lake: Lake) -> None:
    spec = TableSpec("air", "flights", (column("id: int64 not null"), column("twice: int64", default="id * 2")))
    create_table(lake.store, lake.root, spec, "tests/dev")
    lake.ingest(lake.file(pa.table({"id": pa.array(range(ROWS), pa.int64())})))
    found = lake.open().scan().to_table()
    assert np.array_equal(found["twice"].to_numpy(), 2 * found["id"].to_numpy())
