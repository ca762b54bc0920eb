"""Instants that are written with an offset or a zone mean themselves, whatever zone the column has."""

import pytest

from deployer.errors import InvalidInput
from deployer.tables.read.zoned_literals import with_instants

AT_18_UTC = "t >= arrow_cast(1372960800000000, 'Timestamp(Microsecond, Some(\"UTC\"))')"


@pytest.mark.parametrize(
    "sql",
    [
        "t >= TIMESTAMP '2013-07-04T18:00:00Z'",
        "t >= timestamp'2013-07-04 18:00:00+00:00'",
        "t >= TIMESTAMP '2013-07-04 14:00 -0400'",
        "t >= TIMESTAMPTZ '2013-07-04 23:30:00+05:30'",
        "t >= timestamp with time zone '2013-07-04 20:00:00+02'",
        "t >= CAST('2013-07-04T18:00:00.000Z' AS TIMESTAMP)",
        "t >= '2013-07-04T14:00:00-04' :: timestamp",
        "t >= to_timestamp('2013-07-04T14:00:00-04:00')",
        "t >= TIMESTAMP '2013-07-04 20:00:00' AT TIME ZONE 'Europe/Berlin'",
        "t >= '2013-07-04 14:00:00'::timestamp at time zone 'America/New_York'",
    ],
)
def test_an_instant_is_written_as_a_value(sql: str) -> None:
    assert with_instants(sql) == AT_18_UTC


@pytest.mark.parametrize(
    "sql",
    [
        "t >= TIMESTAMP '2013-07-04T18:00:00'",
        "t >= TIMESTAMP '2013-07-04'",
        "t >= '2013-07-04T18:00:00Z'",
        "text = 'timestamp 18:00:00Z'",
        "text = 'timestamp ''2013-07-04T18:00:00Z'''",
        "d >= DATE '2013-07-04'",
        "t > 1 -- timestamp '2013-07-04T18:00:00Z'",
        "to_timestamp('2013-07-04T18:00:00') < \"timestamp '2013-07-04T18:00:00Z'\"",
        "TIMESTAMP '2013-07-04T18:00:00Z' AT TIME ZONE 'Europe/Berlin' = t",
    ],
)
def test_all_else_stays(sql: str) -> None:
    assert with_instants(sql) == sql


def test_fractions_keep_their_digits() -> None:
    assert "arrow_cast(-1, 'Timestamp(Microsecond" in with_instants("TIMESTAMP '1969-12-31T23:59:59.999999Z'")
    assert "arrow_cast(1, 'Timestamp(Nanosecond" in with_instants("TIMESTAMP '1970-01-01T00:00:00.000000001Z'")


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("TIMESTAMP '2013-13-04T18:00:00Z'", "month must be in"),
        ("TIMESTAMP '2013-07-04T18:00:00+24:00'", "is not an offset"),
        ("TIMESTAMP '2024-03-31 02:30:00' AT TIME ZONE 'Europe/Berlin'", "doesn't exist"),
        ("TIMESTAMP '2024-10-27 02:30:00' AT TIME ZONE 'Europe/Berlin'", "ambiguous"),
        ("TIMESTAMP '2024-10-27 02:30:00' AT TIME ZONE 'Mars/Base'", "Mars/Base"),
        ("TIMESTAMP '2500-10-27 02:30:00.000000001Z'", "between the years"),
    ],
)
def test_what_is_no_instant_is_refused(sql: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        with_instants(sql)
