"""Every type goes into a function and comes back as plain Python has it."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from deployer.errors import FunctionFailed, InvalidFunction
from deployer.functions import Caller, Failure, skip, udf
from deployer.functions.annotations import read_annotation
from deployer.functions.values.reading import python_values
from deployer.specs.types.arrow import arrow_type
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import Column, ColumnType, format_type
from tests.values import array, nullable

ROWS = 12


class Place(NamedTuple):
    x: float
    label: str | None


@dataclass
class Person:
    name: str
    places: list[Place]


class Item(BaseModel):
    price: float
    tags: list[str] | None = None


def moment(*parts: int) -> dt.datetime:
    """A moment without a zone."""
    return dt.datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


def column_of_type(kind: ColumnType) -> pa.Array:
    return array(arrow_type(kind), [nullable(Column("a", kind), i) for i in range(ROWS)])


@pytest.mark.parametrize("text", [row.text for row in TYPE_ROWS])
@pytest.mark.parametrize("form", ["scalar", "arrow", "batch"])
def test_values_of_every_type_come_back(text: str, form: str) -> None:
    kind = parse_type(text)
    column = column_of_type(kind)
    batch = pa.RecordBatch.from_arrays([column], names=["a"])
    made: dict[str, Callable[[], Any]] = {
        "scalar": lambda: udf(data_type=text)(lambda a: a),
        "arrow": lambda: udf(data_type=text)(same_array),
        "batch": lambda: udf(data_type=text)(first_column),
    }
    with Caller(made[form](), ["a"]) as caller:
        found = caller(batch)
    assert not found.failures
    assert found.values.column(0).type == arrow_type(kind)
    assert found.values.column(0).to_pylist() == column.to_pylist()
    found.values.validate(full=True)


def test_values_come_back_from_a_process() -> None:
    texts = [row.text for row in TYPE_ROWS if row.text != "null" and "blob" not in row.text]
    kind = parse_type(f"struct<{', '.join(f'c{i}: {text}' for i, text in enumerate(texts))}>")
    batch = pa.RecordBatch.from_arrays([column_of_type(kind)], names=["a"])
    with Caller(udf(data_type=format_type(kind), timeout=60)(lambda a: a), ["a"]) as caller:
        assert caller(batch).values.column(0).to_pylist() == batch.column(0).to_pylist()


def same_array(a: pa.Array) -> pa.Array:
    return a


def first_column(batch: pa.RecordBatch) -> pa.Array:
    return batch.column(0)


ZONE = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("annotation", "wanted", "values"),
    [
        pytest.param(bool, "bool", [True, None, False], id="bool"),
        pytest.param(int, "int64", [1, None, -(2**63)], id="int"),
        pytest.param(float, "float64", [1.5, None, math.inf], id="float"),
        pytest.param(float | None, "float64", [1.5, None], id="optional float"),
        pytest.param(str, "string", ["é", None, ""], id="str"),
        pytest.param(bytes, "binary", [b"\0", None, b""], id="bytes"),
        pytest.param(dt.date, "date32", [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)], id="date"),
        pytest.param(dt.datetime, "timestamp[us]", [moment(2020, 1, 2, 3, 4, 5, 6), None], id="datetime"),
        pytest.param(dt.time, "time64[us]", [dt.time(23, 59, 59, 999999), None], id="time"),
        pytest.param(dt.timedelta, "duration[us]", [dt.timedelta(days=-1, microseconds=1), None], id="timedelta"),
        pytest.param(uuid.UUID, "uuid", [uuid.UUID(int=5), None], id="UUID"),
        pytest.param(np.int8, "int8", [np.int8(-128), None], id="np.int8"),
        pytest.param(np.uint64, "uint64", [np.uint64(2**64 - 1), None], id="np.uint64"),
        pytest.param(np.float16, "float16", [np.float16(0.5), None], id="np.float16"),
        pytest.param(np.float32, "float32", [np.float32(0.1), None], id="np.float32"),
        pytest.param(np.bool_, "bool", [np.True_, None], id="np.bool_"),
        pytest.param(np.str_, "string", [np.str_("a"), None], id="np.str_"),
        pytest.param(pa.int16(), "int16", [5, None], id="pa.int16()"),
        pytest.param(pa.list_(pa.float32()), "list<float32>", [[0.5, None], None, []], id="pa.list_"),
        pytest.param(list[int], "list<int64>", [[1, None], None, []], id="list[int]"),
        pytest.param(tuple[str, ...], "list<string>", [["a"], None], id="tuple[str, ...]"),
        pytest.param(list[list[float]], "list<list<float64>>", [[[0.5], None, []], None], id="list of lists"),
        pytest.param(dict[str, int], "map<string, int64>", [{"a": 1, "b": None}, None, {}], id="dict[str, int]"),
        pytest.param(
            Annotated[decimal.Decimal, pa.decimal128(10, 2)],
            "decimal128(10, 2)",
            [decimal.Decimal("1.25")],
            id="Decimal",
        ),
        pytest.param(Annotated[str, "json"], "string", ["a"], id="Annotated by something else"),
        pytest.param(Place, "struct<x: float64, label: string>", [Place(1.0, None), None], id="NamedTuple"),
        pytest.param(
            Person,
            "struct<name: string, places: list<struct<x: float64, label: string>>>",
            [Person("a", [Place(0.5, "b")]), None],
            id="dataclass",
        ),
        pytest.param(Item, "struct<price: float64, tags: list<string>>", [Item(price=2.0), None], id="pydantic"),
    ],
)
def test_annotations_mean_types(annotation: Any, wanted: str, values: list[Any]) -> None:
    assert format_type(read_annotation(annotation, "it").type) == wanted  # type: ignore[arg-type]

    def chosen(i: int) -> Any:
        return values[i]

    chosen.__annotations__["return"] = annotation
    numbers = pa.RecordBatch.from_pydict({"i": list(range(len(values)))})
    made = Caller(udf(chosen), ["i"])(numbers).values.column(0)
    assert made.type == arrow_type(parse_type(wanted))

    seen: list[Any] = []

    def collected(a: Any) -> int:
        seen.append(a)
        return 0

    collected.__annotations__["a"] = annotation
    Caller(udf(collected), ["a"])(pa.RecordBatch.from_arrays([made], names=["a"]))
    as_python = [list(each) if isinstance(each, tuple) and not hasattr(each, "_fields") else each for each in seen]
    assert as_python == values
    if isinstance(annotation, type) and issubclass(annotation, np.generic | Place | Person | Item):
        assert all(isinstance(each, annotation) for each in seen if each is not None)


@pytest.mark.parametrize("kind", ["list<float32>", "large_list<float32>", "fixed_size_list<float32, 2>"])
def test_lists_are_arrays_of_numpy_where_annotated_so(kind: str) -> None:
    values = [[1.0, 2.0], None, [0.5, -1.0]]

    @udf
    def length(v: npt.NDArray[np.float64] | None) -> float | None:
        assert v is None or (isinstance(v, np.ndarray) and v.dtype == np.float64)
        return None if v is None else float(np.sqrt((v**2).sum()))

    @udf(data_type=kind)
    def scaled(v: np.ndarray[Any, Any]) -> Any:
        return None if v is None else v * 2

    batch = pa.RecordBatch.from_arrays([pa.array(values, arrow_type(parse_type(kind)))], names=["v"])
    for part in (batch, batch.slice(1), batch.slice(2)):
        rows = part.column(0).to_pylist()
        wanted = [None if row is None else math.hypot(*row) for row in rows]
        assert Caller(length, ["v"])(part).values.column(0).to_pylist() == pytest.approx(wanted)
        doubled = [None if row is None else [2 * each for each in row] for row in rows]
        assert Caller(scaled, ["v"])(part).values.column(0).to_pylist() == doubled


# --- values that are not of the type, or that it cannot hold


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        pytest.param("list<int64 not null>", [1], [1, None], id="list"),
        pytest.param("large_list<int64 not null>", [], [None], id="large list"),
        pytest.param("struct<a: int64 not null, b: int64>", {"a": 1, "b": None}, {"a": None, "b": 1}, id="struct"),
        pytest.param("list<struct<a: int64 not null>>", [{"a": 1}, None], [{"a": None}], id="struct in list"),
        pytest.param("struct<a: list<int64 not null>>", {"a": None}, {"a": [None]}, id="list in struct"),
        pytest.param("map<string, int64 not null>", {"x": 1}, {"x": 1, "y": None}, id="map"),
        pytest.param("map<string, list<int64 not null>>", {"x": None}, {"x": [None]}, id="list in map"),
    ],
)
def test_nulls_inside_of_arrays_are_found(kind: str, good: Any, bad: Any) -> None:
    lenient = arrow_type(parse_type(kind.replace(" not null", "")))
    strict = udf(data_type=kind)(same_array)
    batch = pa.RecordBatch.from_arrays([pa.array([good, None, good], lenient)], names=["a"])
    assert Caller(strict, ["a"])(batch).values.column(0).to_pylist() == batch.column(0).to_pylist()
    for rows in ([good, None, bad], [bad]):
        batch = pa.RecordBatch.from_arrays([pa.array(rows, lenient)], names=["a"])
        for part in (batch, batch.slice(len(rows) - 1)):
            with pytest.raises(FunctionFailed, match=r"is null|has nulls"):
                Caller(strict, ["a"])(part)
    batch = pa.RecordBatch.from_arrays([pa.array([bad, good, None], lenient)], names=["a"])
    assert Caller(strict, ["a"])(batch.slice(1)).values.column(0).to_pylist() == batch.column(0).to_pylist()[1:]


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        pytest.param("int64", 1.5, "1.5 of type float is not a value of int64", id="float for int"),
        pytest.param("int64", 1.0, "1.0 of type float is not a value of int64", id="whole float for int"),
        pytest.param("int64", True, "True of type bool", id="bool for int"),
        pytest.param("int64", "1", "'1' of type str", id="text for int"),
        pytest.param("int64", 2**63, "does not fit int64", id="too large"),
        pytest.param("int8", 128, "does not fit int8", id="too large for int8"),
        pytest.param("uint8", -1, "does not fit uint8", id="negative"),
        pytest.param("float64", "1.5", "of type str", id="text for float"),
        pytest.param("float64", 2**53 + 1, "does not fit float64", id="int that a float has not"),
        pytest.param("float32", 1e300, "too large for float32", id="infinite in float32"),
        pytest.param("float16", 1e5, "too large for float16", id="infinite in float16"),
        pytest.param("bool", 1, "1 of type int", id="int for bool"),
        pytest.param("string", b"a", "of type bytes", id="bytes for text"),
        pytest.param("string", 5, "of type int", id="int for text"),
        pytest.param("binary", "a", "of type str", id="text for bytes"),
        pytest.param("fixed_size_binary[2]", b"abc", "does not fit", id="bytes of another length"),
        pytest.param("date32", moment(2020, 1, 1, 5), "of type datetime", id="moment for day"),
        pytest.param("date32", 5, "of type int", id="int for day"),
        pytest.param("timestamp[s]", moment(2020, 1, 1, 0, 0, 0, 7), "finer than", id="finer moment"),
        pytest.param("timestamp[us]", dt.datetime(2020, 1, 1, tzinfo=ZONE), "has a time zone", id="zone"),
        pytest.param("timestamp[us, UTC]", moment(2020, 1, 1), "has no time zone", id="no zone"),
        pytest.param("timestamp[us]", dt.date(2020, 1, 1), "of type date", id="day for moment"),
        pytest.param("duration[s]", dt.timedelta(microseconds=5), "finer than", id="finer duration"),
        pytest.param("time32[s]", dt.time(1, 2, 3, 4), "finer than", id="finer time"),
        pytest.param("decimal128(5, 2)", decimal.Decimal("1.234"), "does not fit", id="more digits"),
        pytest.param("decimal128(5, 2)", 1.5, "of type float", id="float for decimal"),
        pytest.param("uuid", "a", "of type str", id="text for uuid"),
        pytest.param("uuid", b"abc", "does not fit", id="short uuid"),
        pytest.param("json", "{", "is not JSON", id="no JSON"),
        pytest.param("json", {"a": 1}, "of type dict", id="dict for JSON"),
        pytest.param("null", 5, "of type int", id="value for null"),
        pytest.param("dictionary<int8, string>", 5, "of type int", id="int for dictionary of texts"),
        pytest.param("list<string>", "ab", "'ab' of type str is not a value of list<string>", id="text for list"),
        pytest.param("list<int64>", {1, 2}, "of type set", id="set for list"),
        pytest.param("list<int64>", [1, "b"], "'b' of type str", id="text in list"),
        pytest.param("list<int64>", np.array([1.0, 2.5]), "array of float64", id="floats of numpy for ints"),
        pytest.param("list<int8>", np.array([1, 300]), "does not fit", id="large ints of numpy"),
        pytest.param("list<float32>", np.array([1e300]), "too large", id="large floats of numpy"),
        pytest.param("list<int64>", np.array(5), "of type ndarray", id="array without dimensions"),
        pytest.param("list<int64 not null>", [1, None], "is null", id="null in list"),
        pytest.param("fixed_size_list<float32, 2>", [1.0], "a list of 1 items", id="short vector"),
        pytest.param("struct<a: int64>", {"a": 1, "b": 2}, "has a field `b`", id="unknown field"),
        pytest.param("struct<a: int64>", {"a": "x"}, "'x' of type str", id="field of another type"),
        pytest.param("struct<a: int64>", (1,), "of type tuple", id="tuple for struct"),
        pytest.param("struct<a: int64 not null>", {}, "field `a` .* is null", id="null field"),
        pytest.param("map<string, int64>", [("a", 1)], "of type list", id="list for map"),
        pytest.param("map<string, int64>", {1: 1}, "1 of type int", id="int as key"),
        pytest.param("map<string, int64>", {None: 1}, "is null", id="null as key"),
        pytest.param("int64", pd.NA, "of type NAType", id="pandas' NA"),
        pytest.param("timestamp[us]", pd.NaT, "of type NaTType|does not fit", id="pandas' NaT"),
    ],
)
def test_a_wrong_value_is_a_failure_of_its_row(kind: str, value: Any, message: str) -> None:
    good = python_values(column_of_type(parse_type(kind)))[0]
    values = [good, value, good, value]
    batch = pa.RecordBatch.from_pydict({"i": [0, 1, 2, 3]})
    with pytest.raises(FunctionFailed, match=f"row 1 of the batch: (WrongValue|NullValue): .*{message}"):
        Caller(udf(data_type=kind)(lambda i: values[i]), ["i"])(batch)
    found = Caller(udf(data_type=kind, on_error=skip(TypeError))(lambda i: values[i]), ["i"])(batch)
    assert [each.row for each in found.failures] == [1, 3]
    wanted = Caller(udf(data_type=kind)(lambda i: [good, None][i % 2]), ["i"])(batch)
    assert found.values.column(0).equals(wanted.values.column(0))


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        pytest.param(decimal.Decimal, r"give the digits: .*decimal128\(10, 2\)", id="Decimal"),
        pytest.param(list, "give the type of the items", id="list"),
        pytest.param(np.ndarray, "give the type of the items", id="ndarray"),
        pytest.param(int | str, "name one type", id="union"),
        pytest.param(complex, "names no type", id="complex"),
        pytest.param(tuple[int, str], "names no type", id="tuple of two types"),
        pytest.param("int64x", "cannot be evaluated", id="text that is no type"),
        pytest.param(np.datetime64, "names no type", id="np.datetime64"),
        pytest.param(list[Any], "names no type", id="list of anything"),
    ],
)
def test_an_annotation_without_a_type_is_refused(annotation: Any, message: str) -> None:
    def made(i: int) -> Any:
        return i

    made.__annotations__["return"] = annotation
    with pytest.raises(InvalidFunction, match=message):
        udf(made)


class Node(NamedTuple):
    value: int
    next: Node | None


def test_a_type_that_contains_itself_is_refused() -> None:
    def made(i: int) -> Node:
        return Node(i, None)

    with pytest.raises(InvalidFunction, match="contains itself"):
        udf(made)


# --- any type


LEAVES = st.sampled_from([row.text for row in TYPE_ROWS if "<" not in row.text and row.text not in ("null", "blob")])
KINDS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("list<{}>".format, inner),
        st.builds("large_list<{}>".format, inner),
        st.builds("struct<a: {}, b: {}>".format, inner, inner),
        st.builds("map<string, {}>".format, inner),
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=60)
@given(KINDS, st.lists(st.integers(0, 40), min_size=1, max_size=20), st.integers(1, 7))
def test_any_type_comes_back(text: str, numbers: list[int], rows_of_a_call: int) -> None:
    kind = parse_type(text)
    column = array(arrow_type(kind), [nullable(Column("a", kind), i) for i in numbers])
    batch = pa.RecordBatch.from_arrays([column], names=["a"])
    scalar = udf(data_type=text, batch_size=rows_of_a_call)(lambda a: a)
    failing = udf(data_type=text, batch_size=rows_of_a_call, on_error=skip())(raises_for_every_third())
    assert Caller(scalar, ["a"])(batch).values.column(0).to_pylist() == column.to_pylist()
    found = Caller(failing, ["a"])(batch)
    wanted = [None if i % 3 == 2 else value for i, value in enumerate(column.to_pylist())]
    assert found.values.column(0).to_pylist() == wanted
    assert [each.row for each in found.failures] == list(range(2, len(numbers), 3))
    assert all(isinstance(each, Failure) and each.attempts == 1 for each in found.failures)


def raises_for_every_third() -> Callable[[Any], Any]:
    calls = 0

    def given_back(a: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise LookupError(calls)
        return a

    return given_back
