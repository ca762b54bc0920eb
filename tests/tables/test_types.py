"""Every column type goes through both ways of loading and comes back as it was."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deployer.specs.model import Storage
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import Column, Scalar
from tests.tables.lakes import Lake
from tests.values import ALSO_STORED, array, nullable

ROWS = 200
TYPES = [row.text for row in TYPE_ROWS if "2.1" in row.versions] + list(ALSO_STORED)
COLUMNS = (
    Column("id", Scalar("int64"), False),
    *(Column(f"c{i}", parse_type(text)) for i, text in enumerate(TYPES)),
)
KEYLESS, KEYED = (), ("id",)


def rows_of(schema: pa.Schema) -> pa.Table:
    columns = [pa.array([(i * 37) % ROWS for i in range(ROWS)], pa.int64())]
    for column, field in zip(COLUMNS[1:], list(schema)[1:], strict=True):
        columns.append(array(field.type, [nullable(column, i) for i in range(ROWS)]))
    return pa.Table.from_arrays(columns, schema=schema)


@pytest.mark.parametrize("row_keys", [KEYLESS, KEYED], ids=["keyless", "keyed"])
@pytest.mark.parametrize("engine", ["driver", pytest.param("spark", marks=pytest.mark.spark)])
def test_all_types_come_back(engine: Any, row_keys: tuple[str, ...], lake: Lake, request: Any) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    schema = arrow_schema(COLUMNS)
    lake.table(schema, row_keys, splits=((100,),), storage=Storage(data_storage_version="2.1"))
    rows = rows_of(schema)
    path = lake.folder / "rows.arrow"
    with pa.ipc.new_file(str(path), schema) as writer:
        writer.write_table(rows, max_chunksize=70)

    result = lake.ingest(path, engine=engine)

    assert (result.rows, result.engine, result.bad_rows) == (ROWS, engine, 0)
    found = lake.open().scan().to_table().sort_by("id")
    rows = rows.take(pa.compute.sort_indices(rows["id"]))
    for name, text in zip(schema.names, ["int64", *TYPES], strict=True):
        assert found[name].to_pylist() == rows[name].to_pylist(), text
