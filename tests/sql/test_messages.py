"""What DataFusion and Lance say about SQL, without the inner forms of expressions."""

from __future__ import annotations

from pathlib import Path

import datafusion
import lance
import pyarrow as pa
import pytest

from deployer.platform.sql.messages import in_plain_words


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("sum(x) > 3", "sum is a function of many rows, but the value may depend on one row only"),
        ("x > 'abc'", "the value 'abc' cannot be converted to Float64"),
        ("name LIKE 5", "There isn't a common type to coerce Utf8 and Int64 in LIKE expression"),
    ],
)
def test_messages_of_lance(condition: str, said: str, tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"x": [1.5], "name": ["a"]}), str(tmp_path / "rows.lance"))
    with pytest.raises(Exception, match=r".+") as caught:
        dataset.count_rows(condition)
    assert said in in_plain_words(str(caught.value).splitlines()[0])


@pytest.mark.parametrize("expression", ["max(x)", "avg(x) + 1"])
def test_messages_of_datafusion(expression: str) -> None:
    frame = datafusion.SessionContext().from_arrow(pa.table({"x": [1.5]}))
    with pytest.raises(Exception, match=r".+") as caught:
        frame.select(frame.parse_sql_expr(expression).alias("v")).to_arrow_table()
    assert "of many rows, but the value may depend on one row only" in in_plain_words(str(caught.value))


def test_other_messages_are_as_they_are() -> None:
    assert in_plain_words("No field named y") == "No field named y"
