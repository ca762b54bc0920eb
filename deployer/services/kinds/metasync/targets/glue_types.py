"""Columns in the form of Glue's catalog. Hive's types are less exact than Arrow's, so each column also has its Arrow
type."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import format_type

ARROW = "arrow.type"  #: the parameter of a column that has its exact type
MOST_COMMENT, MOST_TYPE = 255, 131_072  #: the most characters that Glue accepts

_HIVE = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "tinyint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "bigint"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_uint16, "int"),
    (pa.types.is_uint32, "bigint"),
    (pa.types.is_uint64, "decimal(20,0)"),
    (pa.types.is_float16, "float"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_time32, "int"),
    (pa.types.is_time64, "bigint"),
    (pa.types.is_duration, "bigint"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_binary_view, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
)
_FIELD = re.compile(r"[\w $]+")  #: the names of fields that Hive's parser of types accepts
MOST_DIGITS = 38  #: the most digits of Hive's decimals


def glue_columns(schema: pa.Schema) -> list[dict[str, Any]]:
    """Returns the columns of a table for Glue, with descriptions and exact types."""
    found = []
    for field, column in zip(schema, columns_of(schema), strict=True):
        form: dict[str, Any] = {
            "Name": field.name,
            "Type": hive_type(field.type),
            "Parameters": {ARROW: format_type(column.type)[:MOST_TYPE]},
        }
        if column.description:
            form["Comment"] = comment(column.description)
        found.append(form)
    return found


def hive_type(found: pa.DataType) -> str:
    """Returns the type of Hive that holds the values of an Arrow type; `string` where there is none, and for nulls."""
    if isinstance(found, pa.BaseExtensionType):
        return hive_type(found.storage_type)
    if pa.types.is_dictionary(found):
        return hive_type(found.value_type)
    if pa.types.is_decimal(found):
        return f"decimal({found.precision},{found.scale})" if found.precision <= MOST_DIGITS else "string"
    if pa.types.is_map(found):
        return f"map<{hive_type(found.key_type)},{hive_type(found.item_type)}>"
    if pa.types.is_struct(found):
        if not all(_FIELD.fullmatch(field.name) for field in found.fields):
            return "string"
        return f"struct<{','.join(f'{field.name}:{hive_type(field.type)}' for field in found.fields)}>"
    if any(is_list(found) for is_list in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)):
        return f"array<{hive_type(found.value_type)}>"
    return next((hive for is_type, hive in _HIVE if is_type(found)), "string")


def comment(description: str) -> str:
    """Returns a description in one line, shortened to the length that Glue accepts."""
    line = " ".join("".join(char if char.isprintable() else " " for char in description).split())
    return line if len(line) <= MOST_COMMENT else f"{line[: MOST_COMMENT - 1]}…"
