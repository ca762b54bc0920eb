"""The pages of the Python API below docs/python/, made from signatures and docstrings, without importing the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
GENERATED = "<!-- Made by `make reference` from the docstrings. Do not edit. -->"
_DEFINITIONS = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A page about a module with its public names. Without names, the page has those of `__all__`."""

    name: str
    names: Sequence[str] = ()


PAGES: Mapping[str, Sequence[Module]] = {
    "app": [Module("deployer.app")],
    "table": [Module("deployer.table")],
    "read-and-append": [
        Module("deployer.tables.read.table", ("open_table", "Table")),
        Module("deployer.tables.append", ("open_appender", "Appender")),
        Module("deployer.services.savepoints.read_lease", ("leased",)),
    ],
    "functions": [Module("deployer.functions")],
    "search": [Module("deployer.search")],
    "services": [Module("deployer.services")],
    "policy": [Module("deployer.policy")],
    "components": [Module("deployer.components")],
    "catalog": [Module("deployer.catalog")],
    "spark": [Module("deployer.spark")],
    "state": [Module("deployer.state")],
    "errors": [Module("deployer.errors")],
}


def reference() -> Mapping[str, str]:
    """Returns the Markdown of each page, by path below docs/."""
    return {f"python/{page}.md": "\n".join(_page(modules)).rstrip() + "\n" for page, modules in PAGES.items()}


def public_names(module: Module) -> Sequence[str]:
    """Returns the names that a page describes."""
    if module.names:
        return module.names
    for node in _tree(module.name).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return [node.name for node in _tree(module.name).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]


def _page(modules: Sequence[Module]) -> Iterator[str]:
    title = modules[0].name if len(modules) == 1 else "Read and append"
    yield from (f"# {title}", "", GENERATED, "")
    for module in modules:
        if len(modules) == 1:
            yield from (*_purpose(module.name), "")
        for name in public_names(module):
            yield from _name(module.name, name)


def _name(module: str, name: str) -> Iterator[str]:
    source, node = _definition(module, name)
    yield from (f"## {name}", "", f"`from {module} import {name}`", "")
    match node:
        case ast.ClassDef():
            yield from (*_class_signature(node), "", *_docstring(node), "")
            for method in _methods(node):
                yield from (f"### {name}.{method.name}", "", *_signature(method), "", *_docstring(method), "")
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (*_signature(node), "", *_docstring(node), "")
        case _:
            yield from ("```python", ast.unparse(node), "```", "", _comment_before(source, node), "")


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yields the public methods and properties that have a docstring."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name[0] != "_" and ast.get_docstring(each):
            yield each


def _class_signature(node: ast.ClassDef) -> Iterator[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    yield from ("```python", f"class {node.name}({bases}):" if bases else f"class {node.name}:")
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and ast.unparse(each.target)[0] != "_"]
    yield from (f"    {ast.unparse(each)}" for each in fields)
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            yield from (f"    {line}" for line in _lines(each))
    yield "```"


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    yield from ("```python", *_lines(node), "```")


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yields a signature: on one line if it has at most 100 characters, otherwise with a line for each parameter."""
    yield from (f"@{ast.unparse(each)}" for each in node.decorator_list if ast.unparse(each) != "overload")
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    end = f") -> {ast.unparse(node.returns)}" if node.returns else ")"
    line = f"{start} {node.name}({ast.unparse(node.args)}{end}"
    if len(line) <= 100:
        yield line
        return
    yield f"{start} {node.name}("
    yield from (f"    {each}," for each in _parameters(node.args))
    yield end


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    """Yields each parameter with its type and default, and `/` and `*` where they separate parameters."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(positional) - len(arguments.defaults)), *arguments.defaults]
    for number, (each, default) in enumerate(zip(positional, defaults, strict=True), 1):
        yield _parameter(each, default)
        if number == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(each, default)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(argument) + (f" = {ast.unparse(default)}" if default else "")


def _purpose(module: str) -> Iterator[str]:
    """Yields the docstring of a module without the paragraph about the packages that may import it."""
    paragraphs = (ast.get_docstring(_tree(module)) or "").split("\n\n")
    yield "\n\n".join(each for each in paragraphs if not each.endswith("may import it."))


def _docstring(node: _DEFINITIONS | ast.Module) -> Sequence[str]:
    text = ast.get_docstring(node) or ""
    return cleandoc(text).replace("<", "&lt;").splitlines() if "`" not in text else cleandoc(text).splitlines()


def _comment_before(path: Path, node: ast.stmt) -> str:
    """Returns the comment `#:` above an assignment or at its end."""
    lines = path.read_text(encoding="utf-8").splitlines()
    _, _, behind = lines[node.lineno - 1].partition("#: ")
    above: list[str] = []
    at = node.lineno - 2
    while lines[at].startswith("#: "):
        above.insert(0, lines[at].removeprefix("#: "))
        at -= 1
    return behind or " ".join(above)


def _definition(module: str, name: str) -> tuple[Path, ast.stmt]:
    """Returns the file and the statement that define a name of a module; it follows imports. Raises LookupError for a
    name without a definition."""
    for node in ast.walk(_tree(module)):
        match node:
            case ast.ImportFrom(module=str(origin), level=0) if origin.startswith("deployer"):
                for each in node.names:
                    if (each.asname or each.name) == name:
                        return _definition(origin, each.name)
    found: list[ast.stmt] = []
    for statement in _tree(module).body:
        if isinstance(statement, _DEFINITIONS) and statement.name == name:
            found.append(statement)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if name in map(ast.unparse, targets):
                found.append(statement)
    if not found:
        raise LookupError(f"{module} does not define {name}")
    return _path(module), found[-1]  # the last one, after the overloads


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_path(module).read_text(encoding="utf-8"))


def _path(module: str) -> Path:
    path = REPOSITORY.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
