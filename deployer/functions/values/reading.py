"""Arrow columns as the values that functions of values get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_origin

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.functions.annotations import Annotation, without_optional
from deployer.functions.structs import is_structure, maker, structure_fields

Convert = Callable[[Any], Any]


class ColumnReader:
    """Reads one parameter's column: a value per row, None for null.

    Maps are dictionaries. Structs are dictionaries or the annotated structures. Lists are numpy arrays where the
    parameter is annotated so.
    """

    def __init__(self, annotation: Annotation) -> None:
        python = annotation.python
        self._arrays = _array_type(python)
        self._scalar = python if isinstance(python, type) and issubclass(python, np.generic) else None
        self._convert = _converter(python)

    def read(self, column: pa.Array) -> list[Any]:
        """Returns the column's values."""
        if self._arrays is not None:
            return _numpy_rows(column, self._arrays)
        if self._scalar is not None:
            kind = self._scalar
            return [None if value is None else kind(value) for value in python_values(column)]
        values = python_values(column)
        if self._convert is None:
            return values
        convert = self._convert
        return [None if value is None else convert(value) for value in values]


def python_values(column: pa.Array) -> list[Any]:
    """Returns the values as Python values, maps as dictionaries."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict") if _has_map(column.type) else column.to_pylist()
    return values


def _has_map(arrow: pa.DataType) -> bool:
    if pa.types.is_map(arrow):
        return True
    if pa.types.is_nested(arrow):
        return any(_has_map(arrow.field(i).type) for i in range(arrow.num_fields))
    return False


def _array_type(python: Any) -> np.dtype[Any] | None:
    """Returns the items' type of a parameter that gets numpy arrays; `object` where the annotation has none."""
    if python is np.ndarray:
        return np.dtype(object)
    if get_origin(python) is not np.ndarray:
        return None
    items = get_args(get_args(python)[1]) if len(get_args(python)) == 2 else ()
    return np.dtype(items[0]) if items and isinstance(items[0], type) else np.dtype(object)


def _numpy_rows(column: pa.Array, wanted: np.dtype[Any]) -> list[Any]:
    """Returns a numpy array per row, views of one array where the column has plain numbers."""
    items = column.flatten() if hasattr(column, "flatten") else None
    primitive = items is not None and pa.types.is_primitive(items.type) and not items.null_count
    if items is None or not primitive or pa.types.is_temporal(items.type):
        kind = None if wanted.hasobject else wanted
        return [None if value is None else np.asarray(value, kind) for value in column.to_pylist()]
    flat = items.to_numpy(zero_copy_only=False)
    flat = flat if wanted.hasobject else flat.astype(wanted, copy=False)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0))
    ends = np.cumsum(lengths).tolist()
    starts = [0, *ends[:-1]]
    if not column.null_count:
        return [flat[start:end] for start, end in zip(starts, ends, strict=True)]
    valid = column.is_valid().to_pylist()
    return [flat[start:end] if is_there else None for start, end, is_there in zip(starts, ends, valid, strict=True)]


def _converter(python: Any) -> Convert | None:
    """Returns a function that converts plain values to the annotated structures; None where no conversion is needed."""
    if is_structure(python):
        return _structure_converter(python)
    origin, arguments = get_origin(python), get_args(python)
    if origin in (list, tuple) and arguments:
        convert = _value_converter(arguments[0])
        if convert is None:
            return tuple if origin is tuple else None
        each, collected = convert, origin
        return lambda values: collected(map(each, values))
    if origin is dict and arguments and (convert := _value_converter(arguments[1])) is not None:
        made = convert
        return lambda values: {key: made(value) for key, value in values.items()}
    return None


def _value_converter(annotation: Any) -> Convert | None:
    convert = _converter(without_optional(annotation)[0])
    return None if convert is None else lambda value: None if value is None else convert(value)


def _structure_converter(structure: type) -> Convert:
    make = maker(structure)
    inner = {
        name: convert
        for name, annotation in structure_fields(structure, structure.__name__).items()
        if (convert := _value_converter(annotation)) is not None
    }
    if not inner:
        return make
    return lambda fields: make({**fields, **{name: convert(fields[name]) for name, convert in inner.items()}})
