"""One call on a connection: the messages that its client sends, and the answers that wait to be sent.

A call is answered by a thread of its own, and its frames are read and written by the thread of the connection.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition

from deployer.catalog.serving.http2.frames import Code, ConnectionFault
from deployer.catalog.serving.http2.headers import Header

WINDOW = 1 << 20  #: bytes that a client may send of a call before the server asks for more
LONGEST = 1 << 30  #: bytes of a message of a client
_WAITING = 4 << 20  #: bytes of complete messages from which the client has to wait until some are taken
_AHEAD = 2  #: answers that may wait to be sent: one is sent, and one is ready when its end is
_PREFIX = struct.Struct(">BI")  #: of a message: whether it is compressed, and its length

Part = bytes | memoryview


class Gone(Exception):
    """The client ended the call, or its connection is closed: no answer can be sent."""


class NotTaken(Exception):
    """The client took no answer for too long."""


class Idle(Exception):
    """The client sent neither a message nor the end of them for too long."""


class Compressed(Exception):
    """The client sent a compressed message."""


@dataclass(slots=True)
class Answer:
    """Parts of DATA that are sent after each other, or the headers of a frame, of which `is_last` ends the call."""

    parts: Sequence[Part] = ()
    size: int = 0
    headers: bytes | None = None
    is_last: bool = False


class Stream:
    """A call. Methods for the thread that answers are `take` and those that put; the others are for the connection."""

    def __init__(self, number: int, headers: Sequence[Header], window: int, ready: Callable[[Stream], None]) -> None:
        self.number, self.headers = number, headers
        self.window = window  #: bytes that may be sent
        self.answer: Answer | None = None  #: that is being sent
        self.is_listed = False  #: whether the connection will look for answers
        self.moved = time.monotonic()  #: when the client sent or took something last
        self.is_started = False  #: whether a thread answers, or will
        self.is_gone = False
        self.is_complete = False  #: whether the client sent all messages
        self._ready = ready
        self._changed = Condition()
        self._bytes = bytearray()  #: of a message that is not complete
        self._messages = deque[bytes]()
        self._size = 0  #: of the messages
        self._room = WINDOW  #: bytes that the client may send
        self._answers = deque[Answer]()

    # for the thread that answers

    def take(self, patience: float) -> bytes | None:
        """Returns the next message of the client; None at their end. Raises Gone where the call ended before that,
        Idle, Compressed."""
        until = time.monotonic() + patience
        with self._changed:
            while not (self._messages or self.is_gone or self.is_complete):
                if not self._changed.wait(max(until - time.monotonic(), 0)) and time.monotonic() >= until:
                    raise Idle
            if self.is_gone or (self.is_complete and not self._messages and self._bytes):
                raise Gone
            if not self._messages:
                return None
            message = self._messages.popleft()
            self._size -= len(message)
        if not self.is_complete:
            self._ready(self)  # the client may send more
        if message[0]:
            raise Compressed
        return message[_PREFIX.size :]

    def put_message(self, parts: Sequence[Part], patience: float) -> None:
        """Sends a message, whose parts are not to be changed. Waits until there is room for it; raises NotTaken where
        the client takes nothing for `patience` seconds, Gone."""
        size = sum(map(len, parts))
        self._put(Answer([_PREFIX.pack(0, size), *parts], _PREFIX.size + size), patience)

    def put_headers(self, headers: bytes, is_last: bool, patience: float) -> None:
        """Sends headers as `put_message` does."""
        self._put(Answer(headers=headers, is_last=is_last), patience)

    def _put(self, answer: Answer, patience: float) -> None:
        until = time.monotonic() + patience
        with self._changed:
            while len(self._answers) >= _AHEAD and not self.is_gone:
                if not self._changed.wait(max(until - time.monotonic(), 0)) and time.monotonic() >= until:
                    raise NotTaken
            if self.is_gone:
                raise Gone
            self._answers.append(answer)
        self._ready(self)

    def cancel(self) -> None:
        """Ends the call without an answer."""
        self.end()
        self._ready(self)

    # for the connection

    def arrived(self, data: bytes, counted: int) -> None:
        """Takes bytes of a frame of `counted` bytes. Raises ConnectionFault for more than the client may send."""
        self._room -= counted
        self.moved = time.monotonic()
        if self.is_complete:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a client sent more after the end of a call")
        if self._room < 0:
            raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "a client sent more than it may")
        with self._changed:
            self._bytes += data
            while len(self._bytes) >= _PREFIX.size:
                size = _PREFIX.size + _PREFIX.unpack_from(self._bytes)[1]
                if size > LONGEST:
                    raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "a message is too large")
                if len(self._bytes) < size:
                    break
                self._messages.append(bytes(memoryview(self._bytes)[:size]))
                self._size += size
                del self._bytes[:size]
            self._changed.notify_all()

    @property
    def has_request(self) -> bool:
        """Returns whether there is something to take: a message, or the end of them."""
        return bool(self._messages) or self.is_complete

    def completed(self) -> None:
        """Notes that the client sends nothing more."""
        with self._changed:
            self.is_complete = True
            self._changed.notify_all()

    def more_room(self) -> int:
        """Returns by how many bytes the client's window grows now: as its messages are taken."""
        with self._changed:
            if self.is_complete or self._size >= _WAITING or self._room > WINDOW // 2:
                return 0
            found = WINDOW - self._room
        self._room = WINDOW
        return found

    def end(self) -> None:
        """Ends the call: threads that wait for it get `Gone`, and its answers are not sent."""
        with self._changed:
            self.is_gone = True
            self._answers.clear()
            self._messages.clear()
            self._bytes.clear()
            self._changed.notify_all()
        self.answer = None

    def next_answer(self) -> Answer | None:
        """Returns the answer that is to be sent, or a part of which was; None where none is ready."""
        if self.answer is None:
            with self._changed:
                if self._answers:
                    self.answer = self._answers.popleft()
                    self.moved = time.monotonic()
                    self._changed.notify_all()
        return self.answer
