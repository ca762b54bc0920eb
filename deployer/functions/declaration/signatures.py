"""The parameters and the result of a function as its signature declares them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from deployer.errors import InvalidFunction
from deployer.functions.annotations import Annotation, declared_type, no_type, read_annotation
from deployer.functions.columns import COLUMNS
from deployer.functions.model import Form, Input, Output
from deployer.functions.structs import is_structure, structure_fields
from deployer.specs.types.types import ColumnType

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Signature:
    """The form of a function, its inputs and its outputs."""

    form: Form
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]


def read_signature(
    function: Callable[..., Any], data_type: Any, *, nullable: bool, scope: Mapping[str, Any], where: str
) -> Signature:
    """Returns the signature of a function or of the `__call__` of a class.

    `scope` has names that its annotations may use beside those of its module. Raises InvalidFunction for a signature
    that rows cannot be passed to, and for a result without a type.
    """
    called = called_function(function, where)
    annotations = _annotations(called, scope, where)
    try:
        inputs = _inputs(called, annotations, where)
        form, inputs = _form(inputs, annotations.get("return"), where)
        return Signature(form, inputs, _outputs(annotations.get("return"), data_type, nullable, where))
    except RecursionError:
        raise InvalidFunction(
            "an annotation contains itself", where=where, remedy="columns are of finite types: give udf(data_type=…)"
        ) from None


def called_function(function: Callable[..., Any], where: str) -> Callable[..., Any]:
    """Returns the function with the signature: the function itself, or the unbound `__call__` of a class or
    instance."""
    if isinstance(function, type):
        called = inspect.getattr_static(function, "__call__", None)
        if not inspect.isfunction(called):
            raise InvalidFunction(
                f"the class `{function.__name__}` has no method __call__",
                where=where,
                remedy="write `def __call__(self, …)`, which is called for rows",
            )
        return functools.partial(called, None)
    if isinstance(function, functools.partial) or inspect.isroutine(function):
        return function
    return function.__call__  # type: ignore[no-any-return, operator]  # of an instance


def _annotations(called: Callable[..., Any], scope: Mapping[str, Any], where: str) -> dict[str, Any]:
    function = called
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    try:
        return dict(inspect.get_annotations(function, locals=dict(scope), eval_str=True))
    except TypeError:  # a built-in function has none
        return {}
    except Exception as error:  # the text of an annotation may raise any exception
        raise InvalidFunction(
            f"the annotations cannot be evaluated: {type(error).__name__}: {error}",
            where=where,
            remedy="import or define the types at the top of the module",
        ) from None


def _inputs(called: Callable[..., Any], annotations: Mapping[str, Any], where: str) -> tuple[Input, ...]:
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        raise InvalidFunction(
            "Python does not know its parameters", where=where, remedy="wrap it: def f(a): return that(a)"
        ) from None
    found = []
    for each in parameters:
        if each.kind in _POSITIONAL:
            annotation = annotations.get(each.name, Any)
            found.append(Input(each.name, read_annotation(annotation, f"{where}, parameter `{each.name}`")))
        elif each.kind is inspect.Parameter.KEYWORD_ONLY and each.default is not inspect.Parameter.empty:
            continue  # the parameter keeps its default
        else:
            raise InvalidFunction(
                f"the parameter `{each}` names no column",
                where=where,
                remedy="use positional parameters, one per column; a keyword-only one needs a default",
            )
    if not found:
        raise InvalidFunction(
            "it has no parameters, so it reads no column", where=where, remedy="name columns: def f(a: int)"
        )
    return tuple(found)


def _form(inputs: tuple[Input, ...], returned: Any, where: str) -> tuple[Form, tuple[Input, ...]]:
    if any(each.annotation.is_batch for each in inputs):
        if len(inputs) > 1:
            raise InvalidFunction(
                "it has a parameter for a RecordBatch beside others", where=where, remedy="take the RecordBatch alone"
            )
        return "batch", ()
    result = read_annotation(returned, where) if _is_arrow(returned) else Annotation()
    arrays = [each for each in inputs if each.annotation.is_array]
    if not arrays and not result.is_array:
        return "scalar", inputs
    values = [each.name for each in inputs if not each.annotation.is_array and each.annotation.python is not None]
    if values:
        others = f"`{arrays[0].name}`" if arrays else "the result"
        raise InvalidFunction(
            f"the parameter `{values[0]}` is annotated as a value, and {others} as an array",
            where=where,
            remedy="annotate all of them as pa.Array, or none",
        )
    return "arrow", inputs


def _is_arrow(returned: Any) -> bool:
    import pyarrow as pa

    inner = get_args(returned)[0] if get_origin(returned) is Annotated else returned
    return isinstance(inner, type) and issubclass(inner, pa.Array | pa.ChunkedArray)


def _outputs(returned: Any, data_type: Any, nullable: bool, where: str) -> tuple[Output, ...]:
    place = f"{where}, its result"
    if get_origin(returned) is Annotated and COLUMNS in get_args(returned):
        if data_type is not None:
            raise InvalidFunction(
                "it returns Columns[…], and data_type is given", where=where, remedy="leave data_type out"
            )
        return _columns(get_args(returned)[0], nullable, place)
    if data_type is not None:
        return (Output(None, declared_type(data_type), nullable),)
    said: ColumnType | None = None
    if returned is not None and not _is_batch(returned):
        read = read_annotation(returned, place)
        said = read.type
        if said is None and not read.is_array and read.python is not None:
            raise no_type(returned, place)
    if said is None:
        raise InvalidFunction(
            "its result has no type", where=where, remedy="annotate it (-> float), or give udf(data_type=…)"
        )
    return (Output(None, said, nullable),)


def _is_batch(returned: Any) -> bool:
    import pyarrow as pa

    return isinstance(returned, type) and issubclass(returned, pa.RecordBatch)


def _columns(structure: Any, nullable: bool, where: str) -> tuple[Output, ...]:
    if not is_structure(structure):
        raise InvalidFunction(
            f"Columns[{getattr(structure, '__name__', structure)}] has no named fields",
            where=where,
            remedy="use a NamedTuple, a dataclass or a model of pydantic",
        )
    outputs = []
    for name, annotation in structure_fields(structure, where).items():
        read = read_annotation(annotation, f"{where}, field `{name}`")
        if read.type is None:
            raise no_type(annotation, f"{where}, field `{name}`")
        outputs.append(Output(name, read.type, nullable))
    return tuple(outputs)
