"""The process's stdout and stderr: streams between the code that prints and the terminal, the file or the log.

While a command runs, `sys.stdout` and `sys.stderr` are `ShownStream`s. Control characters in what a library, a warning,
a traceback or code without the console prints are shown as text, and have no effect. The console and exact data go to
the streams behind them, which mask known secrets.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO, TextIO, cast

from deployer.errors import InvalidInput
from deployer.platform.text.masked_streams import MaskedStream, masked_stream
from deployer.platform.text.visible import is_command, visible, visible_json, visible_lines, without_command

_SUSPICIOUS = re.compile(r"::|##|---|\+\+\+|~~~|\^\^\^")
_BLANK = re.compile(r"(?:\s|\x1b\[[0-9;]*m)*")
_KEPT, _TAIL = 256, 64  #: characters that are remembered of an unfinished line, and of the end of a longer one
#: Variables of CI systems, in whose logs lines can be commands.
_CI = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "BUILDKITE")


class ShownStream:
    """A text stream that writes visible text, and no line that a CI system takes for a command.

    With `styled`, control characters are kept: they are the console's, which makes texts visible itself.
    """

    def __init__(self, stream: TextIO, *, styled: bool = False) -> None:
        self.stream = stream
        self._styled = styled
        self._begun = ""  # the unfinished line, as far as it is needed

    def write(self, text: str) -> int:
        shown = text if self._styled else visible_lines(text)
        first, *more = shown.split("\n")
        if _SUSPICIOUS.search(self._begun + shown):
            first = without_command(self._begun + first)[len(self._begun) :]
            more = [without_command(line) for line in more]
            shown = "\n".join((first, *more))
        self._begun = _remembered(more[-1] if more else self._begun + first)
        self.stream.write(shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.stream.close()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    @property
    def closed(self) -> bool:
        return self.stream.closed

    @property
    def encoding(self) -> str:
        return self.stream.encoding

    @property
    def errors(self) -> str | None:
        return self.stream.errors

    @property
    def buffer(self) -> _Bytes:
        """A stream of bytes, which must be UTF-8 text."""
        return _Bytes(self)


class _Bytes:
    def __init__(self, stream: ShownStream) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.write(bytes(data).decode(errors="surrogateescape"))
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


def _remembered(line: str) -> str:
    if len(line) <= _KEPT:
        return line
    return "" if _BLANK.fullmatch(line) else f"x{line[-_TAIL:]}"


def show_streams() -> None:
    """Shows control characters and CI commands as visible text in everything that is printed from now on; masks
    secrets."""
    sys.stdout, sys.stderr = (
        cast(TextIO, ShownStream(masked_stream(real(stream)))) for stream in (sys.stdout, sys.stderr)
    )


@contextmanager
def shown_streams() -> Iterator[None]:
    """Shows control characters and CI commands as visible text in everything that is printed in a block; masks
    secrets."""
    before = sys.stdout, sys.stderr
    show_streams()
    shown = sys.stdout, sys.stderr
    try:
        yield
    finally:
        for stream in shown:
            with suppress(ValueError, BrokenPipeError):  # the stream was closed, or its reader ended
                stream.flush()
        sys.stdout, sys.stderr = before


@contextmanager
def unmasked_rows() -> Iterator[None]:
    """Prints rows of tables in a block as they are stored: nothing in data is masked."""
    stream: object = real(sys.stdout)
    with stream.as_it_is() if isinstance(stream, MaskedStream) else nullcontext():
        yield


@contextmanager
def own_streams() -> Iterator[None]:
    """Lets a block print to the real streams, for deployer's own text that a library styles, such as help."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (real(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def real(stream: object) -> TextIO:
    """Returns the stream behind a ShownStream, or else the stream itself."""
    return cast(TextIO, stream.stream if isinstance(stream, ShownStream) else stream)


def console_stream(*, stderr: bool) -> TextIO:
    """Returns the stream of a console, which writes its own control characters."""
    return cast(TextIO, ShownStream(real(sys.stderr if stderr else sys.stdout), styled=True))


def data_stream(*, as_json: bool = False) -> TextIO:
    """Returns stdout for data, which is exact where a file or a program reads it. Each record is one call of `write`.

    On a terminal, each record is shown in one line. Where stdout may be the log of a CI system, writing a record that
    contains a command raises InvalidInput. With `as_json`, records are JSON, and control characters and commands in
    them are escaped.
    """
    stream = real(sys.stdout)
    if as_json:
        return cast(TextIO, _Records(stream, visible_json))
    if stream.isatty():
        return cast(TextIO, _Records(stream, visible))
    return cast(TextIO, _Records(stream, _refuse_commands)) if _may_be_log(stream) else stream


def bytes_stream() -> BinaryIO:
    """Returns stdout for bytes, where a file or a program reads them. Raises InvalidInput for a terminal, and where
    stdout may be the log of a CI system."""
    stream = real(sys.stdout)
    if stream.isatty() or _may_be_log(stream):
        where = "a terminal" if stream.isatty() else "the log of a CI system, which stdout may be"
        raise InvalidInput(f"Parquet cannot be written to {where}", remedy="give a file: --output FILE")
    stream.flush()
    return stream.buffer


class _Records:
    def __init__(self, stream: TextIO, form: Callable[[str], str]) -> None:
        self._stream = stream
        self._form = form

    def write(self, record: str) -> int:
        content = record.removesuffix("\n")
        self._stream.write(self._form(content) + record[len(content) :])
        return len(record)

    def flush(self) -> None:
        self._stream.flush()


def _refuse_commands(record: str) -> str:
    if _SUSPICIOUS.search(record) and any(is_command(line) for line in record.split("\n")):
        raise InvalidInput(
            f"a line of the data is a command to CI systems, and stdout may be the log of one: {record[:80]!r}",
            remedy="write the data to a file, or read it as JSON",
        )
    return record


def _may_be_log(stream: TextIO) -> bool:
    if not any(os.environ.get(name) for name in _CI):
        return False
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except OSError:  # not a file; io.UnsupportedOperation is an OSError too
        return True
