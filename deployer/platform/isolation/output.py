"""Passes the lines that a process prints to another thread: with limits, and at most while the process runs."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable

_AT_ONCE = 1 << 16
_LONGEST_LINE = 4_000
_MOST_BYTES, _MOST_LINES = 1_000_000, 5_000
_JOIN_SECONDS = 1.0


def relay(descriptor: int, on_line: Callable[[str], None]) -> Callable[[], None]:
    """Reads lines from a pipe in a thread of its own; returns a function that ends this.

    Ending waits a moment for the rest of the pipe. Later output of a process that still holds the pipe is ignored.
    """
    lines = _Lines(on_line)

    def read() -> None:
        try:
            while data := os.read(descriptor, _AT_ONCE):
                lines.take(data)
            lines.take(b"", last=True)
        except OSError:
            pass
        finally:
            os.close(descriptor)

    thread = threading.Thread(target=read, daemon=True, name="project-output")
    thread.start()

    def end() -> None:
        thread.join(_JOIN_SECONDS)
        lines.close()

    return end


class _Lines:
    """Splits bytes into lines. A long line is shortened, and lines above the limit are left out."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line: Callable[[str], None] | None = on_line
        self._rest = b""
        self._bytes, self._lines = _MOST_BYTES, _MOST_LINES  #: lines that are still allowed
        self._lock = threading.Lock()

    def take(self, data: bytes, *, last: bool = False) -> None:
        with self._lock:
            if self._bytes < 0:
                return
            self._bytes -= len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            if (last and self._rest) or len(self._rest) > _LONGEST_LINE:
                lines, self._rest = [*lines, self._rest], b""
            for line in lines[: self._lines]:
                self._pass_on(line)
            self._lines -= len(lines)
            if self._bytes < 0 or self._lines < 0:
                self._pass_on(b"(there is more, which is not shown)")
                self._bytes, self._rest = -1, b""

    def close(self) -> None:
        with self._lock:
            self._on_line = None

    def _pass_on(self, line: bytes) -> None:
        text = _printable(line.decode(errors="replace").rstrip("\r"))
        cut = text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"
        if self._on_line is not None:
            with contextlib.suppress(OSError, ValueError):  # the reader of this process's output has ended
                self._on_line(cut)


def _printable(text: str) -> str:
    """Returns the text without characters that control a terminal or a log."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\t" else "\ufffd" for each in text)
