"""`add_columns` and `alter_columns` with functions: all forms, what is stored, and what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from deployer.datasets.storage.function_packages import package_path
from deployer.datasets.storage.options import objects_at
from deployer.errors import InvalidFunction
from deployer.functions import Columns, UnpackedUDF, udf
from deployer.functions.packages.stored import function_info, load_function
from deployer.platform.isolation.trusted_functions import NONE_TRUSTED
from deployer.specs.types.arrow import computed_of
from deployer.specs.types.computed import ComputedByUdf
from deployer.table import Table
from tests.tables.lakes import Lake


@udf(version="3")
def tripled(rating: float) -> float:
    return rating * 3


@udf
def total(a: float, b: int) -> float:
    return a + b


class Parts(NamedTuple):
    first: str
    length: int


@udf
def parts(name: str) -> Columns[Parts]:
    return Parts(name[:1], len(name))


@udf(data_type=pa.float64())
def whole(rows: pa.RecordBatch) -> pa.Array:
    return rows.column("rating")


def definition(table: Table, name: str) -> ComputedByUdf:
    found = computed_of(table.schema.field(name))
    assert isinstance(found, ComputedByUdf)
    return found


def test_a_function_is_packaged_and_named_by_its_columns(table: Table, lake: Lake) -> None:
    table.add_columns({"triple": tripled, "sum": (total, ["rating", "id"])})
    triple, added = definition(table, "triple"), definition(table, "sum")
    assert (triple.udf, triple.inputs, triple.version, triple.output) == ("tripled", ("rating",), "3", "")
    assert added.inputs == ("rating", "id")
    assert load_function(lake.root, triple.function, NONE_TRUSTED)(2.0) == 6.0
    assert function_info(lake.root, added.function)[0].name == "total"


@pytest.mark.parametrize(("given", "prefix"), [(parts, ""), (UnpackedUDF(parts, prefix="name_"), "name_")])
def test_a_function_of_several_columns_adds_all_with_one_package(given: Any, prefix: str, table: Table) -> None:
    table.add_columns(given)
    first, length = definition(table, f"{prefix}first"), definition(table, f"{prefix}length")
    assert (first.output, length.output) == ("first", "length")
    assert first.function == length.function
    assert table.schema.field(f"{prefix}length").type == pa.int64()


def test_a_function_of_batches_reads_all_columns(table: Table) -> None:
    table.add_columns({"whole": whole})
    assert definition(table, "whole").inputs == ("id", "name", "day", "at", "rating")


def test_another_version_makes_the_column_stale(table: Table) -> None:
    table.add_columns({"triple": tripled}, on_load=True)
    before = definition(table, "triple")

    @udf(version="4")
    def tripled_again(rating: float) -> float:
        return rating + rating + rating

    table.alter_columns({"path": "triple", "udf": tripled_again})
    after = definition(table, "triple")
    assert after.identity != before.identity
    assert (after.version, after.inputs, after.on_load) == ("4", ("rating",), True)
    table.alter_columns({"path": "triple", "udf": (tripled_again, ["rating"])})
    assert definition(table, "triple").identity == after.identity


def test_one_of_several_outputs_gets_another_version(table: Table) -> None:
    table.add_columns(UnpackedUDF(parts, "name_"))

    @udf(version="new")
    def parts_again(name: str) -> Columns[Parts]:
        return Parts(name[-1:], len(name))

    table.alter_columns({"path": "name_first", "udf": parts_again})
    assert (definition(table, "name_first").output, definition(table, "name_first").version) == ("first", "new")
    assert definition(table, "name_length").version != "new"


def test_columns_that_have_the_names_of_outputs_get_another_version(table: Table) -> None:
    """The columns beside it, which the same function makes, are no obstacle."""
    table.add_columns(parts)

    @udf(version="new")
    def parts_again(name: str) -> Columns[Parts]:
        return Parts(name[-1:], len(name))

    table.alter_columns({"path": "first", "udf": parts_again}, {"path": "length", "udf": parts_again})
    assert {definition(table, name).version for name in ("first", "length")} == {"new"}
    with pytest.raises(InvalidFunction, match="`parts_again` makes first, length, and not rating"):
        table.alter_columns({"path": "rating", "udf": parts_again})


def test_parameters_without_annotations_are_warned_of(table: Table) -> None:
    @udf(data_type="int64")
    def loose(id):  # type: ignore[no-untyped-def]
        return id

    with pytest.warns(UserWarning, match="no types of id are annotated"):
        table.add_columns({"loose": loose})


BAD: dict[str, tuple[Any, str]] = {
    "a parameter that is no column": ({"x": total}, "the table has no column `a`"),
    "columns of another number": ({"x": (total, ["rating"])}, "has 2 parameters"),
    "an unknown column": ({"x": (total, ["rating", "idd"])}, "the table has no column `idd`"),
    "another type": ({"x": (tripled, ["name"])}, "takes float64"),
    "several columns in a dict": ({"x": parts}, "several columns"),
    "one column outside of a dict": (tripled, "makes one column"),
    "a batch with columns": ({"x": (whole, ["rating"])}, "takes a RecordBatch"),
    "there already": ({"rating": tripled}, "rating"),
    "blobs": ({"x": udf(data_type="blob")(lambda rating: b"")}, "holds blobs, which no backfill computes"),
    "blobs in a field": (
        {"x": udf(data_type="struct<a: blob>")(lambda rating: {"a": b""})},
        "holds blobs, which no backfill computes",
    ),
    "not decorated": ({"x": max}, "is not a transform"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_a_value_error_that_changes_and_saves_nothing(case: str, table: Table, lake: Lake) -> None:
    transforms, message = BAD[case]
    version = table.version
    with pytest.raises(ValueError, match=message) as caught:
        table.add_columns(transforms)
    assert isinstance(caught.value, InvalidFunction) and caught.value.remedy
    assert table.version == version
    folder = package_path("0" * 32).rpartition("/")[0]
    assert list(objects_at(lake.root).list(folder)) == []


def test_a_function_of_another_type_does_not_alter_a_column(table: Table) -> None:
    table.add_columns({"triple": tripled})

    @udf
    def text(rating: float) -> str:
        return str(rating)

    before = definition(table, "triple")
    with pytest.raises(InvalidFunction, match="makes string, and the column is float64"):
        table.alter_columns({"path": "triple", "udf": text})
    assert definition(table, "triple") == before
