"""One call on a connection: the messages of its client, and the answers that are not sent yet.

A thread of its own answers a call. The thread of the connection reads and writes the frames.
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

WINDOW = 1 << 20  #: bytes of a call that a client may send before the server asks for more
LONGEST = 1 << 30  #: most bytes of a message of a client
_WAITING = 4 << 20  #: bytes of complete messages; with as many, the client has to wait until the server reads some
_AHEAD = 2  #: most answers in the queue: the one that is being sent, and the next one
_PREFIX = struct.Struct(">BI")  #: before each message: whether it is compressed, and its length

Part = bytes | memoryview


class CallEnded(Exception):
    """The client ended the call, or its connection is closed. No answer can be sent."""


class AnswerTimedOut(Exception):
    """The client read no answer for too long."""


class RequestTimedOut(Exception):
    """The client sent neither a message nor the end of its messages for too long."""


class CompressedMessage(Exception):
    """The client sent a compressed message."""


@dataclass(slots=True)
class Answer:
    """The parts of DATA frames in their order, or the headers of a frame. Headers with `is_last` end the call."""

    parts: Sequence[Part] = ()
    size: int = 0
    headers: bytes | None = None
    is_last: bool = False


class Stream:
    """A call. The thread that answers uses `take`, `put_message`, `put_headers` and `cancel`; the connection uses the
    other methods."""

    def __init__(self, number: int, headers: Sequence[Header], window: int, ready: Callable[[Stream], None]) -> None:
        self.number, self.headers = number, headers
        self.window = window  #: bytes that the server may send
        self.answer: Answer | None = None  #: the answer that is being sent
        self.is_listed = False  #: whether the call is in the queue of the connection
        self.moved = time.monotonic()  #: when the client last sent or read something
        self.is_started = False  #: whether a thread answers it, or will do so
        self.is_gone = False
        self.is_complete = False  #: whether the client has sent all messages
        self._ready = ready
        self._changed = Condition()
        self._bytes = bytearray()  #: the bytes of a message that is not complete
        self._messages = deque[bytes]()
        self._size = 0  #: bytes of `_messages`
        self._room = WINDOW  #: bytes that the client may still send
        self._answers = deque[Answer]()

    # These methods are for the thread that answers.

    def take(self, patience: float) -> bytes | None:
        """Returns the next message of the client, or None at the end of its messages.

        Raises CallEnded where the call ends before that, RequestTimedOut where nothing arrives within `patience`
        seconds, and CompressedMessage for a compressed message.
        """
        until = time.monotonic() + patience
        with self._changed:
            while not (self._messages or self.is_gone or self.is_complete):
                if not self._changed.wait(max(until - time.monotonic(), 0)) and time.monotonic() >= until:
                    raise RequestTimedOut
            if self.is_gone or (self.is_complete and not self._messages and self._bytes):
                raise CallEnded
            if not self._messages:
                return None
            message = self._messages.popleft()
            self._size -= len(message)
        if not self.is_complete:
            self._ready(self)  # the client may send more
        if message[0]:
            raise CompressedMessage
        return message[_PREFIX.size :]

    def put_message(self, parts: Sequence[Part], patience: float) -> None:
        """Sends a message. The caller must not change the parts afterwards.

        Waits until the queue has room. Raises AnswerTimedOut where the client reads nothing for `patience` seconds, and
        CallEnded where the call ends.
        """
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
                    raise AnswerTimedOut
            if self.is_gone:
                raise CallEnded
            self._answers.append(answer)
        self._ready(self)

    def cancel(self) -> None:
        """Ends the call without an answer."""
        self.end()
        self._ready(self)

    # These methods are for the connection.

    def arrived(self, data: bytes, counted: int) -> None:
        """Adds the content of a DATA frame, which counts `counted` bytes with its padding. Raises ConnectionFault where
        the client sends more than it may."""
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
        """Returns whether `take` would return at once: there is a message, or all messages were taken."""
        return bool(self._messages) or self.is_complete

    def completed(self) -> None:
        """Records that the client has sent all of its messages."""
        with self._changed:
            self.is_complete = True
            self._changed.notify_all()

    def more_room(self) -> int:
        """Returns by how many bytes the client's window grows now, because the server took messages."""
        with self._changed:
            if self.is_complete or self._size >= _WAITING or self._room > WINDOW // 2:
                return 0
            found = WINDOW - self._room
        self._room = WINDOW
        return found

    def end(self) -> None:
        """Ends the call. Threads that wait for it get `CallEnded`, and the remaining answers are not sent."""
        with self._changed:
            self.is_gone = True
            self._answers.clear()
            self._messages.clear()
            self._bytes.clear()
            self._changed.notify_all()
        self.answer = None

    def next_answer(self) -> Answer | None:
        """Returns the answer to send, which may be sent in part already; None where no answer is ready."""
        if self.answer is None:
            with self._changed:
                if self._answers:
                    self.answer = self._answers.popleft()
                    self.moved = time.monotonic()
                    self._changed.notify_all()
        return self.answer
