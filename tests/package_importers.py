"""Which modules import each package, and the sentence in the package's docstring that says which may.

`python -m tests.package_importers` writes the sentences again. Where few modules import a package, the sentence names
them; otherwise it names the package that they are in, or the layers above.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.projects import REPOSITORY

ROOTS = ("deployer", "spark_jobs")
_IMPORT = re.compile(
    r"^ *(?:import (?P<module>(?:deployer|spark_jobs)[\w.]*)"
    r"|from (?P<source>(?:deployer|spark_jobs)[\w.]*) import (?P<names>\([^)]*\)|[^\n#]*))",
    re.MULTILINE,
)
MOST_NAMED = 3  #: importers that a sentence names one by one


def modules() -> dict[str, Path]:
    """Returns the file of each module; of a package it is its `__init__.py`."""
    files = sorted(path for root in ROOTS for path in (REPOSITORY / root).rglob("*.py"))
    return {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path for path in files
    }


def importers_of_packages() -> Mapping[str, frozenset[str]]:
    """Returns the modules outside of each package that import something of it."""
    known = modules()
    importers = defaultdict[str, set[str]](set)
    for module, path in known.items():
        for imported in _imported(path.read_text(encoding="utf-8"), known):
            importers[imported].add(module)
    packages = [name for name, path in known.items() if path.name == "__init__.py" and name not in ROOTS]
    return {
        package: frozenset(
            importer
            for imported, several in importers.items()
            if is_in(imported, package)
            for importer in several
            if not is_in(importer, package)
        )
        for package in packages
    }


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def sentence_of(package: str, importers: frozenset[str]) -> str:
    """Returns the sentence about what may import the package, by what imports it."""
    parent, top = package.rpartition(".")[0], ".".join(package.split(".")[:2])
    near = {_child(importer, parent) for importer in importers if is_in(importer, parent) and package != top}
    far = {_child(importer, "deployer") for importer in importers if package == top or not is_in(importer, parent)}
    inside = {each for each in far if each == top}
    who = _named(near, f"the rest of `{parent}`")
    who += [f"the rest of `{top}`"] if inside else []
    who += _named(far - inside, "every layer above it" if package == top else f"every layer above `{top}`")
    if not who:
        return "Programs import it; no other package may import it."
    return f"{_listed(who)} may import it."


def documented_importers(docstring: str) -> str:
    """Returns the sentence of a docstring about what may import its package, or ''."""
    last = docstring.rsplit("\n\n", 1)[-1].replace("\n", " ")
    return last if last.endswith("may import it.") else ""


def _imported(source: str, known: Mapping[str, Path]) -> Iterator[str]:
    for imported in _IMPORT.finditer(source):
        if imported["module"]:
            yield imported["module"]
            continue
        for name in re.findall(r"\w+", imported["names"]):
            module = f"{imported['source']}.{name}"
            yield module if module in known else imported["source"]


def _child(module: str, parent: str) -> str:
    """Returns the part of a module's name that is one below `parent`; of a module elsewhere, its first part."""
    depth = len(parent.split(".")) + 1 if is_in(module, parent) else 1
    return ".".join(module.split(".")[:depth])


def _named(importers: set[str], otherwise: str) -> list[str]:
    return [f"`{each}`" for each in sorted(importers)] if len(importers) <= MOST_NAMED else [otherwise]


def _listed(who: list[str]) -> str:
    text = f"{', '.join(who[:-1])} and {who[-1]}" if len(who) > 1 else who[0]
    return text[0].upper() + text[1:]


def _write() -> None:
    known = modules()
    for package, importers in importers_of_packages().items():
        source = known[package].read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(source))
        if docstring is None:
            continue  # a person writes what the package contains
        before = documented_importers(docstring)
        after = sentence_of(package, importers)
        if before == after:
            continue
        text = docstring.rsplit("\n\n", 1)[0] if before else docstring
        end = source.index('"""', 3)
        sentence = textwrap.fill(after, 120, break_long_words=False, break_on_hyphens=False)
        known[package].write_text(f'"""{text}\n\n{sentence}\n"""{source[end + 3 :]}', encoding="utf-8")


if __name__ == "__main__":
    _write()
