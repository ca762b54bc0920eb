"""The types that tables can have, one row for each type, according to trials with pylance 14. The docs of specs and the
trials use the rows."""

from __future__ import annotations

from dataclasses import dataclass

BOTH, NEWER_ONLY = ("2.1", "2.2"), ("2.2",)


@dataclass(frozen=True, slots=True)
class TypeRow:
    """A type, given by a valid example, and the file versions in which Lance stores it as declared."""

    text: str
    holds: str
    versions: tuple[str, ...] = BOTH
    note: str = ""


TYPE_ROWS = (
    TypeRow("null", "nothing but nulls", note='written `"null"` in YAML'),
    TypeRow("bool", "true, false"),
    TypeRow("int8", "-128 to 127"),
    TypeRow("int16", "-32,768 to 32,767"),
    TypeRow("int32", "-2³¹ to 2³¹ - 1"),
    TypeRow("int64", "-2⁶³ to 2⁶³ - 1"),
    TypeRow("uint8", "0 to 255"),
    TypeRow("uint16", "0 to 65,535"),
    TypeRow("uint32", "0 to 2³² - 1"),
    TypeRow("uint64", "0 to 2⁶⁴ - 1"),
    TypeRow("float16", "about 3 digits"),
    TypeRow("float32", "about 7 digits"),
    TypeRow("float64", "about 16 digits"),
    TypeRow("decimal128(10, 2)", "exact numbers: digits in all (1 to 38), digits after the point"),
    TypeRow("decimal256(50, 2)", "the same with up to 76 digits"),
    TypeRow("string", "UTF-8 text"),
    TypeRow("large_string", "UTF-8 text with 64-bit offsets"),
    TypeRow("binary", "bytes"),
    TypeRow("large_binary", "bytes with 64-bit offsets"),
    TypeRow("fixed_size_binary[16]", "bytes, always as many"),
    TypeRow("blob", "large bytes, stored apart and read lazily", note="2.2: Lance's blob v2"),
    TypeRow("date32", "days"),
    TypeRow("date64", "days, in milliseconds"),
    TypeRow("time32[ms]", "time of day in `s` or `ms`"),
    TypeRow("time64[us]", "time of day in `us` or `ns`"),
    TypeRow("timestamp[us]", "local time without a zone in `s`, `ms`, `us` or `ns`"),
    TypeRow("timestamp[us, America/New_York]", "instants, shown in a zone", note="IANA names, or offsets as `+05:30`"),
    TypeRow("duration[s]", "lengths of time in `s`, `ms`, `us` or `ns`"),
    TypeRow("json", "JSON documents", note="read back without insignificant white space"),
    TypeRow("uuid", "UUIDs in 16 bytes"),
    TypeRow(
        "dictionary<int32, string>", "values stored once; of bool, numbers, text or binary", note="order is not kept"
    ),
    TypeRow("list<string>", "lists of any length"),
    TypeRow("list<string not null>", "lists whose items are never null"),
    TypeRow("list<struct<a: int32, b: list<string>>>", "nesting of any kind"),
    TypeRow("large_list<string>", "lists with 64-bit offsets"),
    TypeRow(
        "fixed_size_list<float32, 768>",
        "vectors; `vector<float32, 768>` is the same",
        note="items may be null; no text, binary, structs, lists or maps in them",
    ),
    TypeRow("fixed_size_list<fixed_size_list<float32, 2>, 3>", "matrices"),
    TypeRow("struct<a: int32 not null, b: string>", "named fields"),
    TypeRow("struct<photo: blob>", "blobs in structs"),
    TypeRow("list<blob>", "blobs in lists", NEWER_ONLY),
    TypeRow("map<string, int64>", "keys, never null, to values", NEWER_ONLY),
    TypeRow("map<string, struct<a: int32 not null>>", "keys to structs", NEWER_ONLY),
)
