"""Writes docs/images/demo.svg and report.png: the terminal of the demo in docs/index.md, and a report of its lake.

`python .ci/screenshots.py` in the environment of `make test` runs the demo in a temporary folder. The picture of the
report needs Chromium on PATH. A test checks that the picture of the terminal has the page's commands.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
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
IMAGES = REPOSITORY / "docs" / "images"
WIDTH = 110  #: columns of the terminal
LINES = 14  #: lines of a command's output; longer output is cut and marked
#: rich's picture without its fonts, which a viewer would load from the network, and without its address
FORMAT = re.sub(r"@font-face \{\{.*?\}\}|<!--.*?-->", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REPORT_SIZE = (1200, 1400)  #: pixels of the report's picture
#: Commands before the report: with them, its table has services and several versions.
BEFORE_REPORT = (
    "printf 'services: {compact: {trigger: {commits: 3}}, clean: {}}\\n' >> specs/trips.yaml",
    "deployer up --yes",
    *["deployer ingest trips data/trips.csv --rename distance=kilometres"] * 3,
    "deployer column backfill trips miles",
    "deployer report --html report.html",
)


def demo(folder: Path) -> tuple[Text, Reader]:
    """Returns the terminal's text of the demo, and the demo's reader. Raises SystemExit when a command of the demo
    fails."""
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
    return shown, reader


def _cut(output: str) -> str:
    lines = output.splitlines(keepends=True)
    return "".join(lines if len(lines) <= LINES else [*lines[: LINES - 1], "…\n"])


def picture_report(reader: Reader) -> None:
    """Writes the top of the report of the demo's lake as a PNG file. Raises SystemExit when a command fails."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"install Chromium for the picture of the report; none of {', '.join(BROWSERS)} is on PATH")
    for command in BEFORE_REPORT:
        output = reader.take(Command(0, command, ""))
        if reader.code:
            raise SystemExit(f"{command} ends with {reader.code}:\n{output}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = f"--window-size={REPORT_SIZE[0]},{REPORT_SIZE[1]}"
    target = f"--screenshot={IMAGES / 'report.png'}"
    page = (reader.folder / "report.html").as_uri()
    subprocess.run([browser, *options, size, target, page], check=True, capture_output=True, timeout=120)


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        console = Console(record=True, width=WIDTH, file=io.StringIO())
        shown, reader = demo(Path(folder))
        console.print(shown, end="")
        picture = console.export_svg(title="deployer", code_format=FORMAT, unique_id="demo")
        (IMAGES / "demo.svg").write_text(picture, encoding="utf-8")
        picture_report(reader)


if __name__ == "__main__":
    main()
