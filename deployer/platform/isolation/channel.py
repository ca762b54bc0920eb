"""Frames of bytes over a socket, between a command and a process that runs code of the project."""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import threading
import time

_HEADER = struct.Struct(">I")
_READ_AT_ONCE = 1 << 16


class ChannelBroken(Exception):
    """The other side sent an invalid frame or a frame that is too long; the message has the reason."""


class Channel:
    """One side. `send` may be called from several threads, `receive` from one.

    `limit` is the largest number of bytes of a received frame. `seconds` is the time limit for the other side to
    receive a frame, and to send one; None: no limit.
    """

    def __init__(self, end: socket.socket, limit: int) -> None:
        self._socket, self._limit = end, limit
        self._lock = threading.Lock()
        self.seconds: float | None = None

    def send(self, frame: bytes) -> None:
        """Sends a frame. Raises OSError when the other side has ended; TimeoutError is one of these."""
        with self._lock:
            self._socket.settimeout(self.seconds)
            self._socket.sendall(_HEADER.pack(len(frame)) + frame)

    def receive(self) -> bytes | None:
        """Returns the next frame; None when the other side has ended. Raises ChannelBroken, and TimeoutError."""
        until = math.inf if self.seconds is None else time.monotonic() + self.seconds
        try:
            self._socket.settimeout(self.seconds)
            header = self._read(_HEADER.size, until)
            if not header:
                return None
            if len(header) < _HEADER.size:
                raise ChannelBroken("a message is incomplete")
            (length,) = _HEADER.unpack(header)
            if length > self._limit:
                raise ChannelBroken(f"a message has {length:,} bytes, and the limit is {self._limit:,}")
            frame = self._read(length, until)
        except TimeoutError:
            raise
        except OSError:
            return None
        if len(frame) < length:
            raise ChannelBroken("a message is incomplete")
        return frame

    def finish(self) -> None:
        """Ends sending: the other side receives None."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int, until: float) -> bytes:
        """Returns this many bytes; fewer when the other side has ended."""
        parts = bytearray()
        while len(parts) < size and (part := self._socket.recv(min(size - len(parts), _READ_AT_ONCE))):
            parts += part
            if time.monotonic() > until:  # the socket's own time limit is for each part
                raise TimeoutError
        return bytes(parts)
