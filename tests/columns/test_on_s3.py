"""Loads of columns into a table on S3, from files there: moto's server, or what `--s3-endpoint` names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.columns.fill import run as fill_run
from deployer.datasets.storage.options import objects_at
from deployer.table import connect
from tests.columns.rows import SCHEMA, rows, source, values
from tests.tables.lakes import Lake


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    made.table(SCHEMA, row_keys=("id",), splits=())
    yield made
    made.store.close()


class Stopped(Exception):
    """A failure between the values and the commit."""


def put(lake: Lake, name: str, table: pa.Table) -> str:
    """The rows as a Parquet file in the bucket; gives its address."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    objects_at(f"{lake.root}/sources").put(name, sink.getvalue().to_pybytes())
    return f"{lake.root}/sources/{name}"


@pytest.mark.full
def test_columns_are_loaded_and_a_job_is_resumed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10):
            table.add(rows(start, start + 10))
        put(lake, "a.parquet", source(range(10)))
        put(lake, "b.parquet", source(range(10, 20)))

        def fail(*_: Any) -> None:
            raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr(fill_run, "commit_columns", fail)
            with pytest.raises(Stopped):
                table.load_columns(f"{lake.root}/sources/", "id", ["embedding", "label"], job_id="monday")
        files = {each.path for each in objects_at(lake.open().opened.location).described("data")}
        table.load_columns(f"{lake.root}/sources/", "id", ["embedding", "label"], job_id="monday")
        assert {each.path for each in objects_at(lake.open().opened.location).described("data")} == files
        assert values(table, "label") == {i: f"label {i}" for i in range(20)}
        assert objects_at(lake.root).list("_work") == []
        changed = put(lake, "c.parquet", source([3], 2))
        table.load_columns([changed], "id", ["label"], on_missing="null")
        assert values(table, "label") == {i: "label 6" if i == 3 else None for i in range(20)}
