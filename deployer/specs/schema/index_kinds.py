"""Kinds of Lance indexes: their parameters, as JSON Schema and as defaults, and the column types that each takes.

Which types fit was tried on pylance 14 in file versions 2.1 and 2.2, on empty and on filled tables
(tests/tables/test_index_searches.py tries it again).
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
PQ_ROWS = 256  #: product quantization learns 2^8 codewords and trains on no fewer rows

_METRICS = ("l2", "cosine", "dot")
_PARTITIONS: Mapping[str, Json] = {
    "num_partitions": count(
        "Into how many parts vectors are clustered when the index is built; by the number of rows unless set. Lance "
        "joins and splits parts later on, as rows come.",
        1,
        1_000_000,
    )
}
_SUB_VECTORS: Mapping[str, Json] = {
    "num_sub_vectors": count("Bytes that a vector is compressed to; divides its size.", 1, 65_536)
}
_GRAPH: Mapping[str, Json] = {
    "m": count("Edges of a vector in the graph.", 2, 1_024, default=20),
    "ef_construction": count("Candidates looked at for each vector while building.", 1, 100_000, default=150),
}
_FULL_TEXT: Mapping[str, Json] = {
    "base_tokenizer": choice(
        "How text is parted into words: at blanks and punctuation, at blanks, not at all, into pieces of a few "
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
    "with_position": flag("Whether phrases can be searched; the index grows by much.", False),
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
        {**_metric("hamming"), **_PARTITIONS},
    ),
    "ivf_pq": (
        "Vectors in clusters, compressed by product quantization.",
        {**_metric(), **_PARTITIONS, **_SUB_VECTORS},
    ),
    "ivf_hnsw_sq": ("Graphs of vectors, compressed by scalar quantization.", {**_metric(), **_PARTITIONS, **_GRAPH}),
    "ivf_hnsw_pq": (
        "Graphs of vectors, compressed by product quantization.",
        {**_metric(), **_PARTITIONS, **_SUB_VECTORS, **_GRAPH},
    ),
}
KINDS = tuple(_KINDS)
VECTOR_KINDS = frozenset(kind for kind in KINDS if kind.startswith("ivf_"))


def index_schemas() -> list[Json]:
    """The JSON Schema of an index of each kind."""
    return [
        object_schema(
            f"Index of kind {kind}",
            description,
            ("columns", "kind", *(("num_sub_vectors",) if "num_sub_vectors" in parameters else ())),
            {
                "kind": constant(kind, "What the index is."),
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


def parameter_names(kind: str) -> tuple[str, ...]:
    """The parameters of a kind; none for a kind that specs do not have."""
    return tuple(_KINDS[kind][1]) if kind in _KINDS else ()


def all_parameters(kind: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Declared parameters with defaults for the others; those that Lance chooses by the data are left out."""
    return {**_defaults(kind, declared), **declared}


def declared_parameters(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that differ from their defaults, in the order of the schema: the canonical form."""
    defaults = _defaults(kind, values)
    return {
        name: values[name]
        for name in parameter_names(kind) or sorted(values)
        if values.get(name) is not None and values[name] != defaults.get(name)
    }


def _defaults(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    parameters = _KINDS[kind][1] if kind in _KINDS else {}
    defaults = {name: schema["default"] for name, schema in parameters.items() if "default" in schema}
    if kind == "inverted":
        splits_words = values.get("base_tokenizer") != "ngram"
        defaults |= {"stem": splits_words, "remove_stop_words": splits_words}
    return defaults


def type_remedy(kind: str, column_type: ColumnType) -> str | None:
    """None when the kind takes columns of the type, else what to do."""
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
