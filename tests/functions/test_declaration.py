"""`udf` refuses what it cannot call, and settings that are no values; binding refuses what cannot work with a table."""

from __future__ import annotations

import datetime as dt
import functools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.errors import DeployerError, InvalidFunction, InvalidInput
from deployer.functions import (
    UDF,
    BoundOutput,
    Columns,
    ErrorPolicy,
    Fail,
    Retry,
    Skip,
    UnpackedUDF,
    bind_inputs,
    bind_transforms,
    retry,
    skip,
    stop_above,
    udf,
)
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column, Scalar, format_type


class Size(NamedTuple):
    height: int
    width: int


@dataclass
class Place:
    x: float
    y: float


def plain(a: int) -> int:
    return a


def numbered(a: int) -> Iterator[int]:
    yield a


async def later(a: pa.Array) -> pa.Array:
    return a


def of_all(*columns: int) -> int:
    return 0


def named_only(*, a: int) -> int:
    return a


def of_nothing() -> int:
    return 0


def mixed(a: pa.Array, b: int) -> pa.Array:
    return a


def two_batches(a: pa.RecordBatch, b: pa.RecordBatch) -> pa.Array:
    return a


def untyped(a, b):  # type: ignore[no-untyped-def]
    return a


def columns_of_int(a: int) -> Columns[int]:
    return a


def without_type(a: pa.Array) -> pa.Array:
    return a


class Callless:
    pass


def unknown_type(a: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
    return 0


@pytest.mark.parametrize(
    ("function", "settings", "message"),
    [
        pytest.param(5, {}, "5 is not a function", id="no function"),
        pytest.param(numbered, {}, "it yields values", id="generator"),
        pytest.param(later, {"data_type": "int64"}, "an async function takes arrays", id="async of arrays"),
        pytest.param(of_all, {}, r"parameter `\*columns: ?'?int'?` names no column", id="any number"),
        pytest.param(named_only, {}, "names no column", id="named only"),
        pytest.param(of_nothing, {}, "it has no parameters", id="no parameters"),
        pytest.param(mixed, {"data_type": "int64"}, "`b` is annotated as a value, and `a` as an array", id="mixed"),
        pytest.param(two_batches, {"data_type": "int64"}, "a RecordBatch beside others", id="two batches"),
        pytest.param(untyped, {}, "its result has no type", id="no type"),
        pytest.param(without_type, {}, "its result has no type", id="array without a type"),
        pytest.param(columns_of_int, {}, r"Columns\[int\] has no named fields", id="Columns of a number"),
        pytest.param(min, {"data_type": "int64"}, "parameters", id="built-in"),
        pytest.param(Callless, {}, "has no method __call__", id="class without __call__"),
        pytest.param(unknown_type, {}, "cannot be evaluated: NameError", id="unknown name"),
        pytest.param(plain, {"data_type": "int65"}, "int65", id="unknown type"),
        pytest.param(plain, {"data_type": pa.month_day_nano_interval()}, "which tables cannot have", id="Arrow type"),
        pytest.param(plain, {"data_type": object()}, "names no type", id="type that is an object"),
        pytest.param(plain, {"version": ""}, "version='' is not a version", id="empty version"),
        pytest.param(plain, {"version": 2}, "version=2 is not a version", id="version of a number"),
        pytest.param(plain, {"batch_size": 0}, "batch_size=0 is not a valid number", id="no rows"),
        pytest.param(plain, {"batch_size": -5}, "batch_size=-5", id="negative rows"),
        pytest.param(plain, {"batch_size": True}, "batch_size=True", id="rows of bool"),
        pytest.param(plain, {"batch_size": 2.0}, r"batch_size=2\.0", id="rows of float"),
        pytest.param(plain, {"timeout": 0}, "timeout=0 is not a valid time", id="no time"),
        pytest.param(plain, {"timeout": math.inf}, "timeout=inf", id="endless time"),
        pytest.param(plain, {"timeout": math.nan}, "timeout=nan", id="time that is no number"),
        pytest.param(plain, {"timeout": "5 minutes"}, "'5 minutes' is not a valid duration", id="time in words"),
        pytest.param(plain, {"timeout": dt.timedelta(-1)}, "is not a valid time", id="negative time"),
        pytest.param(plain, {"num_cpus": -1}, "num_cpus=-1", id="negative CPUs"),
        pytest.param(plain, {"num_cpus": "2"}, "num_cpus='2'", id="CPUs as text"),
        pytest.param(plain, {"num_gpus": math.nan}, "num_gpus=nan", id="GPUs that are no number"),
        pytest.param(plain, {"memory": "2 gigs"}, "'2 gigs' is not a valid size", id="memory in words"),
        pytest.param(plain, {"memory": 0}, "0 is out of range", id="no memory"),
        pytest.param(plain, {"max_concurrent_calls": 0}, "max_concurrent_calls=0", id="no calls"),
        pytest.param(plain, {"input_columns": "a"}, "'a' is not a list of columns", id="columns as text"),
        pytest.param(plain, {"on_error": "skip"}, "'skip' is not an error policy", id="policy as text"),
        pytest.param(plain, {"on_error": []}, r"\[\] is not an error policy", id="no rules"),
        pytest.param(plain, {"on_error": [ValueError]}, "is not an error policy", id="exceptions as rules"),
    ],
)
def test_what_cannot_be_called_is_refused(function: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFunction, match=message) as caught:
        udf(**settings)(function)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, InvalidInput)
    assert caught.value.where and caught.value.remedy


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: Skip(5), "5 is not a type of exceptions", id="number as exception"),  # type: ignore[arg-type]
        pytest.param(lambda: Skip(KeyboardInterrupt), "KeyboardInterrupt", id="what is no error"),
        pytest.param(lambda: Fail(match="("), "is not a regular expression", id="pattern"),
        pytest.param(lambda: Retry(attempts=1), "attempts=1", id="one attempt"),
        pytest.param(lambda: Retry(attempts=1000), "attempts=1000", id="many attempts"),
        pytest.param(lambda: Retry(first_pause=-1), "first_pause=-1", id="negative pause"),
        pytest.param(lambda: Retry(first_pause=9, longest_pause=5), "is shorter than first_pause", id="pauses"),
        pytest.param(lambda: retry(longest_pause=math.nan), "longest_pause=nan", id="pause that is no number"),
        pytest.param(lambda: stop_above(1.5), "1.5 is not a share", id="share above 1"),
        pytest.param(lambda: stop_above(-0.1), "-0.1 is not a share", id="negative share"),
        pytest.param(lambda: stop_above(0.1, after_rows=0), "after_rows=0", id="no rows"),
        pytest.param(lambda: stop_above(0.1, "skip"), "not an error policy", id="policy"),  # type: ignore[arg-type]
    ],
)
def test_rules_that_are_no_rules_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidFunction, match=message):
        make()


