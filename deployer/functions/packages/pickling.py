"""The bytes of a function with its code, and the modules that it needs.

Code of the project is pickled by value, so that a job elsewhere runs the same code; installed packages are pickled by
name.
"""

from __future__ import annotations

import io
import sys
import sysconfig
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from deployer.errors import InvalidFunction
from deployer.functions.model import UDF, carrying, of_values
from deployer.functions.packages.imports import imports_of, installed_packages
from deployer.platform.text.visible import shortened

_OWN = ("deployer", "spark_jobs")  #: the job has these itself
_ROUNDS = 20  #: limit of rounds that find modules to pickle by value
_registering = threading.Lock()  #: the modules that are pickled by value are a setting of the process


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Notes which modules the objects come from, and the last object before a failure."""

    def __init__(self, file: io.BytesIO, by_value: Collection[str]) -> None:
        super().__init__(file)
        self._by_value = by_value
        self.modules: set[str] = set()
        self.imported: set[str] = set()
        self.names: dict[int, str] = {}
        self.last: Any = None

    def reducer_override(self, obj: Any) -> Any:
        """Notes an object, and lets cloudpickle choose its form. Raises TypeError for an open file, whose text
        cloudpickle would pickle."""
        self.last = obj
        if isinstance(obj, io.IOBase) and not isinstance(obj, io.BytesIO | io.StringIO):
            raise TypeError("an open file cannot be carried")
        if isinstance(obj, ModuleType):
            self.modules.add(obj.__name__)
            for name, value in vars(obj).items() if obj.__name__ in self._by_value else ():
                self.names.setdefault(id(value), f"`{name}` of the module `{obj.__name__}`")
        elif isinstance(obj, type | FunctionType):
            self.modules.add(obj.__module__ or "")
            if isinstance(obj, FunctionType):
                self.imported |= imports_of(obj)
                self._name_kept(obj)
        else:
            self.modules.add(type(obj).__module__)
            for name, value in vars(obj).items() if hasattr(obj, "__dict__") else ():
                self.names.setdefault(id(value), f"attribute `{name}` of `{type(obj).__name__}`")
        return super().reducer_override(obj)

    def _name_kept(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.names.setdefault(id(cell.cell_contents), f"`{name}`, which `{function.__qualname__}` keeps")
            except ValueError:  # it is not filled yet
                continue
        for name in names_in(function):
            if name in function.__globals__:
                self.names.setdefault(
                    id(function.__globals__[name]), f"the global `{name}`, which `{function.__qualname__}` uses"
                )


def names_in(function: FunctionType) -> Iterator[str]:
    """Yields the names of globals and attributes in the code of a function, and in that of functions inside of it."""
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        yield from code.co_names
        codes += [each for each in code.co_consts if isinstance(each, type(code))]


def pickled(udf: UDF) -> tuple[bytes, frozenset[str]]:
    """Returns the bytes of a UDF, and the names of the top-level modules that are needed to load and run it.

    Raises InvalidFunction, which names the object, where the function refers to an object that cannot be pickled.
    """
    local: set[str] = set()
    for _ in range(_ROUNDS):
        with _by_value(local):
            data, pickler = _dumped(udf, local)
        found = {name for name in pickler.modules if name not in local and is_local(name)}
        if not found:
            break
        local |= found
    referred = {name for name in pickler.modules - local if name in sys.modules}  # generated code names others
    needed = {name.partition(".")[0] for name in pickler.imported | referred}
    return data, frozenset(
        name for name in needed if name and name not in _OWN and name != "__main__" and not _is_standard(name)
    )


def unpickled(data: bytes) -> UDF:
    """Returns the UDF of such bytes. They run code: the caller has made sure that their author is trusted."""
    return of_values(cloudpickle.loads(data))


def _dumped(udf: UDF, by_value: Collection[str]) -> tuple[bytes, _Pickler]:
    file = io.BytesIO()
    pickler = _Pickler(file, by_value)
    try:
        with carrying():
            pickler.dump(udf.values())
    except RecursionError:
        raise InvalidFunction(
            "it keeps values that are nested too deeply to be carried",
            where=f"function `{udf.name}`",
            remedy="make them in the function, or in the `setup` of a class",
        ) from None
    except Exception as error:  # whatever the object's own methods raise
        what = pickler.names.get(id(pickler.last), f"an object of type `{type(pickler.last).__qualname__}`")
        raise InvalidFunction(
            f"{what} cannot be carried to another process: {shortened(str(error))}",
            where=f"function `{udf.name}`",
            remedy="open or make it in the function, or in the `setup` of a class",
        ) from None
    return file.getvalue(), pickler


@contextmanager
def _by_value(modules: set[str]) -> Iterator[None]:
    with _registering:
        known = cloudpickle.list_registry_pickle_by_value()
        added = [sys.modules[name] for name in modules if name in sys.modules and name not in known]
        try:
            for module in added:
                cloudpickle.register_pickle_by_value(module)
            yield
        finally:
            for module in added:
                cloudpickle.unregister_pickle_by_value(module)


def is_local(name: str) -> bool:
    """Returns whether a module is code of the project: it has a file, and no installed package has it."""
    top = name.partition(".")[0]
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if not file or name == "__main__" or top in _OWN or _is_standard(top) or top in installed_packages():
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _installed_folders())


def _is_standard(top: str) -> bool:
    return top in sys.stdlib_module_names


@lru_cache(maxsize=1)
def _installed_folders() -> tuple[str, ...]:
    paths: Mapping[str, str] = sysconfig.get_paths()
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})
