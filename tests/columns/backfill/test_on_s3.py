"""Backfills of a table on S3, with what they keep there: moto's server, or what `--s3-endpoint` names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.columns.fill import run as fill_run
from deployer.datasets.storage.options import objects_at
from deployer.services.kinds.compact import compact_table
from deployer.table import connect
from tests.columns.backfill.functions import CALLS, calls, counted, picky
from tests.columns.rows import SCHEMA, rows, values
from tests.tables.lakes import Lake


@pytest.fixture
def lake(on_s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    monkeypatch.setenv(CALLS, str(tmp_path / "calls"))
    made = Lake(tmp_path, on_s3)
    made.table(pa.schema([*SCHEMA, pa.field("score", pa.float64())]), row_keys=("id",), splits=())
    yield made
    made.store.close()


class Stopped(Exception):
    """A failure between the values and the commit."""


@pytest.mark.full
def test_a_job_is_resumed_and_failed_rows_are_found(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10):
            table.add(rows(start, start + 10).append_column("score", pa.nulls(10, pa.float64())))

        def fail(*_: Any) -> None:
            raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr(fill_run, "commit_columns", fail)
            with pytest.raises(Stopped):
                table.backfill("score", udf=counted, job_id="monday")
        assert sorted(calls()) == [*range(20)]
        table.backfill("score", udf=counted, job_id="monday")
        assert sorted(calls()) == [*range(20)]
        assert values(table, "score") == {i: i * 2 + 1.0 for i in range(20)}
        assert objects_at(lake.root).list("_work") == []
        assert table.backfill("score", udf=picky, job_id="tuesday").errors == 3
        compact_table(lake.root, "flights", {"min_files": 2})
        failed = ", ".join(map(str, table.get_failed_row_addresses("tuesday", "score")))
        found = table.to_arrow(["id"], f"_rowaddr IN ({failed})")["id"].to_pylist()
        assert sorted(found) == [3, 10, 17]
        assert table.plan_backfill("score", udf=picky).rows == 0
