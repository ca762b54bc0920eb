"""Lists the texts that people read, as `file:line: kind: text`, so that they can be read from top to bottom.

`python .ci/messages.py [FOLDER…]` prints messages of errors with their remedies, help of commands and options, what is
printed, and docstrings. `--kind KIND` prints one kind; `--grep REGEX` prints the texts that match. Without folders it
reads deployer and spark_jobs.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
KINDS = ("error", "remedy", "help", "printed", "text", "docstring")
_PRINTS = re.compile(r"(^|\.)(print|echo|warn|warning|info|note|notice|report|progress|say|line|write|secho)$")
_HELP = {"help", "short_help", "epilog", "metavar"}


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the code: `kind` is one of KINDS, `line` is that of its first character."""

    path: Path
    line: int
    kind: str
    text: str


def texts_of(path: Path) -> Iterator[Text]:
    """Yields the texts of a module in the order of their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [Text(path, line, kind, text) for line, kind, text in (*_docstrings(tree), *_strings(tree))]
    yield from sorted(found, key=lambda text: (text.line, text.kind))


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, "docstring", text


def _strings(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yields each text with at least two words that is not a docstring, with its line and kind."""
    kinds: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            for keyword in node.keywords:
                if keyword.arg == "remedy":
                    kinds.update((id(part), "remedy") for part in ast.walk(keyword.value))
                elif keyword.arg in _HELP:
                    _mark(keyword.value, "help", kinds)
            if _PRINTS.search(name):
                for argument in node.args:
                    _mark(argument, "printed", kinds)
        if isinstance(node, ast.Raise) and node.exc is not None:
            _mark(node.exc, "error", kinds)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in docstrings or id(node) in parts:
            continue
        text = _text(node)
        if text is not None and len(text.split()) > 1:
            yield node.lineno, kinds.get(id(node), "text"), text  # type: ignore[attr-defined]


def _mark(node: ast.expr, kind: str, kinds: dict[int, str]) -> None:
    for each in ast.walk(node):
        kinds.setdefault(id(each), kind)


def _text(node: ast.AST) -> str | None:
    """Returns the text of a literal, with `{…}` for the variable parts."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(
                part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else f"{{{_inner(part)}}}"
                for part in values
            )
    return None


def _inner(part: ast.expr) -> str:
    return ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else "…"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", default=["deployer", "spark_jobs"])
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--grep", default="")
    options = parser.parse_args()
    for folder in options.folders:
        place = REPOSITORY / folder
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            for each in texts_of(path):
                if options.kind in (None, each.kind) and re.search(options.grep, each.text, re.IGNORECASE):
                    shown = each.text.replace("\n", "\n    ") if each.kind == "docstring" else repr(each.text)
                    print(f"{path.relative_to(REPOSITORY)}:{each.line}: {each.kind}: {shown}")


if __name__ == "__main__":
    main()
