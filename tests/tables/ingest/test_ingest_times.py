"""Dates and times that text writes in other forms than ISO 8601, and remarks on values that do not fit."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.tables.ingest.files.model import ReadOptions
from deployer.tables.ingest.rows.time_texts import date_format
from tests.tables.lakes import Lake

ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.date32()),
        pa.field("local", pa.timestamp("s")),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("amount", pa.decimal128(10, 2)),
    ]
)


@pytest.fixture
def engine(request: Any) -> Any:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


def options(*formats: str, timezone: str | None = None) -> ReadOptions:
    return ReadOptions(date_formats=tuple(map(date_format, formats)), timezone=timezone)


def utc(lake: Lake) -> list[str | None]:
    times = lake.open().scan().to_table().sort_by("id")["at"].to_pylist()
    return [time and time.isoformat() for time in times]


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_formats_of_all_columns_and_of_one(form: str, engine: Any, lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    csv = "id,day,local\n1, 31.12.2012,12/31/2012 5:06 PM\n2,2012-12-30,\n3,1.2.2012 00:00,1/2/2012 12:00 AM\n"
    json = (
        '{"id": 1, "day": "31.12.2012", "local": "12/31/2012 5:06 PM"}\n{"id": 2, "day": "2012-12-30"}\n'
        '{"id": 3, "day": "1.2.2012", "local": "1/2/2012 12:00 AM"}\n'
    )
    path = lake.text(f"a.{form}", csv.replace(" 00:00", "") if form == "csv" else json)
    lake.ingest(path, engine=engine, options=options("%d.%m.%Y", "local=%m/%d/%Y %I:%M %p"), missing_as_null=True)
    rows = lake.open().scan().to_table().sort_by("id").to_pydict()
    assert rows["day"] == [date(2012, 12, 31), date(2012, 12, 30), date(2012, 2, 1)]
    assert rows["local"] == [datetime(2012, 12, 31, 17, 6), None, datetime(2012, 1, 2)]  # noqa: DTZ001


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_local_times_get_the_offset_of_their_time_zone(engine: Any, lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    path = lake.text(
        "a.csv",
        "id,at\n1,2024-01-02 03:04:05\n2,2024-07-02T03:04:05.25\n3,2024-07-02T03:04:05Z\n4,\n5,2024-07-02\n"
        "6,2024-07-02 03:04:05-0400\n",
    )
    lake.ingest(path, engine=engine, options=options(timezone="Europe/Berlin"), missing_as_null=True)
    assert utc(lake) == [
        "2024-01-02T02:04:05+00:00",
        "2024-07-02T01:04:05.250000+00:00",
        "2024-07-02T03:04:05+00:00",
        None,
        "2024-07-01T22:00:00+00:00",
        "2024-07-02T07:04:05+00:00",
    ]


def test_a_format_and_a_time_zone_together(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    path = lake.text("a.csv", "id,at\n1,31.12.2012 13:00\n")
    lake.ingest(path, options=options("at=%d.%m.%Y %H:%M", timezone="Europe/Berlin"), missing_as_null=True)
    assert utc(lake) == ["2012-12-31T12:00:00+00:00"]


@pytest.mark.parametrize(
    ("row", "given", "says"),
    [
        pytest.param(",,2024-01-02 03:04:05,", options(), "its offset is missing; if it is local time", id="offset"),
        pytest.param(
            ",,2024-10-27 02:30:00,",
            options(timezone="Europe/Berlin"),
            "clocks in Europe/Berlin change then",
            id="twice",
        ),
        pytest.param(
            ",,2024-03-31 02:30:00,", options(timezone="Europe/Berlin"), "clocks in Europe/Berlin", id="skipped"
        ),
        pytest.param(
            ',,,"1,234.5"', options(), "'1,234.5' does not fit decimal128(10, 2): it has a thousands", id="1,2"
        ),
        pytest.param(',,,"1,5"', options(), "'1,5' does not fit decimal128(10, 2)", id="decimal-comma"),
        pytest.param("31.02.2012,,,", options("%d.%m.%Y"), "'31.02.2012' does not fit date32", id="no-such-day"),
        pytest.param("31.01.2012 10:00,,,", options("day=%d.%m.%Y %H:%M"), "does not fit date32", id="time-of-a-date"),
    ],
)
def test_remarks_on_values_that_do_not_fit(row: str, given: ReadOptions, says: str, lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    with pytest.raises(Refused) as raised:
        lake.ingest(lake.text("a.csv", f"id,day,local,at,amount\n1,{row}\n"), options=given)
    assert says in str(raised.value)
    assert ("thousands" in str(raised.value)) == ("thousands" in says)


@pytest.mark.parametrize(
    ("formats", "timezone", "says"),
    [
        pytest.param(("id=%d.%m.%Y",), None, "for column 'id', which is int64", id="number"),
        pytest.param(("dy=%d.%m.%Y",), None, "for column 'dy', which the table does not have", id="no-column"),
        pytest.param(("%d.%m.%Y", "%d/%m/%Y"), None, "given twice for all columns", id="two"),
        pytest.param((), "Europe/Berln", "unknown --timezone 'Europe/Berln'", id="zone"),
    ],
)
def test_options_that_do_not_fit_the_table(formats: tuple[str, ...], timezone: str, says: str, lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    with pytest.raises(InvalidInput) as raised:
        lake.ingest(lake.text("a.csv", "id\n1\n"), options=options(*formats, timezone=timezone))
    assert says in str(raised.value)


@pytest.mark.parametrize("text", ["%H:%M", "%d.%m", "YYYY-MM-DD", "%Q", "", "at=", "%"])
def test_formats_without_a_date(text: str) -> None:
    with pytest.raises(InvalidInput, match="no year, month and day"):
        date_format(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("%d.%m.%Y", (None, "%d.%m.%Y"), id="all"),
        pytest.param("Order Date=%d.%m.%Y", ("Order Date", "%d.%m.%Y"), id="space"),
        pytest.param("50%=%d.%m.%Y", ("50%", "%d.%m.%Y"), id="percent"),
        pytest.param("a=b=%d.%m.%Y", ("a=b", "%d.%m.%Y"), id="equals"),
        pytest.param("%Y=%m=%d", (None, "%Y=%m=%d"), id="equals-in-the-format"),
        pytest.param("day=%Y=%m=%d", ("day", "%Y=%m=%d"), id="equals-in-both"),
    ],
)
def test_the_column_of_a_format(text: str, found: tuple[str | None, str]) -> None:
    assert date_format(text) == found
