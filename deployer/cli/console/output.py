"""The output of commands: results on stdout, everything else on stderr, errors as messages.

Every text for people goes through one of these functions, so that text from other programs cannot control the terminal:
the consoles show control and format characters, and line ends within a text, as escapes
(`deployer.platform.text.visible`). Each line of a result is a separate text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.protocol import rich_cast
from rich.segment import Segment
from rich.text import Text

from deployer.cli.console.on_screen import end_activity
from deployer.cli.console.streams import ShownStream, console_stream, data_stream, real
from deployer.errors import DeployerError
from deployer.platform.text.folding import FoldedLine
from deployer.platform.text.visible import json_text, margined, visible, visible_text

#: columns without a terminal, so that nothing is folded or cut in files and pipes
_UNFOLDED = 10_000
_FOLDED = 4  #: columns of indentation for the continuation of a folded line


class ShownConsole(Console):
    """A console on which each text is one line without control characters.

    A line that does not fit is folded with an indentation, so that text from other programs never begins a line.
    """

    def print(self, *objects: Any, soft_wrap: bool | None = None, **settings: Any) -> None:
        if len(objects) == 1 and isinstance(objects[0], str | Text) and (self.is_terminal or not soft_wrap):
            text = objects[0] if isinstance(objects[0], Text) else self.render_str(objects[0])
            super().print(FoldedLine(text, _FOLDED), **settings)
        else:
            super().print(*objects, soft_wrap=soft_wrap, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        renderable = rich_cast(renderable)
        return super().render(visible_text(renderable) if isinstance(renderable, Text) else renderable, options)

    def render_str(self, text: str, **settings: Any) -> Text:
        return visible_text(super().render_str(text, **settings))


def stdout() -> Console:
    """Returns the console of results, and removes the display of the command's progress."""
    end_activity()
    return _console(stderr=False)


def stderr() -> Console:
    """Returns the console of notes, progress and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    console = ShownConsole(
        file=console_stream(stderr=stderr), stderr=stderr, highlight=False, emoji=False, markup=False
    )
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNFOLDED
    return console


def print_json(document: Any) -> None:
    """Prints one indented JSON document on stdout."""
    end_activity()
    real(sys.stdout).write(json_text(document, indent=2) + "\n")


def print_json_line(document: Any) -> None:
    """Prints one JSON document as a line on stderr, for programs that follow a run. Safe for threads: it is one
    write."""
    stream = real(sys.stderr)
    stream.write(json_text(document) + "\n")
    stream.flush()


def print_line(text: str) -> None:
    """Prints one line on stderr, for threads without a console: it is one write."""
    stream = ShownStream(real(sys.stderr))
    stream.write(visible(text) + "\n")
    stream.flush()


def print_document(text: str) -> None:
    """Prints a document of a format with its own escapes, such as Markdown or HTML, on stdout."""
    end_activity()
    ShownStream(real(sys.stdout)).write(text)


def print_data(text: str) -> None:
    """Prints text that a program may read, such as YAML, on stdout: exact unless stdout is a terminal."""
    end_activity()
    stream = data_stream()
    for line in text.splitlines(keepends=True):
        stream.write(line)


def print_lines(console: Console, text: str, style: str = "") -> None:
    """Prints a message that may have several lines, such as one of another program; a bar marks all lines after the
    first."""
    for line in margined(text):
        console.print(Text(line, style), soft_wrap=True)


def note(text: str) -> None:
    """Prints a remark for people that is not part of the result, on stderr."""
    console = stderr()
    for line in margined(text):
        console.print(line, style="dim")


def ask_yes_or_no(question: str) -> bool:
    """Asks on stderr; the default is no. Raises typer.Abort without an answer."""
    import typer

    end_activity()
    return typer.confirm(visible(question), err=True)


def ask(question: str) -> str:
    """Asks a question on stderr; returns what the person types."""
    import typer

    end_activity()
    return str(typer.prompt(visible(question), err=True))


def ask_new_secret(name: str) -> str:
    """Asks twice for a secret, without showing it; returns the secret."""
    import typer

    end_activity()
    return str(typer.prompt(name, hide_input=True, confirmation_prompt=True, err=True))


def print_error(error: DeployerError, *, as_json: bool) -> None:
    """Prints the error message on stderr, or with `as_json` a JSON document on stdout."""
    end_activity()
    if as_json:
        print_json(error.document())
        return
    console = stderr()
    for line in error.details():
        console.print(line, soft_wrap=True)
    print_lines(console, f"error: {error}", "red")