def test_settings_are_typed_values() -> None:
    found = udf(
        batch_size=64,
        timeout=dt.timedelta(minutes=2),
        num_cpus=2,
        memory="1GiB",
        num_gpus=0.5,
        on_error=stop_above(0.01, [Retry(OSError), Skip()]),
        version="2",
        input_columns=["b"],
        name="renamed",
    )(plain)
    assert (found.batch_size, found.timeout, found.num_cpus, found.memory, found.num_gpus) == (64, 120, 2, 2**30, 0.5)
    assert found.on_error == ErrorPolicy((Retry(OSError), Skip()), 0.01)
    assert (found.version, found.input_columns, found.name) == ("2", ("b",), "renamed")
    assert udf(timeout="90s")(plain).timeout == 90


def test_what_the_signature_says() -> None:
    found = udf(plain)
    assert (found.form, found.parameters, found.input_types) == ("scalar", ("a",), {"a": Scalar("int64")})
    assert udf(data_type="int64")(functools.partial(mixed_values, c=5)).parameters == ("a", "b")
    assert udf(data_type="int64")(lambda a, *, scale=2: a * scale).parameters == ("a",)
    batch = udf(data_type="int64")(of_batch)
    assert (batch.form, batch.parameters) == ("batch", ())
    many = sized
    assert [repr(each) for each in (add, many)] == [
        "<UDF add(a, b) -> float64>",
        "<UDF sized(name) -> height: int64, width: int64>",
    ]
    assert [(each.name, each.type) for each in many.outputs] == [
        ("height", Scalar("int64")),
        ("width", Scalar("int64")),
    ]


def mixed_values(a: int, b: float, *, c: int) -> int:
    return a + c


def of_batch(rows: pa.RecordBatch) -> pa.Array:
    return rows.column(0)


# --- binding

