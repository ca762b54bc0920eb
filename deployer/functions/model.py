"""The model of a function: its inputs, its outputs, and the result of a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, Literal

import cloudpickle
import pyarrow as pa

from deployer.functions.annotations import Annotation
from deployer.functions.error_policy import ErrorPolicy
from deployer.functions.sources import check_arguments, version_with
from deployer.specs.types.types import ColumnType, format_type

Form = Literal["scalar", "arrow", "batch"]
DEFAULT_CONCURRENT_CALLS = 32  #: of an async function


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of a function, and the meaning of its annotation; `annotation.type` is None where the annotation has
    no type."""

    name: str
    annotation: Annotation = field(default_factory=Annotation)


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a function makes. `name` is None where the user of the function names its only column.

    `nullable`: the function may return null. The column is null anyway where it is not computed yet.
    """

    name: str | None
    type: ColumnType
    nullable: bool = True


@dataclass(frozen=True, repr=False)
class UDF:
    """A function of rows, made by `udf`.

    `form`: it gets one value per parameter ("scalar"), one Arrow array per parameter ("arrow"), or one RecordBatch
    ("batch", which has no parameters). `version` names what it computes: given, or a hash of its source.

    `batch_size` is the number of rows of one call, None for as many as are read at once. In seconds: `timeout` of one
    call. In bytes: `memory`.
    """

    function: Callable[..., Any]  #: a function, a class to set up once per worker, or an instance of one
    name: str
    form: Form
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    version: str
    input_columns: tuple[str, ...] | None = None  #: the columns of the parameters, where they have other names
    batch_size: int | None = None
    timeout: float | None = None
    num_cpus: float = 1.0
    memory: int | None = None
    num_gpus: float = 0.0
    on_error: ErrorPolicy = ErrorPolicy()
    is_class: bool = False
    is_async: bool = False
    max_concurrent_calls: int = DEFAULT_CONCURRENT_CALLS  #: of an async function, in one worker
    #: Of the class's constructor, positional and named; None where it was not called.
    arguments: tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]] | None = None
    source: str = field(default="", compare=False, repr=False)  #: text of the function; empty where it is unknown

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters, which are the columns that it reads by default; empty for form "batch"."""
        return tuple(each.name for each in self.inputs)

    @property
    def input_types(self) -> Mapping[str, ColumnType]:
        """The types of the annotated parameters."""
        return {each.name: each.annotation.type for each in self.inputs if each.annotation.type is not None}

    @property
    def is_multiple(self) -> bool:
        """Returns whether it makes several columns, as functions that return `Columns[T]` do."""
        return self.outputs[0].name is not None

    def __repr__(self) -> str:
        made = ", ".join(
            f"{each.name}: {format_type(each.type)}" if each.name else format_type(each.type) for each in self.outputs
        )
        read = "batch" if self.form == "batch" else ", ".join(self.parameters)
        return f"<UDF {self.name}({read}) -> {made}>"

    def construct(self) -> Callable[..., Any]:
        """Returns the object that is called for rows, before its set-up; a class is constructed."""
        if not self.is_class:
            return self.function
        positional, named = self.arguments or ((), ())
        made: Callable[..., Any] = self.function(*positional, **dict(named))
        return made

    def instance(self) -> Callable[..., Any]:
        """Returns the object that is called for rows; a class is constructed, and its `setup` is called if it has
        one."""
        made = self.construct()
        if not isinstance(made, FunctionType | type) and callable(setup := getattr(made, "setup", None)):
            setup()
        return made

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function, as if it were not decorated.

        For a class, returns the UDF with these arguments for the constructor, which workers call; a call of that UDF
        constructs an instance and calls it. Raises InvalidFunction for arguments that the constructor does not take.
        """
        if not self.is_class:
            return self.function(*arguments, **named)
        if self.arguments is not None:
            return self.instance()(*arguments, **named)
        check_arguments(self.function, arguments, named, f"function `{self.name}`")
        given = (arguments, tuple(sorted(named.items())))
        return replace(self, arguments=given, version=version_with(self.version, given) if any(given) else self.version)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the UDF with its code. The decorated name refers to the UDF, so pickle would not find the function by
        its name."""
        if getattr(_carrying, "active", False):  # its own code, or that of another UDF, refers to it
            return of_values, (self.values(),)
        with carrying():
            return _loaded, (cloudpickle.dumps(self.values()),)

    def values(self) -> dict[str, Any]:
        """Returns the fields by their names, as `of_values` takes them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


_carrying = threading.local()


@contextmanager
def carrying() -> Iterator[None]:
    """Within the block, cloudpickle pickles functions with the UDFs that their code refers to."""
    before = getattr(_carrying, "active", False)
    _carrying.active = True
    try:
        yield
    finally:
        _carrying.active = before


def of_values(values: Mapping[str, Any]) -> UDF:
    """Returns the UDF with these fields; fields that only another release of deployer has are left out."""
    return UDF(**{name: value for name, value in values.items() if name in UDF.__dataclass_fields__})


def _loaded(data: bytes) -> UDF:
    return of_values(cloudpickle.loads(data))


@dataclass(frozen=True, slots=True)
class Failure:
    """A row for which the function failed. `row` counts from 0 in the batch; `attempts` are the calls made.

    `traceback` is shortened, and known secrets in it and in `message` are masked.
    """

    row: int
    error_type: str
    message: str
    traceback: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of a function for a batch: one row for each row of the batch, null in all columns where the function
    failed."""

    values: pa.RecordBatch
    failures: tuple[Failure, ...] = ()
