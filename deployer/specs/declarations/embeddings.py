"""Declarations of embedding functions: the function, its column of texts, and its column of vectors.

The function is never imported here: a declaration is only its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from deployer.errors import InvalidInput, Position
from deployer.platform.files.json_values import JSON
from deployer.platform.isolation.trusted_functions import is_function_name
from deployer.specs.declarations.indexes import find_column, is_unknown
from deployer.specs.model import Embedding
from deployer.specs.rules import Rule
from deployer.specs.schema.index_kinds import VECTOR_FLOATS, type_remedy
from deployer.specs.types.types import Column, FixedSizeList, Scalar, format_type
from deployer.specs.validation.plain_values import text
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import reference_remedy

Report = Callable[[Position, Rule, str, str], None]
PARTS = ("function", "column", "vector")


def read_embedding(
    node: Node | None, columns: Sequence[Column], lacks: Callable[[str], bool], report: Report
) -> Embedding | None:
    """Returns the embedding that a table declares. `lacks` is true for names that the table certainly does not have."""
    if node is None or not isinstance(node.value, dict):
        return None
    found = {name: node.value[name] for name in PARTS if name in node.value}
    if len(found) < len(PARTS):
        return None  # the JSON Schema reports what is missing
    embedding = Embedding(*(str(found[name].value) for name in PARTS))
    if not is_function_name(embedding.function):
        what = f"`{embedding.function}` is not the name of a function"
        report(found["function"].at, Rule.EMBEDDING, what, "write package.module:function")
    for part, fits, wanted in (("column", _is_text, "text"), ("vector", _is_vector, "vectors of floats")):
        path = str(found[part].value)
        column = find_column(columns, path)
        if column is None:
            if is_unknown(columns, path, lacks):
                remedy = reference_remedy(path, [each.name for each in columns], "declare the column, or name another")
                report(
                    found[part].at,
                    Rule.UNKNOWN_EMBEDDING_COLUMN,
                    f"no column `{path}`, which the embedding names",
                    remedy,
                )
        elif not fits(column):
            what = f"column `{path}` of type {format_type(column.type)} does not hold {wanted}"
            remedy = "name a column of type string" if part == "column" else "name one such as vector<float32, 384>"
            report(found[part].at, Rule.EMBEDDING, what, remedy)
    return embedding


def _is_text(column: Column) -> bool:
    return isinstance(column.type, Scalar) and type_remedy("inverted", column.type) is None


def _is_vector(column: Column) -> bool:
    kind = column.type
    return (
        isinstance(kind, FixedSizeList) and isinstance(kind.item.type, Scalar) and kind.item.type.name in VECTOR_FLOATS
    )


def embedding_to_json(embedding: Embedding) -> dict[str, JSON]:
    """Returns an embedding as JSON, in the same form as in YAML."""
    return {name: getattr(embedding, name) for name in PARTS}


def embedding_from_json(form: Mapping[str, JSON]) -> Embedding | None:
    """Returns the inverse of `embedding_to_json`; None for an empty form. Raises InvalidInput for another form."""
    if not form:
        return None
    embedding = Embedding(*(text(form, name) for name in PARTS))
    if not is_function_name(embedding.function):
        raise InvalidInput(f"`function` of the embedding is {embedding.function[:80]!r}")
    return embedding
