"""Functions of every form compute what pandas does; what fails is skipped, repeated or ends the work as declared."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deployer.errors import FunctionFailed, InvalidFunction
from deployer.functions import (
    UDF,
    Caller,
    Columns,
    Computed,
    ErrorPolicy,
    Fail,
    Retry,
    Skip,
    fail,
    retry,
    skip,
    stop_above,
    udf,
)
from deployer.functions.calls.failures import LONGEST_MESSAGE, LONGEST_TRACEBACK, MOST_TRACEBACKS
from deployer.functions.calls.results import joined
from deployer.functions.values.plain import WrongValue
from deployer.platform.system.clock import Clock
from deployer.platform.text import masking
from tests.functions.in_processes import Recorded, endless_array, hanging_array, process_of, troubled
from tests.projects import REPOSITORY

FLIGHTS = pd.DataFrame(
    {
        "distance": pd.array([1400, 1416, None, 1576, 762, 719], "Int64"),
        "air_time": pd.array([227, 227, 160, None, 116, 150], "Int64"),
        "carrier": ["UA", "UA", None, "B6", "DL", ""],
    }
)
BATCH = pa.RecordBatch.from_pandas(FLIGHTS)
SPEED = (FLIGHTS.distance / FLIGHTS.air_time * 60).astype("Float64")


class Leg(NamedTuple):
    speed: float | None
    label: str | None


@udf
def scalar(distance: int | None, air_time: int | None) -> float | None:
    return None if distance is None or air_time is None else distance / air_time * 60


@udf(data_type=pa.float64())
def arrow(distance: pa.Array, air_time: pa.Array) -> pa.Array:
    return pc.multiply(pc.divide(pc.cast(distance, pa.float64()), air_time), 60)


@udf(data_type=pa.float64(), batch_size=4)
def batch(rows: pa.RecordBatch) -> pa.Array:
    return pc.multiply(pc.divide(pc.cast(rows["distance"], pa.float64()), rows["air_time"]), 60)


@udf(data_type=pa.float64())
def of_pandas(distance: pa.Array, air_time: pa.Array) -> pa.Array:
    return distance.to_pandas().astype("float64") / air_time.to_pandas() * 60


@udf(data_type=pa.float64())
def of_numpy(distance: pa.Array, air_time: pa.Array) -> pa.Array:
    values = [a / b * 60 if a and b else None for a, b in zip(distance.to_pylist(), air_time.to_pylist(), strict=True)]
    return np.array(values, dtype=object)


@udf
async def waiting(distance: int | None, air_time: int | None) -> float | None:
    await asyncio.sleep(0)
    return None if distance is None or air_time is None else distance / air_time * 60


@udf(timeout="60s")
def in_a_process(distance: int | None, air_time: int | None) -> float | None:
    return None if distance is None or air_time is None else distance / air_time * 60


@udf(data_type=pa.float64(), timeout=60)
def arrow_in_a_process(distance: pa.Array, air_time: pa.Array) -> pa.Array:
    return pc.multiply(pc.divide(pc.cast(distance, pa.float64()), air_time), 60)


class PerHour:
    def __init__(self, minutes: int = 60) -> None:
        self.minutes = minutes

    def setup(self) -> None:
        self.ready = True

    def __call__(self, distance: int | None, air_time: int | None) -> float | None:
        assert self.ready
        return None if distance is None or air_time is None else distance / air_time * self.minutes


class PerHourLater(PerHour):
    async def __call__(self, distance: int | None, air_time: int | None) -> float | None:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().__call__(distance, air_time)


@pytest.mark.parametrize(
    "function",
    [
        *(scalar, arrow, batch, of_pandas, of_numpy, waiting, in_a_process, arrow_in_a_process),
        *(udf(PerHour), udf(PerHour)(60), udf(PerHour()), udf(PerHourLater)),
    ],
    ids=lambda function: function.name,
)
@pytest.mark.parametrize("rows", [6, 1, 0])
def test_every_form_computes_what_pandas_does(function: UDF, rows: int) -> None:
    inputs = BATCH.schema.names if function.form == "batch" else ["distance", "air_time"]
    with Caller(function, inputs) as caller:
        for _ in range(2):
            found = caller(BATCH.slice(0, rows))
            assert found.values.schema == pa.schema([(function.name, pa.float64())])
            wanted = SPEED[:rows].to_numpy(dtype="float64", na_value=np.nan)
            assert found.values.column(0).to_pandas().to_numpy(dtype="float64") == pytest.approx(wanted, nan_ok=True)
            assert found.values.column(0).null_count == int(SPEED[:rows].isna().sum())
            assert not found.failures


def leg_of(distance: int | None, carrier: str | None) -> Columns[Leg]:
    return Leg(None if distance is None else distance / 2, carrier)


def legs_of(distance: pa.Array, carrier: pa.Array) -> Columns[Leg]:
    return pa.table({"label": carrier, "speed": pc.divide(pc.cast(distance, pa.float64()), 2)})  # type: ignore[no-any-return]


def structs_of(rows: pa.RecordBatch) -> Columns[Leg]:
    speed = pc.divide(pc.cast(rows["distance"], pa.float64()), 2)
    return pa.StructArray.from_arrays([speed, rows["carrier"]], names=["speed", "label"])  # type: ignore[no-any-return]


@pytest.mark.parametrize("function", [leg_of, legs_of, structs_of])
def test_several_columns_are_those_of_pandas(function: Callable[..., Any]) -> None:
    found = Caller(udf(function), ["distance", "carrier"])(BATCH).values
    assert found.schema == pa.schema([("speed", pa.float64()), ("label", pa.string())])
    wanted = [None if each is pd.NA else each / 2 for each in FLIGHTS.distance]
    assert found.to_pydict() == {"speed": wanted, "label": FLIGHTS.carrier.tolist()}


# --- null


def test_a_function_of_values_gets_none_for_null() -> None:
    seen: list[Any] = []
    Caller(udf(data_type="null")(lambda carrier: seen.append(carrier)), ["carrier"])(BATCH)
    assert seen == FLIGHTS.carrier.tolist()


@pytest.mark.parametrize("function", [leg_of, scalar.function, arrow.function])
def test_null_is_a_failure_where_it_is_not_allowed(function: Callable[..., Any]) -> None:
    data_type = None if function is leg_of else "float64"
    inputs = ["distance", "carrier"] if function is leg_of else ["distance", "air_time"]
    strict = udf(data_type=data_type, nullable=False, on_error=skip(TypeError))(function)
    found = Caller(strict, inputs)(BATCH)
    assert [each.row for each in found.failures] == ([2] if function is leg_of else [2, 3])
    assert {each.error_type for each in found.failures} == {"NullValue"}
    with pytest.raises(FunctionFailed, match="row 2 of the batch: NullValue: it returned null"):
        Caller(udf(data_type=data_type, nullable=False)(function), inputs)(BATCH)


# --- results of functions of arrays


@pytest.mark.parametrize(
    ("result", "message"),
    [
        pytest.param(lambda a: a.slice(1), "it returned 5 values for 6 rows", id="length"),
        pytest.param(lambda a: pa.array(["x"] * len(a)), "values of string, not of int16", id="type"),
        pytest.param(lambda a: pa.array([1.0] * len(a)), "values of double, not of int16", id="floats"),
        pytest.param(lambda a: pc.add(a, 40000), "does not fit int16", id="too large"),
        pytest.param(lambda a: None, "it returned NoneType", id="None"),
        pytest.param(lambda a: a.to_pylist(), "it returned list", id="list"),
        pytest.param(lambda a: a[0], "it returned Int64Scalar", id="one value"),
    ],
)
def test_a_wrong_array_ends_the_work(result: Callable[[Any], Any], message: str) -> None:
    def returned(distance: pa.Array) -> pa.Array:
        return result(distance)

    with pytest.raises(FunctionFailed, match=message) as caught:
        Caller(udf(data_type="int16", on_error=skip())(returned), ["distance"])(BATCH)
    assert caught.value.row == -1


def test_arrays_of_a_near_type_are_fitted() -> None:
    for kind, made in [("int16", pa.int64()), ("large_string", pa.string()), ("float32", pa.float64())]:
        values = pa.array(["a", None] if kind == "large_string" else [1, None], made)

        def returned(a: pa.Array, values: pa.Array = values) -> pa.Array:
            return values

        found = Caller(udf(data_type=kind)(lambda a: None), ["a"])  # a caller may be made and never used
        found.close()
        function = udf(data_type=kind, input_columns=["a", "a"])(returned)
        rows = pa.RecordBatch.from_arrays([values], names=["a"])
        assert Caller(function, ["a", "a"])(rows).values.column(0).to_pylist() == values.to_pylist()
    with pytest.raises(FunctionFailed, match="too large for float32"):
        Caller(udf(data_type="float32")(huge), ["a"])(rows)


def huge(a: pa.Array) -> pa.Array:
    return pa.array([1e300] * len(a))


# --- error policies


class Counted:
    """A function that fails for some rows, and counts its calls by row; `until` says how many of them fail."""

    def __init__(self, failing: dict[int, Exception], until: int = 1000) -> None:
        self.failing, self.until, self.calls = failing, until, dict[int, int]()

    def __call__(self, i: int) -> int:
        self.calls[i] = self.calls.get(i, 0) + 1
        if i in self.failing and self.calls[i] <= self.until:
            raise type(self.failing[i])(*self.failing[i].args)
        return i * 10


NUMBERS = pa.RecordBatch.from_pydict({"i": list(range(8))})
FAILING = {2: ValueError("two"), 5: ConnectionError("503 busy"), 6: KeyError("six")}


def paused(pauses: list[float]) -> Clock:
    return Clock(sleep=pauses.append, uniform=lambda low, high: high)


def computed(counted: Counted, on_error: Any, pauses: list[float] | None = None) -> Computed:
    return Caller(udf(on_error=on_error)(counted), ["i"], clock=paused([] if pauses is None else pauses))(NUMBERS)


@pytest.mark.parametrize(
    ("on_error", "failures", "calls"),
    [
        pytest.param(skip(), {2: 1, 5: 1, 6: 1}, 11 - 3, id="skip"),
        pytest.param([Retry(OSError, attempts=4), Skip()], {2: 1, 5: 4, 6: 1}, 11, id="retry some, skip all"),
        pytest.param(retry(attempts=3, then=Skip()), {2: 3, 5: 3, 6: 3}, 14, id="retry all, then skip"),
        pytest.param([Skip(match="two|six"), Retry(OSError), Skip(OSError)], {2: 1, 5: 3, 6: 1}, 10, id="by message"),
        pytest.param([Skip(LookupError, ValueError, OSError), Fail()], {2: 1, 5: 1, 6: 1}, 8, id="by base class"),
        pytest.param(stop_above(0.1), {2: 1, 5: 1, 6: 1}, 8, id="a share of too few rows"),
        pytest.param(stop_above(0.4, after_rows=8), {2: 1, 5: 1, 6: 1}, 8, id="below the share"),
    ],
)
def test_failed_rows_are_null_and_recorded(on_error: Any, failures: dict[int, int], calls: int) -> None:
    counted = Counted(FAILING)
    found = computed(counted, on_error)
    assert {each.row: each.attempts for each in found.failures} == failures
    assert found.values.column(0).to_pylist() == [None if i in failures else i * 10 for i in range(8)]
    assert sum(counted.calls.values()) == calls
    assert [(each.error_type, each.message) for each in found.failures] == [
        ("ValueError", "two"),
        ("ConnectionError", "503 busy"),
        ("KeyError", "'six'"),
    ]
    assert all(
        "in __call__" in each.traceback and "deployer/functions" not in each.traceback for each in found.failures
    )


@pytest.mark.parametrize(
    ("on_error", "row", "calls"),
    [
        pytest.param(fail(), 2, 3, id="fail"),
        pytest.param([Skip(ValueError), Fail()], 5, 6, id="the first that is not skipped"),
        pytest.param([Skip(ValueError), Retry(OSError, attempts=3)], 5, 8, id="after retries"),
        pytest.param([Fail(match="six"), Skip()], 6, 7, id="by message"),
        pytest.param(stop_above(0.3, after_rows=8), -1, 8, id="above the share"),
    ],
)
def test_the_work_ends_where_the_policy_says(on_error: Any, row: int, calls: int) -> None:
    counted = Counted(FAILING)
    with pytest.raises(FunctionFailed, match="function `Counted`: ") as caught:
        computed(counted, on_error)
    assert caught.value.row == row
    assert sum(counted.calls.values()) == calls


def test_retries_pause_longer_each_time() -> None:
    pauses: list[float] = []
    counted = Counted({3: ConnectionError("busy")}, until=4)
    found = computed(counted, retry(OSError, attempts=9, first_pause=0.5, longest_pause=1.5), pauses)
    assert (found.values.column(0).to_pylist()[3], found.failures) == (30, ())
    assert pauses == [0.5, 1.0, 1.5, 1.5]
    assert counted.calls == {i: 5 if i == 3 else 1 for i in range(8)}


def test_a_share_is_that_of_all_batches() -> None:
    caller = Caller(udf(on_error=stop_above(0.2, after_rows=20))(Counted({0: ValueError(), 1: ValueError()})), ["i"])
    caller(NUMBERS)
    caller(NUMBERS)
    with pytest.raises(FunctionFailed, match=r"6 of 24 rows failed, more than 20%"):
        caller(NUMBERS)


@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration()])
def test_an_exception_that_ends_iterations_is_one_of_its_row(error: Exception) -> None:
    counted = Counted({3: error})
    found = computed(counted, skip())
    assert [each.row for each in found.failures] == [3]
    assert found.values.column(0).to_pylist() == [i * 10 if i != 3 else None for i in range(8)]
    assert counted.calls == dict.fromkeys(range(8), 1)


@pytest.mark.parametrize("rows_of_a_call", [None, 3])
def test_rows_that_fail_are_found_in_arrays(rows_of_a_call: int | None) -> None:
    calls = 0

    @udf(data_type="int64", batch_size=rows_of_a_call, on_error=skip(ValueError))
    def tripled(i: pa.Array) -> pa.Array:
        nonlocal calls
        calls += 1
        if bad := {2, 6} & set(i.to_pylist()):
            raise ValueError(f"bad {sorted(bad)[0]}")
        return pc.multiply(i, 3)

    found = Caller(tripled, ["i"])(NUMBERS)
    assert found.values.column(0).to_pylist() == [0, 3, None, 9, 12, 15, None, 21]
    assert [(each.row, each.message) for each in found.failures] == [(2, "bad 2"), (6, "bad 6")]
    assert calls <= 1 + 2 * 2 * 3
    with pytest.raises(FunctionFailed, match="ValueError: bad 2"):
        Caller(udf(data_type="int64")(tripled.function), ["i"])(NUMBERS)


def test_what_is_kept_of_failures_is_bounded_and_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYER_NEW_PASSPHRASE", "tulips-and-daffodils")

    def leaking(i: int) -> int:
        raise ValueError(f"connect as tulips-and-daffodils \x1b[31m {'x' * 50_000}")

    rows = MOST_TRACEBACKS + 500
    with masking.scope():
        found = Caller(udf(on_error=skip())(leaking), ["i"])(pa.RecordBatch.from_pydict({"i": list(range(rows))}))
    assert len(found.failures) == rows
    for each in (found.failures[0], found.failures[-1]):
        assert each.message.startswith(f"connect as {masking.MASK} ")
        assert "\x1b" not in each.message + each.traceback
        assert len(each.message) <= LONGEST_MESSAGE
        assert "tulips" not in each.traceback
    assert 0 < len(found.failures[0].traceback) <= LONGEST_TRACEBACK
    assert sum(map(bool, (each.traceback for each in found.failures))) == MOST_TRACEBACKS


# --- set-up


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_class_is_set_up_once_per_caller(tmp_path: Path, timeout: float | None) -> None:
    file = tmp_path / "notes"
    model = udf(timeout=timeout)(Recorded)(str(file))
    assert not file.exists()
    for _ in range(2):
        with Caller(model, ["i"]) as caller:
            for _ in range(3):
                assert caller(NUMBERS).values.column(0).to_pylist() == list(range(8))
    assert file.read_text(encoding="utf-8").split() == ["made", "setup", "teardown"] * 2


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_set_up_that_fails_ends_the_work(tmp_path: Path, timeout: float | None) -> None:
    model = udf(timeout=timeout, on_error=skip())(Recorded)(str(tmp_path / "notes"), breaks=True)
    with Caller(model, ["i"]) as caller, pytest.raises(FunctionFailed, match="LookupError: no model") as caught:
        caller(NUMBERS)
    assert "in __init__" in caught.value.traceback


class Untidy:
    def __call__(self, i: int) -> int:
        return i

    def teardown(self) -> None:
        raise OSError("cannot close")


class UntidyLater(Untidy):
    async def __call__(self, i: int) -> int:  # type: ignore[override]
        return i


@pytest.mark.parametrize("function", [Untidy, UntidyLater])
def test_a_teardown_that_fails_is_a_failure_of_the_function(function: type) -> None:
    threads = threading.active_count()
    caller = Caller(udf(function), ["i"])
    caller(NUMBERS)
    with pytest.raises(FunctionFailed, match="OSError: cannot close") as caught:
        caller.close()
    assert "in teardown" in caught.value.traceback
    caller.close()
    assert threading.active_count() == threads


def test_arguments_that_a_class_does_not_take_are_refused() -> None:
    with pytest.raises(InvalidFunction, match=r"does not take these arguments: .*'colour'"):
        udf(Recorded)("file", colour="red")


# --- concurrent calls


def test_async_calls_are_concurrent_up_to_the_bound() -> None:
    running, most = 0, 0

    @udf(max_concurrent_calls=3, on_error=[Retry(KeyError, attempts=2, first_pause=0), Skip()])
    async def counted(i: int) -> int:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0)
        running -= 1
        if i in (2, 5):
            raise KeyError(i) if i == 2 else ValueError(i)
        return i * 10

    found = Caller(counted, ["i"])(NUMBERS)
    assert (most, running) == (3, 0)
    assert found.values.column(0).to_pylist() == [0, 10, None, 30, 40, None, 60, 70]
    assert [(each.row, each.attempts) for each in found.failures] == [(2, 2), (5, 1)]


def test_async_calls_wait_for_each_other() -> None:
    """Each call waits for the next row's: all of them run at the same time, and in a loop of one's own."""
    events: dict[int, asyncio.Event] = {}

    @udf
    async def chained(i: int) -> int:
        events[i] = asyncio.Event()
        if i < 7:
            while i + 1 not in events:
                await asyncio.sleep(0)
        return i

    async def of_a_notebook() -> Computed:
        return Caller(chained, ["i"])(NUMBERS)  # in a thread whose loop runs

    assert asyncio.run(of_a_notebook()).values.column(0).to_pylist() == list(range(8))


def test_an_async_call_that_takes_too_long_is_cancelled() -> None:
    cancelled = threading.Event()

    @udf(timeout=0.2, on_error=skip(TimeoutError))
    async def hanging(i: int) -> int:
        if i == 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
        return i

    with Caller(hanging, ["i"]) as caller:
        found = caller(NUMBERS)
    assert cancelled.is_set()
    assert [(each.row, each.error_type, each.message) for each in found.failures] == [
        (3, "TimeoutError", "the call took longer than 0.2 s")
    ]


def test_the_first_failure_cancels_other_async_calls() -> None:
    before = threading.active_count()

    @udf
    async def failing(i: int) -> int:
        if i == 1:
            raise ValueError("one")
        await asyncio.Event().wait()
        return i

    with Caller(failing, ["i"]) as caller, pytest.raises(FunctionFailed, match="row 1 of the batch: ValueError: one"):
        caller(NUMBERS)
    assert threading.active_count() == before


# --- calls with a timeout


def test_a_call_that_takes_too_long_is_killed_and_the_others_are_made_once(tmp_path: Path) -> None:
    file = tmp_path / "calls"
    rows = NUMBERS.append_column("file", pa.array([str(file)] * 8))
    with Caller(troubled, ["i", "file"]) as caller:
        found = caller(rows)
    assert found.values.column(0).to_pylist() == [0, None, 2, None, 4, None, None, 7]
    assert [(each.row, each.error_type, each.attempts) for each in found.failures] == [
        (1, "TimeoutError", 1),
        (3, "ProcessEnded", 1),
        (5, "KeyError", 2),
        (6, "Unpicklable", 1),
    ]
    assert "in troubled" in found.failures[2].traceback
    assert found.failures[3].message == "six"
    assert sorted(file.read_text(encoding="utf-8").split()) == sorted("012345567")


def test_a_call_for_an_array_that_takes_too_long_is_killed() -> None:
    with Caller(endless_array, ["i"]) as caller:
        found = caller(NUMBERS.slice(5, 1))
    assert found.values.column(0).to_pylist() == [None]
    assert [(each.row, each.error_type) for each in found.failures] == [(0, "TimeoutError")]


@pytest.mark.full
def test_a_call_for_arrays_that_takes_too_long_is_killed() -> None:
    with Caller(hanging_array, ["i"]) as caller:
        found = caller(NUMBERS)
    assert found.values.column(0).to_pylist() == [0, 1, 2, 3, 4, None, 6, 7]
    assert [(each.row, each.error_type) for each in found.failures] == [(5, "TimeoutError")]


def test_no_process_is_left() -> None:
    with Caller(process_of, ["i"]) as caller:
        [pid] = set(caller(NUMBERS).values.column(0).to_pylist())
        assert pid != os.getpid()
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


DRIVER = """
import os, sys
import pyarrow as pa
from deployer.functions import Caller
from tests.projects import REPOSITORY
from tests.functions.in_processes import endless
with Caller(endless, ["i"]) as caller:
    caller(pa.RecordBatch.from_pydict({"i": [0, 1]}))
