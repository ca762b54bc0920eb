"""The table of types in docs/spec.md, tried on the installed pylance: it stores what is said to be stored, no more."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.specs.types.arrow import arrow_schema, columns_of
from deployer.specs.types.lance_support import newer_findings, type_findings
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import (
    Blob,
    Column,
    ListOf,
    Scalar,
    Struct,
    format_type,
)
from tests.values import ALSO_STORED, array, nullable

VERSIONS = ("2.1", "2.2")
ROWS = 300
# Beyond the table: what the rules of deployer.specs.types.lance_support refuse, and combinations that they let pass.
ALSO_REFUSED = (
    "fixed_size_list<string, 2>",
    "fixed_size_list<large_binary, 2>",
    "fixed_size_list<list<int32>, 2>",
    "fixed_size_list<map<string, int32>, 2>",
    "fixed_size_list<dictionary<int32, string>, 2>",
    "fixed_size_list<uuid, 2>",
    "fixed_size_list<json, 2>",
    "fixed_size_list<blob, 2>",
    "fixed_size_list<float32 not null, 2>",
    "fixed_size_list<fixed_size_list<struct<a: int32>, 1>, 2>",
    "fixed_size_list<struct<a: int32>, 2>",
    "struct<b: fixed_size_list<struct<a: int32>, 2>>",
    "dictionary<int32, date32>",
    "dictionary<int32, json>",
    "map<string, blob>",
)


def stored(column: Column, version: str, folder: Path) -> bool:
    """Whether Lance creates, writes twice, describes and reads the column, beside another, just as it is declared."""
    beside = Column("beside", Scalar("int64"))
    schema = arrow_schema([column, beside])
    uri = str(folder / f"{version}.lance")
    try:
        lance.write_dataset(pa.Table.from_batches([], schema=schema), uri, data_storage_version=version)
        table = pa.Table.from_arrays(
            [
                array(field.type, [nullable(each, i) for i in range(ROWS)])
                for field, each in zip(schema, (column, beside), strict=True)
            ],
            schema=schema,
        )
        lance.write_dataset(table, uri, mode="append")
        dataset = lance.write_dataset(table, uri, mode="append")
        found = dataset.to_table()
    except (OSError, ValueError, pa.ArrowInvalid, BaseException) as error:  # Lance's panics are no Exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    if columns_of(dataset.schema) != (column, beside) or found.num_rows != 2 * ROWS:
        return False
    if "blob" in format_type(column.type):  # reads give descriptors
        return bool(found["c"].null_count == 2 * table["c"].null_count)
    return bool(found["c"].to_pylist() == 2 * table["c"].to_pylist())


def declared_versions(column: Column) -> tuple[str, ...]:
    """The file versions in which our rules allow the column."""
    if list(type_findings(column)):
        return ()
    return VERSIONS[1:] if list(newer_findings(column.type)) else VERSIONS


CASES = {
    **{row.text: row.versions for row in TYPE_ROWS},
    **dict.fromkeys(ALSO_STORED, VERSIONS),
    **dict.fromkeys(ALSO_REFUSED, ()),
}


@pytest.mark.parametrize("text", CASES)
def test_lance_stores_what_the_rules_allow_and_nothing_else(text: str, tmp_path: Path) -> None:
    column = Column("c", parse_type(text), True, "What it means.")
    expected = CASES[text]
    assert declared_versions(column) == expected
    assert tuple(version for version in VERSIONS if stored(column, version, tmp_path)) == expected


def test_nullability_and_nested_descriptions_are_kept(tmp_path: Path) -> None:
    inner = Struct(
        (
            Column("x", Scalar("float32"), False, "Miles."),
            Column("y", ListOf(Column("item", Scalar("string"), False, "Codes."))),
        )
    )
    columns = (
        Column("id", Scalar("int64"), False, "Schlüssel"),
        Column("trips", ListOf(Column("item", inner, True, "A trip."))),
    )
    for version in VERSIONS:
        uri = str(tmp_path / f"{version}.lance")
        lance.write_dataset(pa.Table.from_batches([], schema=arrow_schema(columns)), uri, data_storage_version=version)
        assert columns_of(lance.dataset(uri).schema) == columns


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_read_as_they_were_written(version: str, tmp_path: Path) -> None:
    schema = arrow_schema([Column("c", Blob())])
    table = pa.Table.from_arrays([pa.array([b"one", None, b""], pa.large_binary())], schema=schema)
    dataset = lance.write_dataset(table, str(tmp_path / "blobs.lance"), data_storage_version=version)
    assert dataset.take_blobs("c", indices=[0])[0].read() == b"one"
