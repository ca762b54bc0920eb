"""Functions are carried with their code, and have a version of what they compute."""

from __future__ import annotations

import pickle
from typing import NamedTuple

import pyarrow as pa
import pytest

from deployer.functions import UDF, Caller, Columns, udf


class Size(NamedTuple):
    height: int
    width: float | None


@udf
def doubled(a: int) -> int:
    return 2 * a


@udf
def factorial(n: int) -> int:
    return 1 if n < 2 else n * factorial(n - 1)


class Scale:
    def __init__(self, by: int = 10) -> None:
        self.by = by

    def __call__(self, a: int) -> Columns[Size]:
        return Size(a * self.by, None)


Scaled = udf(Scale)
ROWS = pa.RecordBatch.from_pydict({"a": [1, 2, 5]})


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        pytest.param(doubled, {"doubled": [2, 4, 10]}, id="function"),
        pytest.param(factorial, {"factorial": [1, 2, 120]}, id="one that calls itself"),
        pytest.param(Scaled, {"height": [10, 20, 50], "width": [None] * 3}, id="class"),
        pytest.param(Scaled(by=3), {"height": [3, 6, 15], "width": [None] * 3}, id="class with arguments"),
    ],
)
def test_it_is_carried_by_pickle(function: UDF, wanted: dict[str, list[int | None]]) -> None:
    carried = pickle.loads(pickle.dumps(function))  # noqa: S301
    assert (carried.name, carried.version, carried.outputs) == (function.name, function.version, function.outputs)
    for each in (function, carried):
        with Caller(each, ["a"]) as caller:
            assert caller(ROWS).values.to_pydict() == wanted


def test_it_can_be_called_as_before() -> None:
    assert doubled(4) == 8
    assert factorial(5) == 120
    assert Scaled(by=2)(4) == Size(8, None)


def test_its_version_is_that_of_its_code_and_not_of_its_settings() -> None:
    def first(a: int) -> int:
        return a + 1

    def kept(by: int) -> UDF:
        return udf(data_type="int64")(lambda a: a + by)

    assert udf(first).version == udf(batch_size=5)(first).version != doubled.version
    assert kept(1).version == kept(1).version != kept(2).version
    assert Scaled.version == Scaled().version != Scaled(2).version == Scaled(2).version != Scaled(3).version
    assert udf(version="7")(first).version == "7"
