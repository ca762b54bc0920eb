"""The arguments with which programs create indexes, in LanceDB's terms: their check and conversion to declarations.

The results are the same values as declarations in specs, so plans and `describe` show both in the same form. The
defaults are those of LanceDB's calls and differ from those of specs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deployer.errors import InvalidInput, Refused
from deployer.specs.declarations.indexes import column_paths, default_name, find_column, unreadable_field
from deployer.specs.model import IndexSpec
from deployer.specs.schema.index_kinds import (
    declared_parameters,
    parameter_fault,
    parameter_schemas,
    type_remedy,
)
from deployer.specs.types.types import format_type
from deployer.specs.yaml.suggestions import nearest, one_of

if TYPE_CHECKING:
    from deployer.specs.types.types import Column

VECTOR_TYPES = ("IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
SCALAR_TYPES = ("BTREE", "BITMAP", "LABEL_LIST")
_METRICS: Mapping[str, str] = {"euclidean": "l2"}
#: The parameters of the tokenizers that LanceDB has names for; `_STEMS` has those such as `en_stem`.
_TOKENIZERS: Mapping[str, Mapping[str, Any]] = {
    "default": {"base_tokenizer": "simple"},
    "raw": {"base_tokenizer": "raw", "lower_case": False, "max_token_length": None},
    "whitespace": {"base_tokenizer": "whitespace", "lower_case": False, "max_token_length": None},
}
_STEMS: Mapping[str, str] = {
    "ar": "Arabic",
    "da": "Danish",
    "de": "German",
    "du": "Dutch",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "gr": "Greek",
    "hu": "Hungarian",
    "it": "Italian",
    "no": "Norwegian",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "ta": "Tamil",
    "tr": "Turkish",
}


def requested_kind(index_type: str, known: Sequence[str], where: str) -> str:
    """Returns the kind, in the terms of specs, of an index type of LanceDB. Raises InvalidInput, with the nearest known
    type, for an unknown one."""
    if str(index_type).upper() not in known:
        raise InvalidInput(f"{index_type!r} is not a type of index here", where=where, remedy=one_of(index_type, known))
    return str(index_type).lower()


def requested_index(
    columns: Sequence[Column], column: object, kind: str, parameters: Mapping[str, Any], where: str
) -> IndexSpec:
    """Returns the declaration of an index of one column. Parameters that are None get their defaults.

    Raises InvalidInput for a column that does not exist or whose type does not fit, and for invalid parameters.
    """
    parameters = {name: value for name, value in parameters.items() if value is not None}
    if "metric" in parameters:
        metric = str(parameters["metric"]).lower()
        parameters["metric"] = _METRICS.get(metric, metric)
    found = find_column(columns, column) if isinstance(column, str) else None
    if not isinstance(column, str) or found is None:
        near = nearest(column, tuple(column_paths(columns)))
        remedy = f"did you mean {near!r}?" if near else f"the columns are {', '.join(each.name for each in columns)}"
        raise InvalidInput(f"there is no column {column!r} to index", where=where, remedy=remedy)
    if misfit := type_remedy(kind, found.type):
        what = f"column {column!r} of type {format_type(found.type)} cannot have an index of kind {kind}"
        raise InvalidInput(what, where=where, remedy=misfit)
    if field := unreadable_field(column):
        what = f"Lance cannot index a field with the name {field!r} inside of a struct"
        raise InvalidInput(what, where=where, remedy="rename the field, or index a column that is not in a struct")
    for name, value in parameters.items():
        _check(name, value, parameter_schemas(kind)[name], where)
    if fault := parameter_fault(kind, parameters, found.type):
        name, what, remedy = fault
        raise InvalidInput(
            f"`{name}`: {what}", where=where, remedy=remedy.replace("write `metric: hamming`", "give 'hamming'")
        )
    shortest, longest = (parameters.get(f"{end}_ngram_length", 3) for end in ("min", "max"))
    if shortest > longest:
        what = f"the shortest piece has {shortest} characters and the longest {longest}"
        raise InvalidInput(what, where=where, remedy="make `max_ngram_length` at least `min_ngram_length`")
    return IndexSpec(default_name((column,), kind), (column,), kind, declared_parameters(kind, parameters))


def text_parameters(
    tokenizer_name: str | None, parameters: Mapping[str, Any], further: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Returns the parameters of a full-text index. A named tokenizer overrides some of the parameters, as in LanceDB.

    `further` are parameters that only specs have, such as those of `ngram`. Raises InvalidInput for unknown ones.
    """
    found = {**parameters, **_tokenizer(tokenizer_name, where)}
    if further.get("use_tantivy"):
        raise Refused("indexes of Tantivy are not supported", where=where, remedy="leave `use_tantivy` out")
    known = parameter_schemas("inverted")
    for name, value in further.items():
        if name == "use_tantivy":
            continue
        if name not in known:
            near = nearest(name, tuple(known))
            remedy = f"did you mean `{near}`?" if near else "remove it"
            raise InvalidInput(f"create_fts_index has no parameter `{name}`", where=where, remedy=remedy)
        found[name] = value
    if found["max_token_length"] is None:
        found["max_token_length"] = known["max_token_length"]["maximum"]
    return found


def _tokenizer(name: str | None, where: str) -> Mapping[str, Any]:
    if name is None or name in _TOKENIZERS:
        return _TOKENIZERS[name] if name else {}
    language, _, rest = name.partition("_")
    if rest == "stem" and language in _STEMS:
        return {"base_tokenizer": "simple", "language": _STEMS[language], "stem": True}
    names = (*_TOKENIZERS, *(f"{language}_stem" for language in _STEMS))
    raise InvalidInput(f"there is no tokenizer {name!r}", where=where, remedy=one_of(name, names))


def refuse_accelerator(accelerator: object, where: str) -> None:
    """Raises Refused for an accelerator. Lance would use it only to train centroids, with PyTorch in this process."""
    if accelerator is not None:
        what = f"accelerator {accelerator!r} is not supported: indexes are trained and built on CPUs"
        raise Refused(what, where=where, remedy="leave `accelerator` out")


def _check(name: str, value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Raises InvalidInput for a value that does not match the parameter's JSON Schema."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    match schema["type"]:
        case "integer" if "enum" in schema:
            if not is_whole or value not in schema["enum"]:
                raise InvalidInput(f"`{name}` is {value!r}", where=where, remedy=one_of(value, schema["enum"]))
        case "integer":
            if not is_whole or not schema["minimum"] <= value <= schema["maximum"]:
                remedy = f"give a whole number from {schema['minimum']} to {schema['maximum']:,}"
                raise InvalidInput(f"`{name}` is {value!r}", where=where, remedy=remedy)
        case "boolean":
            if not isinstance(value, bool):
                raise InvalidInput(f"`{name}` is {value!r}", where=where, remedy="give True or False")
        case "array":
            if not isinstance(value, list | tuple) or not all(isinstance(each, str) and each for each in value):
                raise InvalidInput(f"`{name}` is {value!r}", where=where, remedy="give a list of words")
        case _:
            if value not in schema["enum"]:
                raise InvalidInput(f"`{name}` cannot be {value!r}", where=where, remedy=one_of(value, schema["enum"]))
