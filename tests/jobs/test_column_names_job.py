"""A column with the worst of names through loads, rewrites and services by Spark: it never becomes Spark's SQL."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from deployer.live.reader import read_table
from deployer.services.kinds.cluster import cluster_table
from deployer.tables.admin.tables import update_table
from deployer.tables.evolution.rewrite import load as rewrite_load
from spark_jobs.rewrite import copy_with_spark
from tests.column_names import WORST
from tests.tables.lakes import Lake, sorted_rows

pytestmark = pytest.mark.spark

INSIDE = pa.struct([(WORST, pa.int64()), ("2nd", pa.string())])
SCHEMA = pa.schema(
    [pa.field(WORST, pa.int64(), nullable=False), pa.field(" b", pa.int64(), nullable=False), ("s", INSIDE)]
)


def test_by_spark_it_is_the_same(lake: Lake, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{WORST: i * 37 % 100, " b": i, "s": {WORST: -i, "2nd": str(i)}} for i in range(100)]
    lake.table(SCHEMA, (WORST,), (" b",), splits=((50,),))
    lake.ingest(lake.file(pa.Table.from_pylist(rows[:50], schema=SCHEMA)), engine="spark")
    with (lake.folder / "more.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[WORST, " b"], *([row[WORST], row[" b"]] for row in rows[50:])])
    lake.ingest(lake.folder / "more.csv", engine="spark", missing_as_null=True)
    wanted = pa.Table.from_pylist(rows[:50] + [{**row, "s": None} for row in rows[50:]], schema=SCHEMA)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(wanted)

    monkeypatch.setattr(rewrite_load, "SMALL_ROWS", 0)
    opened = lake.open().opened
    live = read_table(lake.store, lake.root, opened.entry).spec
    spec = replace(live, row_keys=(" b", WORST), sort_keys=(), split_points=((20,),))
    update_table(lake.store, lake.root, opened.entry.table_id, spec, with_spark=copy_with_spark)
    assert lake.open().row_keys == (" b", WORST)
    options = {"columns": [WORST, f"s.{WORST}"], "target_file_bytes": 1_000}
    assert cluster_table(lake.root, "flights", options, engine="spark").status == "SUCCEEDED"
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(wanted)
    assert lake.open().scan(f"`{WORST}` = 37").to_table()[" b"].to_pylist() == [1]
