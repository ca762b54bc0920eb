"""Standard output and error with known secrets masked. All output of the process goes through them."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO, cast

from deployer.platform.text import masking


class MaskedStream:
    """A text stream over another one.

    The other stream gets whole lines, or the rest at a `flush`, with secrets masked. All other attributes are those of
    the other stream; `buffer` takes bytes without a mask.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._pending = ""
        self._masks = True
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not self._masks:
            return self._stream.write(text)
        with self._lock:
            head, newline, tail = (self._pending + text).rpartition("\n")
            self._pending = tail
            if newline:
                self._stream.write(masking.masked(head + newline))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with self._lock:
            if self._pending:
                pending, self._pending = self._pending, ""
                self._stream.write(masking.masked(pending))
            self._stream.flush()

    @contextlib.contextmanager
    def as_it_is(self) -> Iterator[None]:
        """Within the block, nothing is masked."""
        self.flush()
        self._masks = False
        try:
            yield
        finally:
            self._masks = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> MaskedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()


def masked_stream(stream: TextIO) -> TextIO:
    """Returns a stream that masks known secrets; the stream itself if it already does."""
    found: object = stream
    return stream if isinstance(found, MaskedStream) else cast("TextIO", MaskedStream(stream))


@contextlib.contextmanager
def masked_streams() -> Iterator[None]:
    """Within the block, `sys.stdout` and `sys.stderr` mask known secrets."""
    before = sys.stdout, sys.stderr
    if isinstance(before[0], MaskedStream):
        yield
        return
    masked = tuple(MaskedStream(stream) for stream in before)
    sys.stdout, sys.stderr = (cast("TextIO", stream) for stream in masked)
    try:
        yield
    finally:
        for stream, replaced in zip(masked, ("stdout", "stderr"), strict=True):
            with contextlib.suppress(ValueError, BrokenPipeError):  # it was closed, or the reader has ended
                stream.flush()
            if getattr(sys, replaced) is stream:
                setattr(sys, replaced, stream._stream)
