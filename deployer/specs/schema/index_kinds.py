"""Kinds of Lance indexes: the JSON Schema and defaults of their parameters, and the column types that each kind takes.

The column types are the result of trials with pylance 14, in file versions 2.1 and 2.2, on empty and on filled tables.
tests/tables/indexes/test_index_searches.py repeats the trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.specs.schema.parts import Json, choice, constant, count, flag, list_of, object_schema, ref, text
from deployer.specs.types.names import TEXTS
from deployer.specs.types.types import ColumnType, FixedSizeList, ListOf, Scalar
from deployer.specs.values.keys import KEY_TYPES

VECTOR_FLOATS = ("float16", "float32", "float64")
LANGUAGES = (
    "Arabic",
    "Danish",
    "Dutch",
    "English",
    "Finnish",
    "French",
    "German",
    "Greek",
    "Hungarian",
    "Italian",
    "Norwegian",
    "Portuguese",
    "Romanian",
    "Russian",
    "Spanish",
    "Swedish",
    "Tamil",
    "Turkish",
)
NUM_BITS = 8  #: bits of a code of product quantization, unless declared otherwise

_METRICS = ("l2", "cosine", "dot")
_PARTITIONS: Mapping[str, Json] = {
    "num_partitions": count(
        "Number of parts into which vectors are clustered when the index is built; by the number of rows unless "
        "set. Lance "
        "joins and splits parts later on, as rows come.",
        1,
        1_000_000,
    )
}
_CODES: Mapping[str, Json] = {
    "num_sub_vectors": count(
        "Codes that a vector is compressed to; divides its size, and is even with 4 bits. Unless set, it is chosen as "
        "LanceDB does: a sixteenth of the vector's size where 16 divides it, an eighth where 8 does, else 1; with 4 "
        "bits the next even number that divides the size.",
        1,
        65_536,
    ),
    "num_bits": {"type": "integer", "description": "Bits of a code.", "enum": [4, 8], "default": NUM_BITS},
}
_TRAINING: Mapping[str, Json] = {
    "max_iterations": count("Rounds of k-means at most, when clusters and codes are trained.", 1, 100_000, default=50),
    "sample_rate": count(
        "Vectors read for each cluster and each codeword when these are trained.", 2, 1_000_000, default=256
    ),
}
_GRAPH: Mapping[str, Json] = {
    "m": count("Edges of a vector in the graph.", 2, 1_024, default=20),
    "ef_construction": count("Candidates looked at for each vector while building.", 1, 100_000, default=150),
}
_FULL_TEXT: Mapping[str, Json] = {
    "base_tokenizer": choice(
        "How text is split into words: at blanks and punctuation, at blanks, not at all, into pieces of a few "
        "characters, or as Unicode says.",
        ("simple", "whitespace", "raw", "ngram", "icu"),
        default="simple",
    ),
    "language": choice("Language of the text, for stems and stop words.", LANGUAGES, default="English"),
    "lower_case": flag("Whether case is ignored.", True),
    "stem": flag("Whether words are reduced to their stems. Off by default for ngram."),
    "remove_stop_words": flag("Whether words such as `the` are left out. Off by default for ngram."),
    "custom_stop_words": list_of("Stop words instead of the language's own.", text("A word.", minLength=1)),
    "ascii_folding": flag("Whether accents are ignored.", True),
    "max_token_length": count("Longer words are left out.", 1, 32_766, default=40),
    "with_position": flag("Whether phrases can be searched; the index becomes much larger.", False),
    "min_ngram_length": count("Shortest piece of ngram, in characters.", 1, 100, default=3),
    "max_ngram_length": count("Longest piece of ngram, in characters.", 1, 100, default=3),
    "prefix_only": flag("Whether ngram takes only the beginnings of words.", False),
}


def _metric(*more: str) -> Mapping[str, Json]:
    return {"metric": choice("Distance of two vectors.", (*_METRICS, *more), default="l2")}


_KINDS: Mapping[str, tuple[str, Mapping[str, Json]]] = {
    "btree": ("Values in order: for equality and ranges, in columns of many distinct values.", {}),
    "bitmap": ("A bitmap for each value: for equality, in columns of few distinct values.", {}),
    "label_list": ("For `array_has`, `array_has_any` and `array_has_all` on lists of few distinct values.", {}),
    "inverted": ("Full-text search in text or lists of text.", _FULL_TEXT),
    "ivf_flat": (
        "Vectors in clusters, uncompressed. `hamming` is for vectors of uint8.",
        {**_metric("hamming"), **_PARTITIONS, **_TRAINING},
    ),
    "ivf_pq": (
        "Vectors in clusters, compressed by product quantization.",
        {**_metric(), **_PARTITIONS, **_CODES, **_TRAINING},
    ),
    "ivf_hnsw_sq": (
        "Graphs of vectors, compressed by scalar quantization.",
        {**_metric(), **_PARTITIONS, **_GRAPH, **_TRAINING},
    ),
    "ivf_hnsw_pq": (
        "Graphs of vectors, compressed by product quantization.",
        {**_metric(), **_PARTITIONS, **_CODES, **_GRAPH, **_TRAINING},
    ),
}
KINDS = tuple(_KINDS)
VECTOR_KINDS = frozenset(kind for kind in KINDS if kind.startswith("ivf_"))


def index_schemas() -> list[Json]:
    """Returns the JSON Schema of an index of each kind."""
    return [
        object_schema(
            f"Index of kind {kind}",
            description,
            ("columns", "kind"),
            {
                "kind": constant(kind, "Kind of the index."),
                "columns": list_of(
                    "The column; Lance's indexes have one. A field of a struct is `column.field`.",
                    ref("column_path"),
                    minItems=1,
                ),
                "name": ref(
                    "column_name", "Name of the index; the column and the kind, as in `carrier_bitmap`, unless set."
                ),
                **parameters,
            },
        )
        for kind, (description, parameters) in _KINDS.items()
    ]


def parameter_schemas(kind: str) -> Mapping[str, Json]:
    """Returns the JSON Schema of each parameter of a kind; empty for a kind that specs do not have."""
    return _KINDS[kind][1] if kind in _KINDS else {}


def parameter_names(kind: str) -> tuple[str, ...]:
    """Returns the names of the parameters of a kind; empty for a kind that specs do not have."""
    return tuple(parameter_schemas(kind))


def all_parameters(kind: str, declared: Mapping[str, Any], dimension: int = 0) -> dict[str, Any]:
    """Returns the declared parameters, and the defaults of the others. Omits parameters that Lance chooses by the data.

    `dimension` is the size of the column's vectors; the default number of sub-vectors depends on it. 0 means that the
    column has no vectors.
    """
    found = {**_defaults(kind, declared), **declared}
    if dimension and "num_bits" in found:
        found.setdefault("num_sub_vectors", suggested_sub_vectors(dimension, found["num_bits"]))
    return found


def suggested_sub_vectors(dimension: int, bits: int) -> int:
    """Returns the number of sub-vectors for vectors of `dimension` values.

    The number is LanceDB's choice. Codes of 4 bits need an even number, so for them it is the next even number that
    divides the size, and 1 where the size is odd.
    """
    chosen = next((dimension // each for each in (16, 8) if dimension % each == 0), 1)
    if bits != 4:
        return chosen
    return next((each for each in range(chosen, dimension + 1) if each % 2 == 0 and dimension % each == 0), 1)


def parameter_fault(kind: str, parameters: Mapping[str, Any], column_type: ColumnType) -> tuple[str, str, str] | None:
    """Returns the name of a parameter that does not fit the column's vectors, what is wrong with it, and what to do.

    Returns None where all parameters fit, and for columns without vectors.
    """
    if not isinstance(column_type, FixedSizeList):
        return None
    size, bits = column_type.size, parameters.get("num_bits", NUM_BITS)
    parts = parameters.get("num_sub_vectors")
    step = 2 if bits == 4 else 1
    fits = [each for each in range(step, size + 1, step) if size % each == 0]
    if bits == 4 and not fits:
        return (
            "num_bits",
            f"codes of 4 bits need an even number of sub-vectors, and a vector has {size} values",
            "use 8",
        )
    if isinstance(parts, int) and parts not in fits:
        what = f"{parts} sub-vectors do not divide a vector of {size}"
        if size % parts == 0:
            what = f"codes of 4 bits need an even number of sub-vectors, and it is {parts}"
        return "num_sub_vectors", what, f"use one of {', '.join(map(str, fits[-8:]))}"
    of_bits = _vector_item(column_type) == "uint8"
    if of_bits != (parameters.get("metric") == "hamming"):
        remedy = "write `metric: hamming`" if of_bits else "use l2, cosine or dot"
        return "metric", "vectors of uint8 have the metric hamming, and only they", remedy
    return None


def declared_parameters(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters that differ from their defaults, in the order of the schema: the canonical form."""
    defaults = _defaults(kind, values)
    return {
        name: values[name]
        for name in parameter_names(kind) or sorted(values)
        if values.get(name) is not None and values[name] != defaults.get(name)
    }


