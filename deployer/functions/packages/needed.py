"""Checks before a call that a function can run at its place: that the modules exist, and that the function can be
pickled."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from deployer.errors import InvalidFunction
from deployer.functions.model import UDF
from deployer.functions.packages.imports import imports_of, missing_modules
from deployer.functions.packages.pickling import is_local, names_in, pickled


def require_modules(udf: UDF) -> None:
    """Raises InvalidFunction where the code of a function, or code of the project that it calls, imports a module that
    this Python does not find. Nothing is imported or called."""
    refuse_missing(missing_modules(_imported(udf.function)), f"function `{udf.name}`")


def require_portable(udf: UDF, engine: str) -> None:
    """Raises InvalidFunction where a function is to run in another process and refers to an object that cannot be
    pickled.

    Tasks of Spark run in other processes, and calls with a timeout have a process of their own.
    """
    if engine == "spark" or (udf.timeout is not None and not udf.is_async):
        pickled(udf)


def refuse_missing(missing: tuple[str, ...], where: str, requirements: tuple[str, ...] = ()) -> None:
    """Raises InvalidFunction for modules that this Python does not find."""
    if missing:
        known = f" (it was made with {', '.join(requirements)})" if requirements else ""
        raise InvalidFunction(
            f"it imports {', '.join(missing)}, which this Python does not find",
            where=where,
            remedy=f"install the package{known}, or correct the import",
        )


def _imported(start: Any) -> set[str]:
    """Returns the modules that a function or class, and the project's code that it reaches, import when they run."""
    found: set[str] = set()
    todo, seen = [start], set[int]()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, FunctionType):
            found |= imports_of(each)
            todo += [value for value in _reached(each) if _is_followed(value)]
        elif isinstance(each, type):
            todo += [code for one in each.__mro__ if _is_followed(one) for code in _code_of(one)]
        elif isinstance(each, UDF):
            todo.append(each.function)
        elif isinstance(each, MethodType):
            todo.append(each.__func__)
        else:
            todo.append(type(each))
    return found


def _reached(function: FunctionType) -> Iterator[Any]:
    """Yields the objects that a function refers to: globals, values of its closure, and parts of modules."""
    names = [*names_in(function)]
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType) and is_local(value.__name__):
            yield from (getattr(value, part) for part in names if hasattr(value, part))
        else:
            yield value
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is not filled yet
            continue


def _is_followed(value: Any) -> bool:
    if isinstance(value, UDF | MethodType):
        return True
    if not isinstance(value, FunctionType | type):
        return False
    return value.__module__ == "__main__" or is_local(value.__module__ or "")


def _code_of(one: type) -> Iterator[Any]:
    for value in vars(one).values():
        if isinstance(value, property):
            yield from (each for each in (value.fget, value.fset) if each is not None)
        elif isinstance(value, staticmethod | classmethod):
            yield value.__func__
        elif isinstance(value, FunctionType):
            yield value
