"""The names of types in specs, and the type to suggest for each name of other systems."""

from __future__ import annotations

from collections.abc import Mapping

UNITS = ("s", "ms", "us", "ns")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
TEXTS = ("string", "large_string")
BINARIES = ("binary", "large_binary")
PLAIN = ("null", "bool", *INTEGERS, *FLOATS, *TEXTS, *BINARIES, "date32", "date64", "json", "uuid")
UNITS_OF: Mapping[str, tuple[str, ...]] = {
    "time32": UNITS[:2],
    "time64": UNITS[2:],
    "timestamp": UNITS,
    "duration": UNITS,
}
MAX_PRECISION: Mapping[str, int] = {"decimal128": 38, "decimal256": 76}
CONTAINERS = ("list", "large_list", "fixed_size_list", "vector", "struct", "map", "dictionary")
NAMES = (*PLAIN, "blob", "fixed_size_binary", *MAX_PRECISION, *UNITS_OF, *CONTAINERS)
MAX_SIZE = 2**31 - 1  # Arrow counts the items of fixed-size values in 32 bits
MAX_BINARY_SIZE = 2**28 - 1  # Arrow counts the bits of a fixed-size binary value in 31 bits
MAX_DEPTH = 32

# names of types in SQL, Spark, pandas and other parts of Arrow, with the type to use instead
INSTEAD: Mapping[str, str] = {
    "array": "list<…>",
    "bigint": "int64",
    "binary_view": "binary",
    "boolean": "bool",
    "byte": "int8",
    "bytea": "binary",
    "bytes": "binary",
    "categorical": "dictionary<int32, string>",
    "char": "string",
    "date": "date32",
    "datetime": "timestamp[us, UTC] or timestamp[us]",
    "decimal": "decimal128(precision, scale)",
    "decimal32": "decimal128(precision, scale)",
    "decimal64": "decimal128(precision, scale)",
    "double": "float64",
    "embedding": "vector<float32, size>",
    "float": "float32 or float64",
    "half": "float16",
    "halffloat": "float16",
    "int": "int32 or int64",
    "integer": "int32 or int64",
    "interval": "duration[us], or struct<months: int32, days: int32, nanoseconds: int64>",
    "month_day_nano_interval": "struct<months: int32, days: int32, nanoseconds: int64>",
    "large_list_view": "large_list<…>",
    "list_view": "list<…>",
    "long": "int64",
    "number": "decimal128(precision, scale)",
    "numeric": "decimal128(precision, scale)",
    "object": "struct<…> or json",
    "real": "float32",
    "run_end_encoded": "dictionary<int32, …>",
    "short": "int16",
    "smallint": "int16",
    "str": "string",
    "string_view": "string",
    "text": "string",
    "time": "time64[us]",
    "timestamptz": "timestamp[us, UTC]",
    "tinyint": "int8",
    "union": "a struct<…> with one nullable field for each member, or json",
    "dense_union": "a struct<…> with one nullable field for each member, or json",
    "sparse_union": "a struct<…> with one nullable field for each member, or json",
    "utf8": "string",
    "varbinary": "binary",
    "varchar": "string",
}
REFUSED_BY_LANCE = frozenset(
    {
        "binary_view",
        "decimal32",
        "decimal64",
        "dense_union",
        "interval",
        "large_list_view",
        "list_view",
        "month_day_nano_interval",
        "run_end_encoded",
        "sparse_union",
        "string_view",
        "union",
    }
)