def _defaults(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {name: schema["default"] for name, schema in parameter_schemas(kind).items() if "default" in schema}
    if kind == "inverted":
        splits_words = values.get("base_tokenizer") != "ngram"
        defaults |= {"stem": splits_words, "remove_stop_words": splits_words}
    return defaults


def type_remedy(kind: str, column_type: ColumnType) -> str | None:
    """Returns None where an index of the kind can have a column of the type, else what to do."""
    vector = _vector_item(column_type)
    match kind:
        case "btree" | "bitmap":
            if isinstance(column_type, Scalar) and column_type.name in KEY_TYPES:
                return None
            if vector:
                return "use one of ivf_flat, ivf_pq, ivf_hnsw_sq, ivf_hnsw_pq"
            return "use label_list" if _list_item(column_type) else "index a column of numbers, text, dates or times"
        case "label_list":
            return None if _list_item(column_type) in KEY_TYPES else "use btree or bitmap, or a column of lists"
        case "inverted":
            texts = column_type.name if isinstance(column_type, Scalar) else _list_item(column_type)
            return None if texts in TEXTS else "index a column of text or of lists of text"
        case "ivf_flat" if vector == "uint8":
            return None
        case _:
            return None if vector in VECTOR_FLOATS else "index a column of type vector<float32, size>"


def _list_item(column_type: ColumnType) -> str | None:
    if isinstance(column_type, ListOf) and isinstance(column_type.item.type, Scalar):
        return column_type.item.type.name
    return None


def _vector_item(column_type: ColumnType) -> str | None:
    if isinstance(column_type, FixedSizeList) and isinstance(column_type.item.type, Scalar):
        return column_type.item.type.name
    return None
