"""Lines that are folded under themselves where a terminal is too narrow for them."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from deployer.platform.text.visible import visible_text


class FoldedLine:
    """A line that is folded so that its later parts begin at column `indent`.

    So untrusted text from specs, rules and state is never at the beginning of a line of the terminal, whatever its
    width.
    """

    def __init__(self, line: Text, indent: int) -> None:
        self._line = line
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = visible_text(self._line)
        if line.cell_len <= options.max_width or options.max_width <= self._indent:
            yield line
            return
        beginning, rest = line.divide([self._indent])
        for number, part in enumerate(rest.wrap(console, options.max_width - self._indent, overflow="fold")):
            yield (Text(" " * self._indent) if number else beginning).append_text(part)
