"""Runs a document as its reader would: commands in order, edits as shown, output compared with what is printed.

Of its fenced blocks, ```console holds commands (`$ …`) and the output below each, ```diff edits files (its lines of
context must be there once), and ```python is run. In output and among removed lines, a line `…` stands for any lines;
in a line of output, `…` stands for any text. Times, rates and ids are what differs between two runs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(console|diff|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VARYING = (
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b", "<time>"),
    (r"\(\d+\.\d+ s(, [\d,]+ rows/s)?\)", "(<duration>)"),
    (r"\b[0-9a-f]{32}\b", "<id>"),
    (r"-[0-9a-f]{8}\b", "-<id>"),
    (r"─+", "─"),
    (r" +", " "),
)
_ANY_LINES = r"(?:.*\n)*?"
_SET_UP = ("make ", ". ")  #: commands of the reader's machine, which a test has done otherwise


@dataclass(frozen=True, slots=True)
class Command:
    """A command and the output that the document shows below it."""

    line: int
    text: str
    shown: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A ```diff block: `--- FILE`, then lines that stay, go and come; `@@` parts places of a file."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """A ```python block."""

    line: int
    text: str


Step = Command | Edit | Script


def steps_of(document: str) -> Iterator[Step]:
    """What the document has the reader do, in order."""
    for block in _FENCE.finditer(document):
        line = document.count("\n", 0, block.start(2)) + 1
        match block[1]:
            case "diff":
                yield Edit(line, block[2])
            case "python":
                yield Script(line, block[2])
            case _:
                yield from _commands(block[2], line)


def _commands(block: str, line: int) -> Iterator[Command]:
    for part in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        if not part[1].startswith(_SET_UP):
            yield Command(line + block.count("\n", 0, part.start()), part[1], part[2])


class Reader:
    """Somebody who works through the document in a folder, with these environment variables."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self.code = 0

    def take(self, step: Step) -> str:
        """Take a step; the output of a command. Raises AssertionError when an edit does not fit or a script fails."""
        match step:
            case Command(text=text):
                return self._run(["bash", "-c", f"(exit {self.code}); {text}"])
            case Script(text=text):
                output = self._run([sys.executable, "-c", text])
                assert self.code == 0, output
                return output
            case Edit(text=text):
                self._edit(text)
                return ""

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.code = done.returncode
        return done.stdout

    def _edit(self, diff: str) -> None:
        for part in re.findall(r"^--- (.*)\n((?:(?!--- ).*\n)*)", diff, re.MULTILINE):
            path = self.folder / part[0]
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            for place in re.split(r"^@@.*\n", part[1], flags=re.MULTILINE):
                text = _edited(text, place.splitlines(keepends=True), path)
            path.write_text(text, encoding="utf-8")


def _edited(text: str, lines: list[str], path: Path) -> str:
    before = "".join(_ANY_LINES if line == "-…\n" else re.escape(line[1:]) for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    found = [*re.finditer(before, text)] if before else [*re.finditer(r"\Z", text)]
    assert len(found) == 1, f"{path}: this is there {len(found)} times:\n{''.join(lines)}"
    return text[: found[0].start()] + after + text[found[0].end() :]


def normalised(output: str) -> str:
    """Output without what differs between runs, and without blank lines and blanks that end a line."""
    for pattern, replacement in _VARYING:
        output = re.sub(pattern, replacement, output)
    lines = (line.strip() for line in output.splitlines())
    return "\n".join(line for line in lines if line)


def fits(shown: str, output: str) -> bool:
    """Whether the output is what the document shows, where `…` stands for anything."""
    pattern = ""
    for line in normalised(shown).splitlines():
        pattern += _ANY_LINES if line == "…" else re.escape(line).replace("…", r".*") + r"\n"
    return re.fullmatch(pattern, normalised(output) + "\n" if output.strip() else "") is not None
