"""Writes the generated pages of docs/: the commands, the specs, the errors and the Python API. `make reference` runs
it.

A test compares the pages with the output of this script.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(DOCS.parent))

import python_reference  # noqa: E402 -- its folder is on the path now

from deployer.app.operations.explain import errors_page  # noqa: E402
from deployer.cli import reference as commands  # noqa: E402
from deployer.specs.reference import document as specs  # noqa: E402

FOLDERS = ("commands", "python", "spec")  #: folders of docs/ with generated pages only


def pages() -> Mapping[str, str]:
    """Returns the text of each generated page, by path below docs/."""
    return {
        **commands.reference(),
        **specs.reference(),
        **python_reference.reference(),
        "errors.md": errors_page(),
    }


def main() -> None:
    written = pages()
    for folder in FOLDERS:
        for file in (DOCS / folder).glob("*.md"):
            if f"{folder}/{file.name}" not in written:
                file.unlink()
    for path, text in written.items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
