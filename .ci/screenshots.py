"""Writes docs/images/demo.svg: the demo of docs/index.md, run in a temporary folder, as a picture of its terminal.

`python .ci/screenshots.py` in the environment of `make test`. A test checks that the picture has the page's commands.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.docs.tutorial import Command, Edit, Reader, steps_of  # noqa: E402 -- the repository is on the path now

PAGE = REPOSITORY / "docs" / "index.md"
PICTURE = REPOSITORY / "docs" / "images" / "demo.svg"
WIDTH = 110  #: columns of the terminal
LINES = 14  #: of a command's output; what is longer is cut and marked
#: rich's picture without its fonts, which a reader would load from elsewhere, and without its address
FORMAT = re.sub(r"@font-face \{\{.*?\}\}|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def demo(folder: Path) -> Text:
    """Returns what a terminal shows of the demo. Raises SystemExit when a command of it fails."""
    home = folder / "home"
    home.mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "COLUMNS": str(WIDTH),
    }
    reader, shown = Reader(folder, environment), Text()
    for step in steps_of(PAGE.read_text(encoding="utf-8")):
        output = reader.take(step)
        if isinstance(step, Command):
            if reader.code:
                raise SystemExit(f"{PAGE.name}:{step.line}: {step.text} ends with {reader.code}:\n{output}")
            shown.append("$ ", "bold green").append(f"{step.text}\n", "bold").append(_cut(output))
            if step.text.startswith("cd "):
                reader.folder /= step.text.removeprefix("cd ")
        elif isinstance(step, Edit):
            for line in step.text.splitlines(keepends=True):
                shown.append(line, "red" if line[0] == "-" else "green")
    return shown


def _cut(output: str) -> str:
    lines = output.splitlines(keepends=True)
    return "".join(lines if len(lines) <= LINES else [*lines[: LINES - 1], "…\n"])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        console = Console(record=True, width=WIDTH, file=io.StringIO())
        console.print(demo(Path(folder)), end="")
    PICTURE.parent.mkdir(exist_ok=True)
    picture = console.export_svg(title="deployer", code_format=FORMAT, unique_id="demo")
    PICTURE.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
