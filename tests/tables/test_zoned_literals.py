import pytest

from deployer.errors import InvalidInput
from deployer.tables.zoned_literals import refuse_zoned_literals


@pytest.mark.parametrize(
    "sql",
    [
        "t >= TIMESTAMP '2013-07-04T18:00:00Z'",
        "t >= timestamp'2013-07-04 18:00:00+00:00'",
        "t >= TIMESTAMP '2013-07-04 18:00 -0400'",
        "t >= CAST('2013-07-04T18:00:00.5Z' AS TIMESTAMP)",
        "t >= '2013-07-04T18:00:00-04' :: timestamp",
    ],
)
def test_an_offset_that_would_be_dropped_is_refused(sql: str) -> None:
    with pytest.raises(InvalidInput, match="would be dropped"):
        refuse_zoned_literals(sql, "")


@pytest.mark.parametrize(
    "sql",
    [
        "t >= TIMESTAMP '2013-07-04T18:00:00'",
        "t >= TIMESTAMP '2013-07-04'",
        "t >= '2013-07-04T18:00:00Z'",
        "text = 'timestamp 18:00:00Z'",
        "d >= DATE '2013-07-04'",
    ],
)
def test_what_means_what_it_says_is_let_through(sql: str) -> None:
    refuse_zoned_literals(sql, "")
