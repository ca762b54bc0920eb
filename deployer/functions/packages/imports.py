"""Finds the modules that code imports, the packages that contain them, and the missing ones, without importing
anything."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from types import CodeType, FunctionType


def imports_of(function: FunctionType) -> set[str]:
    """Returns the modules that a function's code imports when it runs, except those inside of `try`, whose absence the
    code may handle."""
    return {name for name in _imports(function.__code__, function.__globals__.get("__package__") or "") if name}


def _imports(code: CodeType, package: str) -> Iterator[str]:
    bytecode = dis.Bytecode(code)
    instructions = list(bytecode)
    # From Python 3.12 on, the whole body of a coroutine or generator has a handler that turns StopIteration into
    # another error; it handles no import.
    own = {each.offset for each in instructions if each.opname == "CALL_INTRINSIC_1"}
    entries = getattr(bytecode, "exception_entries", ())
    handled = [(entry.start, entry.end) for entry in entries if entry.target not in own]
    constants: list[object] = [None, None]
    for each in instructions:
        if each.opname == "IMPORT_NAME" and not any(start <= each.offset < end for start, end in handled):
            level = constants[-2]
            yield package.partition(".")[0] if isinstance(level, int) and level > 0 else str(each.argval)
        elif each.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constants.append(each.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant, package)


def installed_packages() -> Mapping[str, Sequence[str]]:
    """Returns the installed packages by the top-level modules that they have."""
    return _installed(tuple(sys.path))


@lru_cache(maxsize=4)
def _installed(path: Sequence[str]) -> Mapping[str, Sequence[str]]:
    return metadata.packages_distributions()


def requirements_of(modules: Iterable[str]) -> tuple[str, ...]:
    """Returns `package==version` of the installed packages that have the modules, in alphabetical order."""
    packages = {name for module in modules for name in installed_packages().get(module, ())}
    return tuple(sorted(f"{name}=={metadata.version(name)}" for name in packages))


def missing_modules(modules: Iterable[str]) -> tuple[str, ...]:
    """Returns those of the top-level modules that this Python does not find, in alphabetical order."""
    return tuple(sorted({module for module in modules if not _is_there(module.partition(".")[0])}))


def _is_there(module: str) -> bool:
    if module in sys.modules:
        return True
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
