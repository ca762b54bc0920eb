from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.computed import ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, Scalar
from deployer.table import Table, connect
from tests.columns.backfill.functions import CALLS
from tests.columns.rows import SCHEMA, rows
from tests.tables.lakes import Lake

TRUSTED = ["tests.columns.backfill.functions:scalar", "tests.columns.backfill.functions:picky"]
COMPUTED: dict[str, ComputedBySql | ComputedByUdf] = {
    "km": ComputedBySql("rating * 1.609344", ("rating",)),
    "score": ComputedByUdf("tests.columns.backfill.functions:scalar", "", ("rating",), "1"),
}


#: Whether additions of rows leave computed columns to backfills, and refuse values of them.
LEFT_TO_BACKFILLS = find_spec("deployer.tables.ingest.rows.computed_values") is not None


def with_computed(table: pa.Table) -> pa.Table:
    """The rows as they are added: with null in the computed columns where an addition has to bring all columns."""
    for name in () if LEFT_TO_BACKFILLS else COMPUTED:
        table = table.append_column(name, pa.nulls(table.num_rows, pa.float64()))
    return table


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """An instance with `air.flights`: rows 0 to 30 in three fragments, and columns that are computed but not yet."""
    monkeypatch.setenv(CALLS, str(tmp_path / "calls"))
    lake = Lake(tmp_path)
    fields = [arrow_field(Column(name, Scalar("float64"), computed=each)) for name, each in COMPUTED.items()]
    lake.table(pa.schema([*SCHEMA, *fields]), row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10, 20):
            table.add(with_computed(rows(start, start + 10)))
    return lake


@pytest.fixture
def table(lake: Lake) -> Iterator[Table]:
    """The table of `lake`, open."""
    with connect(lake.root, trusted_functions=TRUSTED) as connection:
        yield connection.open_table("flights")
