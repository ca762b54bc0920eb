"""The queue of bytes to send to a client. Parts are not copied."""

from __future__ import annotations

import socket
from collections import deque
from itertools import islice

from deployer.catalog.serving.http2 import frames
from deployer.catalog.serving.http2.frames import Kind
from deployer.catalog.serving.http2.streams import Answer, Part

_PARTS = 512  #: most parts of one call of `sendmsg`; systems accept at least 1,024


class Output:
    """Bytes for the socket of a client. Methods do not wait for the socket."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._parts = deque[Part]()
        self.size = 0

    def add(self, data: Part) -> None:
        self._parts.append(data)
        self.size += len(data)

    def add_data(self, stream: int, answer: Answer, size: int, largest_frame: int) -> None:
        """Adds `size` bytes of an answer as DATA frames, and leaves the rest in the answer."""
        answer.size -= size
        parts = list(answer.parts)
        parts.reverse()
        while size:
            length = min(size, largest_frame)
            size -= length
            self.add(frames.head(Kind.DATA, 0, stream, length))
            while length:
                part = memoryview(parts.pop())
                if len(part) > length:
                    parts.append(part[length:])
                    part = part[:length]
                length -= len(part)
                if len(part):
                    self.add(part)
        parts.reverse()
        answer.parts = parts

    def flush(self) -> None:
        """Sends as many bytes as the socket accepts. Raises OSError where the client has closed the connection."""
        while self._parts:
            try:
                sent = self._client.sendmsg(list(islice(self._parts, _PARTS)))
            except (BlockingIOError, InterruptedError):
                return
            self.size -= sent
            while self._parts and sent >= len(self._parts[0]):
                sent -= len(self._parts.popleft())
            if sent:
                self._parts[0] = memoryview(self._parts[0])[sent:]
