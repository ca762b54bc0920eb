"""Each package says what it contains and what may import it, and nothing else imports it."""

from __future__ import annotations

import ast

from tests.package_importers import documented_importers, importers_of_packages, modules, sentence_of


def test_packages_say_what_they_contain_and_what_may_import_them() -> None:
    """`python -m tests.package_importers` writes the sentences again; read what changed: is the import wanted?"""
    known, wrong = modules(), []
    for package, importers in importers_of_packages().items():
        docstring = ast.get_docstring(ast.parse(known[package].read_text(encoding="utf-8"))) or ""
        documented, actual = documented_importers(docstring), sentence_of(package, importers)
        if docstring == documented:
            wrong.append(f"{package} does not say what it contains")
        elif documented != actual:
            wrong.append(f"{package}: {documented!r}, but its importers give {actual!r}")
    assert not wrong, "\n".join(wrong)
