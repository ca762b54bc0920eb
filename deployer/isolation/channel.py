"""Frames of bytes over a socket, between a command and a process that runs code of the project."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

_HEADER = struct.Struct(">I")
_READ_AT_ONCE = 1 << 16


class ChannelBroken(Exception):
    """The other side sent an invalid frame, or one that is too long; the message says which."""


class Channel:
    """One side. `send` may be called from several threads, `receive` from one.

    `limit` is how many bytes a received frame may have.
    """

    def __init__(self, end: socket.socket, limit: int) -> None:
        self._socket, self._limit = end, limit
        self._reader = end.makefile("rb", _READ_AT_ONCE)
        self._lock = threading.Lock()

    def send(self, frame: bytes) -> None:
        """Sends a frame. Raises OSError when the other side is gone."""
        with self._lock:
            self._socket.sendall(_HEADER.pack(len(frame)) + frame)

    def receive(self) -> bytes | None:
        """The next frame; None when the other side is gone. Raises ChannelBroken."""
        try:
            header = self._reader.read(_HEADER.size)
            if not header:
                return None
            if len(header) < _HEADER.size:
                raise ChannelBroken("a message was cut off")
            (length,) = _HEADER.unpack(header)
            if length > self._limit:
                raise ChannelBroken(f"a message has {length:,} bytes, and at most {self._limit:,} are taken")
            frame: bytes = self._reader.read(length)
        except ConnectionError:
            return None
        if len(frame) < length:
            raise ChannelBroken("a message was cut off")
        return frame

    def finish(self) -> None:
        """Sends no more: the other side receives None."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._reader.close()
        self._socket.close()
