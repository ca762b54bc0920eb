"""Numbers are loaded with their own value or refused, whatever type and form the files have them in."""

from __future__ import annotations

import random
from collections.abc import Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deployer.errors import Refused
from deployer.specs.types.types import format_type
from deployer.tables.conversion.casts import lossless
from deployer.tables.conversion.text_values import parsed
from deployer.tables.importing.infer import infer
from deployer.tables.ingest.files.model import ReadOptions
from tests.tables.ingest.test_ingest import ENGINES, engine
from tests.tables.lakes import Lake

__all__ = ["engine"]

MONEY = pa.decimal128(10, 2)


def fitting(values: Any, target: pa.DataType) -> list[Any]:
    """The values that fit, of an Array of numbers or text."""
    found, misfits = parsed(values, target) if pa.types.is_string(values.type) else lossless(values, target)
    bad = np.zeros(len(values), np.bool_) if misfits is None else misfits
    return [value for value, failed in zip(found.to_pylist(), bad, strict=True) if not failed]


def decimals(*texts: str) -> list[Decimal]:
    return [Decimal(text) for text in texts]


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_a_float_is_its_nearest_decimal(kind: pa.DataType, engine: Any, lake: Lake) -> None:
    lake.table(pa.schema([pa.field("amount", MONEY)]), ())
    prices = [10.95, 10.6, 0.1, 19.08, -0.29, 0.0, None]
    lake.ingest(lake.file(pa.table({"amount": pa.array(prices, kind)})), engine=engine)
    expected = [*decimals("10.95", "10.60", "0.10", "19.08", "-0.29", "0.00"), None]
    assert lake.open().scan().to_table()["amount"].to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (pa.array([10.955, 10.95, float("nan"), float("inf"), 1e8, -1e8]), MONEY, decimals("10.95")),
        (pa.array([99_999_999.99, 99_999_999.995]), MONEY, decimals("99999999.99")),
        (pa.array([10.95, 0.1], pa.float16()), MONEY, decimals("10.95", "0.10")),
        (pa.array([12345678901234.57]), pa.decimal128(18, 2), decimals("12345678901234.57")),
        (pa.array([2.0**70, 0.1]), pa.decimal256(60, 30), decimals("1180591620717411303424", "0.1")),
        (pa.array([33554432.0, 123456.7], pa.float32()), MONEY, decimals("33554432.00", "123456.70")),
        (pa.array([0.1 + 0.2]), MONEY, []),
        (pa.array([6.0, 6.5, float("nan"), float("inf"), 2.0**31, -0.0]), pa.int32(), [6, 0]),
        (pa.array([6.0, 6.5], pa.float16()), pa.int8(), [6]),
        (pa.array(decimals("6.00", "6.50")), pa.int8(), [6]),
        (pa.array([4, 0]), pa.decimal128(38, 38), decimals("0")),
        (pa.array([401_636_636]), pa.decimal128(38, 32), []),
        (pa.array(decimals("4857187133923115800428870358", "1")), pa.decimal128(38, 25), decimals("1")),
        (pa.array(["9" * 200, "1" + "0" * 128, "9" * 38, "1"]), MONEY, decimals("1.00")),
        (pa.array(["4", "0", "0." + "1" * 38]), pa.decimal128(38, 38), decimals("0", "0." + "1" * 38)),
        (pa.array(["1.50" + "0" * 100, "0" * 100 + "2", "1e3", "15e-1"]), MONEY, decimals("1.5", "2", "1000", "1.5")),
        (pa.array(["1e40", "1e400", "1e9999999", "1e-40", "1_000", "1,000", "٣", "inf"]), MONEY, []),
        (pa.array(["6.0", "6.", "6.5", "1e3", "1e-3", "9" * 200, "-7.000", "+5.0"]), pa.int64(), [6, 6, 1000, -7, 5]),
        (pa.array(["9223372036854775807.0", "9223372036854775808.0"]), pa.int64(), [2**63 - 1]),
        (pa.array(["127.0", "128.0"]), pa.int8(), [127]),
        (pa.array(["1e400", "-1e400", "9" * 400, "1e308"]), pa.float64(), [1e308]),
        (pa.array(["1e39", "1.5", "inf"]), pa.float32(), [1.5, float("inf")]),
        (pa.array(["70000", "1.5"]), pa.float16(), [1.5]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_which_numbers_fit(values: Any, target: pa.DataType, expected: Sequence[Any]) -> None:
    assert fitting(values, target) == expected


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(("precision", "scale"), [(10, 2), (38, 2), (38, 38), (20, 0), (76, 40)])
def test_random_text_is_the_same_decimal_or_refused(precision: int, scale: int) -> None:
    dice = random.Random(precision * scale)  # noqa: S311 (not a secret)
    kind = pa.decimal128 if precision <= 38 else pa.decimal256

    def text() -> str:
        digits = str(dice.randrange(10 ** dice.choice([1, 8, 37, 39, 128, 200])))
        fraction = dice.choice(["", f".{dice.randrange(1000)}", "." + "0" * 50])
        return digits + fraction + dice.choice(["", "", f"e{dice.randint(-60, 60)}"])

    texts = [text() for _ in range(2_000)]
    found, misfits = parsed(pa.array(texts), kind(precision, scale))
    bad = misfits if misfits is not None else np.zeros(len(texts), np.bool_)
    with localcontext(prec=500):
        for source, value, failed in zip(texts, found.to_pylist(), bad, strict=True):
            exact = Decimal(source)
            fits = abs(exact) < Decimal(10) ** (precision - scale) and (exact.scaleb(scale) % 1) == 0
            assert (not failed) == fits, source
            assert failed or value == exact, source


@pytest.mark.parametrize("number", ["9" * 200, "1" + "0" * 128])
@pytest.mark.parametrize(("name", "text"), [("a.csv", "id,amount\n1,{}\n"), ("a.jsonl", '{{"id": 1, "amount": {}}}\n')])
def test_a_number_of_any_length_that_does_not_fit_is_refused(name: str, text: str, number: str, lake: Lake) -> None:
    lake.table(pa.schema([pa.field("id", pa.int64()), pa.field("amount", MONEY)]), ())
    with pytest.raises(Refused, match=r"row 1: column 'amount' .* does not fit decimal128\(10, 2\)"):
        lake.ingest(lake.text(name, text.format(number)))


def test_floats_stay_floats_where_types_are_inferred(lake: Lake) -> None:
    path = lake.text("a.csv", "a,b\n6.0,6\n7.0,7\n")
    columns = infer([str(path)], None, ReadOptions()).columns
    assert [format_type(column.type) for column in columns] == ["float64", "int64"]
