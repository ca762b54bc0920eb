"""Collects the project's modules that jobs import on clusters: the modules of the functions that specs name, and the
modules that these import.

Modules are parsed and never imported. A module may import from the standard library, the packages of jobs and the
project. Therefore a missing package is found before a job starts.
"""

from __future__ import annotations

import ast
import io
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deployer.compute.packaging.lock_file import canonical
from deployer.compute.packaging.requirements import ON_CLUSTERS, REQUIREMENTS, pins
from deployer.errors import DeployerError, InvalidInput
from deployer.functions.packages.imports import installed_packages
from deployer.platform.files.reading import read_limited
from deployer.specs.sources.modules import MAX_SOURCE

LARGEST = 50 * 2**20  #: most bytes of all files of the modules
_TIME = (1980, 1, 1, 0, 0, 0)
_OWN = ("deployer", "spark_jobs", *ON_CLUSTERS)


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A function `package.module:function` that specs name. `where` names the column. `required` states that jobs on a
    cluster call the function, so that they must be able to import it."""

    name: str
    where: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class ProjectModules:
    """The modules as the bytes of a zip file (empty for none), and the functions that jobs can import from it."""

    contents: bytes = b""
    functions: tuple[str, ...] = ()


def project_modules(
    project: Path, functions: Iterable[NamedFunction], requirements: Sequence[str] = ()
) -> ProjectModules:
    """Returns the modules of the functions that jobs can import. The same files give the same bytes.

    `requirements` are packages that jobs have in addition to their own packages. Raises InvalidInput for a required
    function whose module is missing, lacks the function or imports a package that jobs do not have, and for files that
    are too large.
    """
    found: set[str] = set()
    roots: set[Path] = set()
    for each in functions:
        modules = _Modules(project, each, requirements)
        try:
            modules.read(each.name.partition(":")[0], each.name.partition(":")[2])
        except InvalidInput:
            if each.required:
                raise
            continue
        found.add(each.name)
        roots |= modules.roots
    return ProjectModules(_zipped(roots) if roots else b"", tuple(sorted(found)))


class _Modules:
    """The modules that one function needs. `roots` are the project's files and folders that become modules of jobs."""

    def __init__(self, project: Path, function: NamedFunction, requirements: Sequence[str]) -> None:
        self._folders, self._requirements = (project, project / "src"), requirements
        self._project, self._function = project.resolve(), function
        self._read: set[str] = set()
        self.roots: set[Path] = set()

    def read(self, module: str, function: str) -> None:
        """Parses the function's module and all modules of the project that it imports. Raises InvalidInput for a
        missing module or function, and for an import of a package that jobs do not have."""
        path = self._file(module)
        if path is None:
            if not _is_of_jobs(module.partition(".")[0], self._requirements):
                raise self._problem(
                    f"the project has no module {module}, and the packages of jobs have none",
                    f"write the module below the project's folder: {module.replace('.', '/')}.py",
                )
            return
        tree = self._tree(path)
        if function not in _names(tree):
            raise self._problem(f"{path.name} of the project has no `{function}`", "correct the name in the spec")
        todo = [module]
        while todo:
            todo += self._needed(todo.pop())

    def _needed(self, module: str) -> Iterator[str]:
        """Yields the project's modules that a module imports, and the package that contains the module."""
        if module in self._read:
            return
        self._read.add(module)
        path = self._file(module)
        if path is None:
            return
        self.roots.add(self._root(path))
        yield from (parent for parent in [module.rpartition(".")[0]] if parent)
        for imported in _imports(self._tree(path), module, is_package=path.name == "__init__.py"):
            top = imported.partition(".")[0]
            if self._file(imported) is not None:
                yield imported
            elif self._file(top) is None and not self._is_folder(top) and not _is_of_jobs(top, self._requirements):
                raise self._problem(
                    f"module {module} imports {top}, which the packages of jobs on clusters do not have",
                    f"name its package in `requirements` of the cluster; or put {top} into the project, beside "
                    f"{self._root(path).name}; or import it inside of `try`, if the function works without it",
                )

    def _file(self, module: str) -> Path | None:
        parts = module.split(".")
        for folder in self._folders:
            for path in (folder.joinpath(*parts).with_suffix(".py"), folder.joinpath(*parts, "__init__.py")):
                if path.is_file() and path.resolve().is_relative_to(self._project):
                    return path
        return None

    def _is_folder(self, top: str) -> bool:
        """Returns whether `top` is a package of the project without `__init__.py`."""
        return any((folder / top).is_dir() and any((folder / top).glob("*.py")) for folder in self._folders)

    def _root(self, path: Path) -> Path:
        folder = next(each for each in reversed(self._folders) if path.is_relative_to(each))
        return folder / path.relative_to(folder).parts[0]

    def _tree(self, path: Path) -> ast.Module:
        try:
            return ast.parse(read_limited(path, MAX_SOURCE), str(path))
        except (SyntaxError, ValueError, OSError, DeployerError) as error:
            raise self._problem(f"{path.name} cannot be read: {error}", "correct the module") from error

    def _problem(self, what: str, remedy: str) -> InvalidInput:
        return InvalidInput(f"function `{self._function.name}`: {what}", where=self._function.where, remedy=remedy)


def not_of_jobs(modules: Iterable[str], requirements: Sequence[str] = ()) -> tuple[str, ...]:
    """Returns the modules that jobs on clusters cannot import without the project, in alphabetical order.
    `requirements` are packages that jobs have in addition to their own packages."""
    return tuple(sorted(each for each in set(modules) if not _is_of_jobs(each.partition(".")[0], requirements)))


def _is_of_jobs(top: str, requirements: Sequence[str]) -> bool:
    if top in sys.stdlib_module_names or top in _OWN:
        return True
    packed = {pin.partition("==")[0] for pin in pins((*REQUIREMENTS.values(), *requirements))}
    return any(canonical(name) in packed for name in installed_packages().get(top, ()))


def _names(tree: ast.Module) -> set[str]:
    """Returns the names that a module defines or imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Name(ctx=ast.Store()):
                found.add(node.id)
            case ast.alias():
                found.add(node.asname or node.name.partition(".")[0])
    return found


def _imports(node: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    """Yields the modules that a module imports. Skips imports within `try`, whose failure the module may handle, and
    imports for type checkers only."""
    match node:
        case ast.Try():
            return
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return
        case ast.Import():
            yield from (each.name for each in node.names)
        case ast.ImportFrom():
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                kept = parts[: len(parts) - node.level + is_package]
                base = ".".join([*kept, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{each.name}" for each in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, module, is_package=is_package)


def _zipped(roots: Iterable[Path]) -> bytes:
    files = {path.relative_to(root.parent).as_posix(): path for root in roots for path in _files(root)}
    buffer, size = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w") as found:
        for name, path in sorted(files.items()):
            contents = path.read_bytes()
            size += len(contents)
            if size > LARGEST:
                raise InvalidInput(
                    f"the modules of functions have more than {LARGEST // 2**20} MiB of files",
                    where=path,
                    remedy="keep data out of packages of functions; read it in `setup` from storage",
                )
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr, entry.compress_type, entry.create_system = 0o644 << 16, zipfile.ZIP_DEFLATED, 3
            found.writestr(entry, contents)
    return buffer.getvalue()


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for path in root.rglob("*"):
        inside = path.relative_to(root).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside)
        if path.is_file() and not hidden and path.suffix != ".pyc" and path.resolve().is_relative_to(root.resolve()):
            yield path
