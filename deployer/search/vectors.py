"""Query vectors from programs and files, as values of the type of a column's vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.search.target import SearchTarget

Vector = npt.NDArray[Any]  #: of one dimension
_SHOWN = 5  #: at most this many positions are in a message
_KINDS = "give a list of numbers, a NumPy array of one dimension, or an Arrow array"


def read_vector(query: Any, address: str) -> Vector:
    """Returns the numbers of a query: a list or tuple of numbers, an array of NumPy or Arrow, or one value of a column
    of vectors. Raises InvalidInput for anything else, for nulls, and for values that are not finite."""
    values = _values(query, address)
    if values.ndim != 1:
        raise InvalidInput(
            f"the query has {values.ndim} dimensions: {' × '.join(map(str, values.shape))}",
            where=address,
            remedy="give one vector; search once for each",
        )
    if values.dtype.kind not in "iuf":
        raise InvalidInput(f"the query vector has values of type {values.dtype}", where=address, remedy=_KINDS)
    if len(wrong := np.flatnonzero(~np.isfinite(values))):
        places = ", ".join(map(str, wrong[:_SHOWN])) + (", …" if len(wrong) > _SHOWN else "")
        raise InvalidInput(
            f"{len(wrong)} of {len(values)} values of the query vector are null, NaN or infinite (positions {places})",
            where=address,
            remedy="give a number in each position",
        )
    return values


def fitted(values: Vector, column: str, target: SearchTarget) -> Vector:
    """Returns the query vector in the type of the column's vectors.

    Raises InvalidInput when it has another number of values, or values that do not fit the type.
    """
    size = target.vector_size(column)
    if len(values) != size:
        raise InvalidInput(
            f"the query vector has {len(values)} values, and the vectors of column {column!r} have {size}",
            where=target.address,
            remedy="give a vector of the same model, or name another column as `vector_column_name`",
        )
    item = target.vector_item(column)
    with np.errstate(over="ignore", invalid="ignore"):
        found = values.astype(item)
    lost = ~np.isfinite(found) if found.dtype.kind == "f" else found != values
    if len(wrong := np.flatnonzero(lost)):
        raise InvalidInput(
            f"{values[wrong[0]]} in position {wrong[0]} of the query vector is not a {item}, which column {column!r} "
            "has",
            where=target.address,
            remedy="give the values that the column's model makes",
        )
    return found


def _values(query: Any, address: str) -> Vector:
    try:
        if isinstance(query, pa.ListScalar | pa.FixedSizeListScalar | pa.LargeListScalar):
            query = query.values
        if isinstance(query, pa.ChunkedArray):
            query = query.combine_chunks()
        if isinstance(query, pa.Array) and _is_list(query.type):
            if len(query) != 1:
                raise InvalidInput(
                    f"the query has {len(query)} vectors", where=address, remedy="give one; search once for each"
                )
            query = query[0].values
        if isinstance(query, pa.Array):
            return np.asarray(query.to_numpy(zero_copy_only=False))
        if isinstance(query, list | tuple):
            if any(isinstance(value, bool | str | bytes) for value in query):
                raise InvalidInput("the query vector has values that are not numbers", where=address, remedy=_KINDS)
            return np.array([np.nan if value is None else value for value in query])
        if hasattr(query, "__array__"):
            return np.asarray(query)
    except (TypeError, ValueError, OverflowError, AttributeError, pa.ArrowInvalid):
        raise InvalidInput("the query is not a vector of numbers", where=address, remedy=_KINDS) from None
    raise InvalidInput(
        f"the query is of type {type(query).__name__}", where=address, remedy=f"{_KINDS}; for words, give a text"
    )


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
