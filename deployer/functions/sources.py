"""The text of functions, and a version computed from it, by which a changed function is detected."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deployer.errors import InvalidFunction

_DIGITS = 16  #: hexadecimal digits of a version
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def source_of(function: Callable[..., Any]) -> str:
    """Returns the text of a function or class from its file; for an instance, that of its class. Empty where no file
    has it, as for a function that is typed at Python's prompt."""
    described = function if isinstance(function, type) or inspect.isroutine(function) else type(function)
    try:
        return textwrap.dedent(inspect.getsource(inspect.unwrap(described)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""


def version_of(function: Callable[..., Any], source: str) -> str:
    """Returns the version of a function: a hash of its text without comments, formatting and decorators, and of the
    plain values of its closure.

    Where the text is unknown, the hash is that of its bytecode. Other functions that it calls do not count.
    """
    parts = [_canonical(source) or "\n".join(_codes(function)), *_kept(function)]
    return _digest(*parts)


def version_with(version: str, arguments: object) -> str:
    """Returns the version of a class that is constructed with these arguments, from that of the class."""
    return f"{version}-{_digest(_plain(arguments))[:8]}"


def check_arguments(
    function: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any], where: str
) -> None:
    """Raises InvalidFunction for arguments that the constructor of a class does not take."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError as error:
        raise InvalidFunction(
            f"the constructor does not take these arguments: {error}", where=where, remedy="correct the arguments"
        ) from None
    except ValueError:  # Python does not know its signature
        return


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _canonical(source: str) -> str:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a part of a line, such as a lambda among arguments
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.decorator_list = []
    return ast.unparse(tree)


def _codes(function: Callable[..., Any]) -> Iterator[str]:
    """Yields the bytecode of a function or of a class's methods, with constants and names."""
    described = inspect.unwrap(function) if inspect.isroutine(function) else function
    if isinstance(described, types.FunctionType | types.MethodType):
        yield from _code(described.__code__)
        return
    of = described if isinstance(described, type) else type(described)
    yield f"{of.__module__}.{of.__qualname__}"
    for name, value in sorted(vars(of).items()):
        if isinstance(value, types.FunctionType):
            yield name
            yield from _code(value.__code__)


def _code(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield _plain(constant)


def _kept(function: Callable[..., Any]) -> Iterator[str]:
    """Yields the defaults, and the values of the closure or instance."""
    if isinstance(function, types.FunctionType):
        yield _plain((function.__defaults__, function.__kwdefaults__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield f"{name}={_plain(cell.cell_contents)}"
            except ValueError:  # it is not filled yet
                continue
    elif not isinstance(function, type) and hasattr(function, "__dict__"):
        yield _plain(vars(function))


def _plain(value: Any) -> str:
    """Returns a text for a value that is the same in every process; for values without such a text, the name of their
    type."""
    match value:
        case list() | tuple():
            return f"[{','.join(map(_plain, value))}]"
        case set() | frozenset():
            return f"{{{','.join(sorted(map(_plain, value)))}}}"
        case dict():
            return f"{{{','.join(sorted(f'{_plain(key)}:{_plain(each)}' for key, each in value.items()))}}}"
        case _ if isinstance(value, _PLAIN):
            return repr(value)
        case _:
            return f"<{type(value).__module__}.{type(value).__qualname__}>"
