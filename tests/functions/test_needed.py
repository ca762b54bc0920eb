"""What a function needs where it runs is found before it is called: modules, and what other processes get of it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from deployer.errors import InvalidFunction
from deployer.functions import udf
from deployer.functions.model import UDF
from deployer.functions.packages.needed import require_modules, require_portable


def far(value: float) -> float:
    from polars_of_no_one import distance  # type: ignore[import-not-found]

    return float(distance(value))


def of_its_own() -> UDF:
    return udf(far)


def of_what_it_calls() -> UDF:
    @udf
    def calling(value: float) -> float:
        return far(value) + 1

    return calling


def of_another_udf() -> UDF:
    other = udf(far)

    @udf
    def calling(value: float) -> float:
        return float(other(value))

    return calling


def of_a_wrapped_one() -> UDF:
    @udf
    @functools.wraps(far)
    def wrapped(value: float) -> float:
        return far(value)

    return wrapped


def of_a_class() -> UDF:
    class Base:
        def setup(self) -> None:
            self.far = self._loaded()

        @staticmethod
        def _loaded() -> Callable[[float], float]:
            import polars_of_no_one

            found: Callable[[float], float] = polars_of_no_one.distance
            return found

    class Model(Base):
        def __call__(self, value: float) -> float:
            return self.far(value)

    return udf(Model)


def of_an_async_function() -> UDF:
    @udf
    async def waiting(value: float) -> float:
        import polars_of_no_one

        return float(await polars_of_no_one.distance(value))

    return waiting


MISSING: list[Callable[[], UDF]] = [
    of_its_own, of_what_it_calls, of_another_udf, of_a_wrapped_one, of_a_class, of_an_async_function,
]  # fmt: skip


@pytest.mark.parametrize("make", MISSING)
def test_a_module_that_is_not_there_is_named(make: Callable[[], UDF]) -> None:
    function = make()
    with pytest.raises(InvalidFunction, match="imports polars_of_no_one, which this Python does not find") as raised:
        require_modules(function)
    assert raised.value.where == f"function `{function.name}`" and "install the package" in raised.value.remedy


def test_what_is_there_and_what_may_be_missing_is_allowed() -> None:
    @udf
    def careful(value: float) -> float:
        import decimal

        import pyarrow as pa

        try:
            import polars_of_no_one
        except ImportError:
            return float(decimal.Decimal(value)) + float(pa.scalar(1).as_py())
        return float(polars_of_no_one.distance(value))

    require_modules(careful)
    assert careful(2.0) == 3.0


@pytest.mark.parametrize(
    ("settings", "engine", "goes_along"),
    [
        pytest.param({}, "driver", False, id="in a thread of the job"),
        pytest.param({"timeout": 60}, "driver", True, id="in a process of its own"),
        pytest.param({}, "spark", True, id="in tasks of Spark"),
    ],
)
def test_what_cannot_be_carried_is_named_where_it_has_to_be(
    settings: dict[str, Any], engine: str, goes_along: bool
) -> None:
    lock = threading.Lock()

    @udf(**settings)
    def locked(value: float) -> float:
        with lock:
            return value

    if not goes_along:
        require_portable(locked, engine)
        return
    with pytest.raises(InvalidFunction, match=r"`lock`, which `.*locked` keeps cannot be carried") as raised:
        require_portable(locked, engine)
    assert "in the `setup` of a class" in raised.value.remedy