"""


def test_a_process_ends_with_a_job_that_is_killed(tmp_path: Path) -> None:
    """Also in the middle of a call."""
    noted = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NOTED": str(noted)}
    with subprocess.Popen([sys.executable, "-c", DRIVER], env=environment) as driver:
        wait_until(lambda: noted.exists() and noted.read_text(encoding="utf-8") != "")
        driver.kill()
    pid = int(noted.read_text(encoding="utf-8"))
    wait_until(lambda: not is_running(pid))


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- memory


def added(a: int, b: int) -> int:
    return a * 2 + b


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_memory_does_not_grow_with_the_rows() -> None:
    numbers = pa.RecordBatch.from_pydict({"a": np.arange(2_000_000), "b": np.arange(2_000_000)})
    caller = Caller(udf(added), ["a", "b"])
    caller(numbers.slice(0, 100_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    caller(numbers)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 80  # MiB: 32 are the result and its parts, and Python's integers of all rows would be 190


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_few_large_values_are_objects_at_the_same_time() -> None:
    """256 MiB of Arrow, of which 32 MiB are Python's bytes at a time."""
    images = pa.RecordBatch.from_arrays([pa.repeat(pa.scalar(bytes(2**22)), 64)], names=["image"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert Caller(udf(length_of), ["image"])(images).values.column(0).to_pylist() == [2**22] * 64
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 100  # MiB


def length_of(image: bytes) -> int:
    return len(image)


def test_as_many_columns_as_parameters() -> None:
    with pytest.raises(InvalidFunction, match="2 parameters and gets 1 columns"):
        Caller(udf(added), ["a"])


def test_policies_are_values() -> None:
    assert skip(ValueError) == ErrorPolicy((Skip(ValueError),)) != skip()
    assert udf(on_error=[Skip()])(added).on_error == skip()


def test_more_than_an_array_holds_is_an_error() -> None:
    half = pa.ListArray.from_arrays(pa.array([0, 2**30], pa.int32()), pa.nulls(2**30))  # which needs no memory
    assert len(joined([[half], [half.slice(0, 0)]])[0]) == 1
    with pytest.raises(WrongValue, match="use large_string, large_binary or large_list"):
        joined([[half], [half], [half]])
