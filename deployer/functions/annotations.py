"""Types of columns from Python's annotations: `int`, `list[float]`, `np.int32`, `pa.float32()`, dataclasses.

`int` means int64, `float` float64, `datetime` timestamp[us]. Types of numpy and pyarrow mean exactly these types.
"""

from __future__ import annotations

import datetime as dt
import decimal
import types
import typing
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, get_args, get_origin

import numpy as np
import pyarrow as pa

from deployer.errors import InvalidFunction, InvalidInput
from deployer.functions.structs import is_structure, structure_fields
from deployer.specs.types.arrow import column_of
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column, ColumnType, ListOf, MapOf, Scalar, Struct

_PYTHON: Mapping[Any, Scalar] = {
    bool: Scalar("bool"),
    int: Scalar("int64"),
    float: Scalar("float64"),
    str: Scalar("string"),
    bytes: Scalar("binary"),
    bytearray: Scalar("binary"),
    dt.date: Scalar("date32"),
    dt.datetime: Scalar("timestamp", ("us",)),
    dt.time: Scalar("time64", ("us",)),
    dt.timedelta: Scalar("duration", ("us",)),
    uuid.UUID: Scalar("uuid"),
    type(None): Scalar("null"),
}
_NUMPY: Mapping[Any, Scalar] = {
    np.bool_: Scalar("bool"),
    **{
        getattr(np, name): Scalar(name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    **{getattr(np, name): Scalar(name) for name in ("float16", "float32", "float64")},
    np.str_: Scalar("string"),
    np.bytes_: Scalar("binary"),
}
#: classes of arrays whose values have one known type
_ARRAYS: Mapping[Any, Scalar] = {
    getattr(pa, f"{name}Array"): Scalar(type_name)
    for name, type_name in (
        ("Boolean", "bool"),
        *((f"{sign}Int{bits}", f"{sign.lower()}int{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)),
        ("HalfFloat", "float16"),
        ("Float", "float32"),
        ("Double", "float64"),
        ("String", "string"),
        ("LargeString", "large_string"),
        ("Binary", "binary"),
        ("LargeBinary", "large_binary"),
        ("Date32", "date32"),
        ("Date64", "date64"),
    )
}
_UNIONS = (typing.Union, types.UnionType)
_SEQUENCES = (list, tuple, Sequence, typing.Sequence)


@dataclass(frozen=True, slots=True)
class Annotation:
    """The type of values in an annotation, None where it has none.

    `exact`: columns must have this type or a narrower one; a type of the same kind is not enough. `python`: the
    annotated type without Optional and Annotated; values are converted to it where it is a structure or a type of
    numpy.
    """

    type: ColumnType | None = None
    nullable: bool = True
    exact: bool = field(default=False, compare=False)
    python: Any = field(default=None, compare=False)
    is_array: bool = field(default=False, compare=False)
    is_batch: bool = field(default=False, compare=False)


def read_annotation(annotation: Any, where: str) -> Annotation:
    """Returns the meaning of an annotation.

    `where` names the annotation in errors, such as "parameter `a`". Raises InvalidFunction for an annotation that is
    not a type of columns.
    """
    given = annotation
    annotation, nullable = without_optional(annotation)
    if get_origin(annotation) is Annotated:
        return _annotated(annotation, nullable, where)
    if annotation is Any:
        return Annotation(nullable=True)
    if _is_untyped(annotation):
        return Annotation(None, nullable, python=annotation)
    if isinstance(annotation, type) and issubclass(annotation, pa.RecordBatch):
        return Annotation(is_batch=True, python=annotation)
    if isinstance(annotation, type) and issubclass(annotation, pa.Array | pa.ChunkedArray):
        return Annotation(_ARRAYS.get(annotation), exact=True, python=annotation, is_array=True)
    exact = isinstance(annotation, pa.DataType) or annotation in _hashable(_NUMPY, annotation)
    found = _type_of(annotation, where, given)
    return Annotation(found, nullable, exact, annotation)


def _annotated(annotation: Any, nullable: bool, where: str) -> Annotation:
    """Reads `Annotated[T, type]`: a type of Arrow, a type of specs or its text is more exact than T."""
    inner, *notes = get_args(annotation)
    said = next((note for note in notes if isinstance(note, pa.DataType | ColumnType)), None)
    if said is None:
        read = read_annotation(inner, where)
        return replace(read, nullable=nullable or read.nullable)
    python, inner_nullable = without_optional(inner)
    is_array = isinstance(python, type) and issubclass(python, pa.Array | pa.ChunkedArray)
    return Annotation(declared_type(said), nullable or inner_nullable, True, python, is_array)


def _is_untyped(annotation: Any) -> bool:
    """Returns whether an annotation is a known class that does not determine a type of columns."""
    if get_origin(annotation) is np.ndarray:
        arguments = get_args(annotation)
        return len(arguments) < 2 or get_args(arguments[1]) in ((), (Any,))
    return isinstance(annotation, type) and annotation in (list, tuple, dict, object, np.ndarray, decimal.Decimal)


def declared_type(given: Any) -> ColumnType:
    """Returns the type that `data_type` gives: Arrow's or a field of it, one of specs or its text, or a Python type.

    Raises InvalidFunction for anything else.
    """
    try:
        if isinstance(given, str):
            return parse_type(given)
        if isinstance(given, pa.Field):
            return column_of(given).type
        if isinstance(given, pa.DataType):
            return column_of(pa.field("value", given)).type
    except InvalidInput as error:
        raise InvalidFunction(error.what, where="data_type", remedy=error.remedy) from None
    if isinstance(given, ColumnType):
        return given
    return _type_of(without_optional(given)[0], "data_type", given)


def _type_of(annotation: Any, where: str, given: Any) -> ColumnType:
    if isinstance(annotation, pa.DataType | pa.Field | ColumnType):
        return declared_type(annotation)
    if found := _hashable(_PYTHON, annotation).get(annotation) or _hashable(_NUMPY, annotation).get(annotation):
        return found
    if is_structure(annotation):
        names = structure_fields(annotation, where)
        fields = (_column(name, each, f"{where}, field `{name}`") for name, each in names.items())
        return Struct(tuple(fields))
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is np.ndarray and len(arguments) == 2 and get_args(arguments[1]):
        return ListOf(Column("item", _type_of(get_args(arguments[1])[0], where, given)))
    if origin in _SEQUENCES and (len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is Ellipsis)):
        return ListOf(_column("item", arguments[0], f"{where}, items"))
    if origin in (dict, Mapping) and len(arguments) == 2:
        key = Column("key", _type_of(arguments[0], f"{where}, keys", given), nullable=False)
        return MapOf(key, _column("value", arguments[1], f"{where}, values"))
    if origin is typing.Literal and len({type(each) for each in arguments}) == 1:
        return _type_of(type(arguments[0]), where, given)
    raise InvalidFunction(
        f"the annotation {_shown(given)} names no type of columns", where=where, remedy=_remedy(given)
    )


def _column(name: str, annotation: Any, where: str) -> Column:
    read = read_annotation(annotation, where)
    if read.type is None:
        raise no_type(annotation, where)
    return Column(name, read.type)


def without_optional(annotation: Any) -> tuple[Any, bool]:
    """Returns T and whether None is allowed, of `T | None`, `Optional[T]` and T."""
    if annotation is None:
        return type(None), True
    if get_origin(annotation) not in _UNIONS:
        return annotation, False
    members = [each for each in get_args(annotation) if each is not type(None)]
    if len(members) == 1:
        return members[0], len(get_args(annotation)) > 1
    return annotation, True


def _hashable(known: Mapping[Any, Scalar], annotation: Any) -> Mapping[Any, Scalar]:
    try:
        hash(annotation)
    except TypeError:
        return {}
    return known


def no_type(annotation: Any, where: str) -> InvalidFunction:
    """Returns the error of an annotation that does not determine a type of columns."""
    what = f"the annotation {_shown(annotation)} names no type of columns"
    return InvalidFunction(what, where=where, remedy=_remedy(annotation))


def _shown(annotation: Any) -> str:
    return f"`{annotation.__name__ if isinstance(annotation, type) else annotation}`"


def _remedy(annotation: Any) -> str:
    if annotation is decimal.Decimal:
        return 'give the digits: udf(data_type="decimal128(10, 2)"), or Annotated[Decimal, pa.decimal128(10, 2)]'
    if _is_untyped(annotation):
        return "give the type of the items: list[float], npt.NDArray[np.float32], or give udf(data_type=…)"
    if get_origin(annotation) in _UNIONS:
        return "name one type, or that type | None"
    return "use a type such as int, float, str or a dataclass, or give the type: udf(data_type=…), Annotated[T, type]"