TABLE = pa.schema(
    [
        pa.field("price", pa.int32(), nullable=False),
        pa.field("tax", pa.float64()),
        pa.field("name", pa.string()),
        pa.field("image", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        pa.field("vector", pa.list_(pa.float32(), 4)),
        pa.field("place", pa.struct([("x", pa.float32()), ("y", pa.float64())])),
        pa.field("Weight", pa.uint64()),
        pa.field("none", pa.null()),
    ]
)


@udf
def add(a: int, b: float) -> float:
    return a + b


@udf
def taxed(price: int, tax: float) -> float:
    return price + tax


@udf
def sized(name: str) -> Columns[Size]:
    return Size(len(name), 1)


@udf(data_type="int32", input_columns=["price"])
def by_default(a: int) -> int:
    return a


Batched = udf(data_type="int32")(of_batch)


@pytest.mark.parametrize(
    ("transforms", "wanted"),
    [
        pytest.param({"km": " price * 1.6 "}, [BoundOutput("km", None, sql=" price * 1.6 ")], id="SQL"),
        pytest.param(
            {"total": taxed}, [BoundOutput("total", Scalar("float64"), udf=taxed, inputs=("price", "tax"))], id="udf"
        ),
        pytest.param(
            {"total": (add, ["price", "tax"])},
            [BoundOutput("total", Scalar("float64"), udf=add, inputs=("price", "tax"))],
            id="udf with columns",
        ),
        pytest.param(
            {"p": by_default, "q": (by_default, ("Weight",))},
            [
                BoundOutput("p", Scalar("int32"), udf=by_default, inputs=("price",)),
                BoundOutput("q", Scalar("int32"), udf=by_default, inputs=("Weight",)),
            ],
            id="columns of the udf, and others",
        ),
        pytest.param(
            sized,
            [
                BoundOutput("height", Scalar("int64"), udf=sized, inputs=("name",), output="height"),
                BoundOutput("width", Scalar("int64"), udf=sized, inputs=("name",), output="width"),
            ],
            id="Columns",
        ),
        pytest.param(
            UnpackedUDF(sized, prefix="img_"),
            [
                BoundOutput("img_height", Scalar("int64"), udf=sized, inputs=("name",), output="height"),
                BoundOutput("img_width", Scalar("int64"), udf=sized, inputs=("name",), output="width"),
            ],
            id="UnpackedUDF",
        ),
        pytest.param(
            {"first": Batched},
            [
                BoundOutput(
                    "first",
                    Scalar("int32"),
                    udf=Batched,
                    inputs=("price", "tax", "name", "vector", "place", "Weight", "none"),
                )
            ],
            id="batches, without blobs",
        ),
    ],
)
def test_the_five_forms(transforms: Any, wanted: list[BoundOutput]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bind_transforms(TABLE, transforms) == wanted


def refused_name(name: str) -> dict[str, UDF]:
    return {name: taxed}


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        pytest.param({"x": add}, "has no column `a`, which is a parameter of `add`", id="missing column"),
        pytest.param({"x": (add, ["price", "taxes"])}, "has no column `taxes`; did you mean `tax`", id="near column"),
        pytest.param({"x": (add, ["price", 5])}, "has no column `5`", id="number as column"),
        pytest.param({"x": (add, ["name", "tax"])}, "column `name` is string, and the parameter `a`", id="type"),
        pytest.param({"x": (add, ["tax", "tax"])}, "column `tax` is float64, and .* takes int64", id="float for int"),
        pytest.param({"x": (add, ["price"])}, r"has 2 parameters \(a, b\), and 1 columns are given", id="too few"),
        pytest.param({"x": (add, ["price"] * 3)}, "and 3 columns are given", id="too many"),
        pytest.param({"x": (add, "ab")}, "'ab' is not a list of columns", id="text for columns"),
        pytest.param({"x": sized}, r"`sized` returns Columns\[…\]", id="Columns in a dict"),
        pytest.param({"x": (sized, ["name"])}, r"`sized` returns Columns\[…\]", id="Columns in a tuple"),
        pytest.param({"x": UnpackedUDF(sized)}, "names them itself", id="UnpackedUDF in a dict"),
        pytest.param({"x": (Batched, ["price"])}, "takes a RecordBatch, .* input columns are given", id="RecordBatch"),
        pytest.param(
            {"x": udf(data_type="int32", input_columns=["price"])(of_batch)},
            "takes a RecordBatch",
            id="RecordBatch of udf",
        ),
        pytest.param({"x": plain}, "decorate the function by @udf", id="plain function"),
        pytest.param({"x": (plain, ["price"])}, "decorate the function by @udf", id="plain function in a tuple"),
        pytest.param({"x": 5}, "int is not a transform", id="number"),
        pytest.param({"x": (add, ["price"], 5)}, "tuple is not a transform", id="longer tuple"),
        pytest.param({"x": " "}, "the SQL is empty", id="empty SQL"),
        pytest.param({}, "no columns are given", id="nothing"),
        pytest.param([sized], "list is not a transform", id="list"),
        pytest.param(taxed, "`taxed` makes one column, which has no name", id="udf by itself"),
        pytest.param({"price": taxed}, "the table has a column `price` already", id="output exists"),
        pytest.param({"PRICE": "1"}, "the table has a column `price` already", id="output exists but for case"),
        pytest.param({"x": taxed, "X": taxed}, "another transform makes `x` already", id="output twice"),
        pytest.param(refused_name("a.b"), "has a dot", id="dot"),
        pytest.param(refused_name(""), "the name is empty", id="no name"),
        pytest.param(refused_name("_rowid"), "that Lance keeps for itself", id="reserved name"),
        pytest.param({5: taxed}, "5 is not a name", id="number as name"),
        pytest.param({"x": udf(data_type="map<string, blob>")(lambda name: {})}, "blobs in maps", id="type of Lance"),
    ],
)
@pytest.mark.filterwarnings("ignore:function `<lambda>`")
def test_transforms_that_cannot_work_are_refused(transforms: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        bind_transforms(TABLE, transforms)
    assert isinstance(caught.value, DeployerError)
    assert caught.value.where and caught.value.remedy


def test_an_output_of_columns_that_exists_has_a_remedy() -> None:
    table = pa.schema([("name", pa.string()), ("width", pa.int64())])
    with pytest.raises(InvalidFunction, match="a column `width` already") as caught:
        bind_transforms(table, sized)
    assert "UnpackedUDF" in caught.value.remedy
    assert [each.name for each in bind_transforms(table, UnpackedUDF(sized, "new_"))] == ["new_height", "new_width"]


@pytest.mark.parametrize("given", [plain, taxed, 5])
def test_only_columns_are_unpacked(given: Any) -> None:
    with pytest.raises(InvalidFunction, match=r"a function that returns Columns\[T\]"):
        UnpackedUDF(given)
    with pytest.raises(InvalidFunction, match="prefix=5"):
        UnpackedUDF(sized, prefix=5)  # type: ignore[arg-type]


def test_types_that_are_not_annotated_are_said_where_they_are_used() -> None:
    half = udf(data_type="float64")(half_typed)
    with pytest.warns(UserWarning, match="no types of b are annotated, so the columns' types are not checked") as found:
        bind_transforms(TABLE, {"x": (half, ["price", "name"])})
    assert Path(found[0].filename) == Path(__file__)


def half_typed(a: int, b):  # type: ignore[no-untyped-def]
    return a


@pytest.mark.parametrize(
    ("annotation", "taken", "refused"),
    [
        pytest.param(int, ["int8", "uint64", "null"], ["float32", "bool", "string"], id="int"),
        pytest.param(float, ["float16", "float64", "int64"], ["decimal128(5, 2)", "string"], id="float"),
        pytest.param(str, ["large_string", "json", "dictionary<int8, string>"], ["binary", "uuid"], id="str"),
        pytest.param(bytes, ["blob", "fixed_size_binary[4]", "large_binary"], ["string"], id="bytes"),
        pytest.param(dt.datetime, ["timestamp[ns, UTC]", "timestamp[s]"], ["date32", "int64"], id="datetime"),
        pytest.param(dt.date, ["date32", "date64"], ["timestamp[s]"], id="date"),
        pytest.param(np.int32, ["int32", "int16", "uint16"], ["int64", "uint32", "float32"], id="np.int32"),
        pytest.param(np.float32, ["float32", "float16", "int16"], ["float64", "int32"], id="np.float32"),
        pytest.param(pa.timestamp("us"), ["timestamp[us]"], ["timestamp[ms]", "timestamp[us, UTC]"], id="pa.timestamp"),
        pytest.param(pa.Int64Array, ["int64", "int32"], ["uint64", "float64"], id="pa.Int64Array"),
        pytest.param(pa.Array, ["int64", "string", "map<string, int8>"], [], id="pa.Array"),
        pytest.param(
            list[float], ["list<float32>", "fixed_size_list<float16, 3>"], ["float32", "list<string>"], id="list"
        ),
        pytest.param(
            Place,
            ["struct<x: float32, y: int8>"],
            ["struct<x: float32>", "struct<x: float32, z: int8>"],
            id="dataclass",
        ),
        pytest.param(dict[str, int], ["map<string, int8>"], ["map<int8, int8>", "struct<a: int8>"], id="dict"),
    ],
)
def test_which_columns_a_parameter_takes(annotation: Any, taken: list[str], refused: list[str]) -> None:
    def function(a: Any) -> Any:
        return None

    function.__annotations__ = {"a": annotation}
    made = udf(data_type="int64")(function)
    for text in taken + refused:
        columns = {"a": Column("a", parse_type(text))}
        if text in refused:
            with pytest.raises(InvalidFunction, match="and the parameter `a` of `function` takes"):
                bind_inputs(made, None, columns, "column `x`")
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert bind_inputs(made, None, columns, "column `x`") == ("a",), format_type(columns["a"].type)


@given(st.text(max_size=12), st.lists(st.text(max_size=6), max_size=4))
def test_any_names_are_bound_or_refused(name: str, columns: list[str]) -> None:
    try:
        [bound] = bind_transforms(TABLE, {name: (add, columns)})
    except InvalidFunction as error:
        assert error.remedy
    else:
        assert (bound.name, bound.inputs) == (name, tuple(columns))


def test_skip_of_all_is_the_same_policy() -> None:
    assert skip() == skip(Exception)
