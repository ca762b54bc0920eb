"""A connection of HTTP/2: its frames, the windows of both sides, and the order in which answers are sent."""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from deployer.catalog.serving.http2 import frames
from deployer.catalog.serving.http2.frames import Code, ConnectionFault, Frame, FrameReader, Kind, within_window
from deployer.catalog.serving.http2.headers import LARGEST, HeaderDecoder
from deployer.catalog.serving.http2.output import Output
from deployer.catalog.serving.http2.streams import WINDOW, Answer, Stream

_STREAMS = 256  #: most calls of one connection at a time
_READ = 1 << 16  #: bytes of one read
_ROOM = 1 << 24  #: bytes of all calls that a client may send before the server has read them
_AT_ONCE = 1 << 18  #: bytes in the output queue; with as many, no answer is added
_TURN = 1 << 18  #: bytes of one call that are sent before the next call has its turn
_BUSY = 1 << 20  #: bytes in the output queue; with as many, nothing is read
_PINGS = 64  #: most pings without an answer
_PING_BYTES = 1 << 20  #: most bytes that are sent before the answer to a ping


@dataclass(frozen=True, slots=True)
class Patience:
    """The seconds within which a client must read some of the bytes that are sent to it (`sending`), and after which a
    connection without calls ends (`idle`)."""

    sending: float
    idle: float


class Connection:
    """Serves one client over HTTP/2. `start` begins to answer a call in another thread, and returns at once."""

    def __init__(self, client: socket.socket, start: Callable[[Stream], None], patience: Patience) -> None:
        self._client, self._start, self._patience = client, start, patience
        self._woken_by, self._wakes = socket.socketpair()
        for each in (client, self._woken_by, self._wakes):
            each.setblocking(False)
        self._is_woken = False
        self._changed = deque[Stream]()  # calls that other threads changed
        self._ready = deque[Stream]()  # calls that may have an answer to send
        self._streams = dict[int, Stream]()
        self._last_stream = 0
        self._reader, self._headers, self._output = FrameReader(), HeaderDecoder(), Output(client)
        self._block: tuple[Frame, bytearray] | None = None  # the first frame and the bytes of incomplete headers
        self._window = self._initial_window = frames.DEFAULT_WINDOW
        self._largest_frame = frames.SMALLEST_FRAME
        self._unseen = 0  # bytes that were read, and that no WINDOW_UPDATE has reported
        self._is_leaving = False  # whether GOAWAY has asked the client to begin no more calls
        self._pings = list[bytes]()
        self._since_ping = 0
        self._heard = self._sent = time.monotonic()

    def serve(self) -> None:
        """Serves the client until it closes the connection, violates the protocol, or reads or sends nothing for too
        long."""
        try:
            self._output.add(
                frames.settings(
                    {
                        frames.MAX_CONCURRENT_STREAMS: _STREAMS,
                        frames.INITIAL_WINDOW_SIZE: WINDOW,
                        frames.MAX_FRAME_SIZE: frames.LARGEST,
                        frames.MAX_HEADER_LIST_SIZE: LARGEST,
                    }
                )
                + frames.number(Kind.WINDOW_UPDATE, 0, _ROOM - frames.DEFAULT_WINDOW)
            )
            self._serve()
        except ConnectionFault as fault:
            self._output.add(frames.goodbye(self._last_stream, fault.code))
            with suppress(OSError):
                self._output.flush()
        except OSError:
            pass  # the client closed the connection
        finally:
            for each in list(self._streams.values()):
                each.end()
            self._streams.clear()
            self._woken_by.close()
            self._wakes.close()

    def _serve(self) -> None:
        waiting = select.poll()
        waiting.register(self._woken_by, select.POLLIN)
        buffer = bytearray(_READ)
        view = memoryview(buffer)
        look_again = 0.0
        pause = int(1000 * min(self._patience.sending, self._patience.idle) / 4) + 1
        while True:
            wanted = select.POLLIN if self._output.size < _BUSY else 0
            waiting.register(self._client, wanted | (select.POLLOUT if self._output.size else 0))
            for number, event in waiting.poll(pause):
                if number == self._woken_by.fileno():
                    self._wake()
                elif event & ~select.POLLOUT:
                    try:
                        read = self._client.recv_into(buffer)
                    except BlockingIOError:
                        continue
                    if not read:
                        return
                    self._heard = time.monotonic()
                    for each in self._reader.frames(view[:read]):
                        self._take(each)
            self._send()
            now = time.monotonic()
            if now > look_again:
                self._end_stalled(now)
                look_again = now + self._patience.idle / 4

    def _wake(self) -> None:
        self._woken_by.recv(64)
        self._is_woken = False  # from here on, a change wakes this thread again
        while self._changed:
            stream = self._changed.popleft()
            if stream.number not in self._streams:
                continue
            if stream.is_gone:  # it was cancelled
                del self._streams[stream.number]
                self._output.add(frames.number(Kind.RST_STREAM, stream.number, Code.CANCEL))
                continue
            if grown := stream.more_room():
                self._output.add(frames.number(Kind.WINDOW_UPDATE, stream.number, grown))
            self._list(stream)

    def _list(self, stream: Stream) -> None:
        """Puts a call into the queue of those that may have something to send."""
        if not stream.is_listed:
            stream.is_listed = True
            self._ready.append(stream)

    def _note(self, stream: Stream) -> None:
        """Wakes the connection's thread, because a call has answers or room for requests. Other threads call this."""
        self._changed.append(stream)
        if not self._is_woken:
            self._is_woken = True
            with suppress(OSError):  # the connection is closed
                self._wakes.send(b"!")

    def _end_stalled(self, now: float) -> None:
        """Ends calls that wait for the client for too long. Raises ConnectionFault where the client reads nothing, or
        has no calls, for too long."""
        if self._output.size:
            is_over = now - self._sent > self._patience.sending
        else:
            is_over = not self._streams and now - max(self._heard, self._sent) > self._patience.idle
        if is_over and not (self._output.size or self._is_leaving):  # a call may be on its way
            self._is_leaving, self._heard = True, now
            self._output.add(frames.goodbye(frames.LARGEST_WINDOW, Code.NO_ERROR))
        elif is_over:
            raise ConnectionFault(Code.NO_ERROR, "the connection is not used")
        for each in list(self._streams.values()):
            waits_for_client = each.answer is not None or not each.is_started
            if waits_for_client and now - each.moved > self._patience.idle:
                each.cancel()

    # These methods handle the frames of the client.

    def _take(self, frame: Frame) -> None:
        if self._block is not None and frame.kind != Kind.CONTINUATION:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "headers are not complete")
        match frame.kind:
            case Kind.DATA:
                self._take_data(frame)
            case Kind.HEADERS:
                if not frame.stream % 2:
                    raise ConnectionFault(Code.PROTOCOL_ERROR, "a client's stream has an odd number")
                self._take_headers(frame, bytearray(frame.content), frame.flags)
            case Kind.CONTINUATION:
                if self._block is None or self._block[0].stream != frame.stream:
                    raise ConnectionFault(Code.PROTOCOL_ERROR, "headers are continued that did not begin")
                first, block = self._block
                block += frame.payload
                self._take_headers(first, block, frame.flags)
            case Kind.RST_STREAM:
                frame.number  # noqa: B018 (checks its size)
                self._require_known(frame)
                if (stream := self._streams.pop(frame.stream, None)) is not None:
                    stream.end()
            case Kind.SETTINGS:
                self._take_settings(frame)
            case Kind.PING:
                self._take_ping(frame)
            case Kind.WINDOW_UPDATE:
                self._take_window(frame)
            case Kind.PUSH_PROMISE:
                raise ConnectionFault(Code.PROTOCOL_ERROR, "a client promises nothing")
            case _:
                pass  # priorities, goodbyes, and kinds that a server may ignore

    def _take_headers(self, first: Frame, block: bytearray, flags: int) -> None:
        if len(block) > LARGEST:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "the headers are too large")
        if not flags & frames.END_HEADERS:
            self._block = first, block
            return
        self._block = None
        headers = self._headers.decoded(bytes(block))
        if first.stream <= self._last_stream:
            known = self._streams.get(first.stream)
            if known is not None and first.flags & frames.END_STREAM:  # trailers
                known.completed()
                self._start_once(known)
            return
        self._last_stream = first.stream
        if len(self._streams) >= _STREAMS:
            self._output.add(frames.number(Kind.RST_STREAM, first.stream, Code.REFUSED_STREAM))
            return
        stream = Stream(first.stream, headers, self._initial_window, self._note)
        self._streams[stream.number] = stream
        if first.flags & frames.END_STREAM:
            stream.completed()
            self._start_once(stream)

    def _start_once(self, stream: Stream) -> None:
        """Begins to answer a call whose first message is complete. Before that, the call has no thread."""
        if not stream.is_started and stream.has_request:
            stream.is_started = True
            self._start(stream)

    def _take_data(self, frame: Frame) -> None:
        self._require_known(frame)
        size = len(frame.payload)
        self._unseen += size
        if self._unseen > _ROOM // 4:
            self._output.add(frames.number(Kind.WINDOW_UPDATE, 0, self._unseen))
            self._unseen = 0
        stream = self._streams.get(frame.stream)
        if stream is None:  # it ended
            return
        stream.arrived(frame.content, size)
        if frame.flags & frames.END_STREAM:
            stream.completed()
        elif grown := stream.more_room():
            self._output.add(frames.number(Kind.WINDOW_UPDATE, stream.number, grown))
        self._start_once(stream)

    def _take_settings(self, frame: Frame) -> None:
        if frame.flags & frames.ACK:
            return
        for setting, value in frame.settings:
            if setting == frames.INITIAL_WINDOW_SIZE:
                for each in self._streams.values():
                    each.window = within_window(each.window + value - self._initial_window)
                    self._list(each)
                self._initial_window = value
            elif setting == frames.MAX_FRAME_SIZE:
                self._largest_frame = value
        self._output.add(frames.frame(Kind.SETTINGS, frames.ACK))

    def _take_ping(self, frame: Frame) -> None:
        if frame.stream or len(frame.payload) != 8:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "a ping has another size, or is of a stream")
        if frame.flags & frames.ACK:
            return
        if len(self._pings) >= _PINGS:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "there are too many pings")
        self._pings.append(frame.payload)
        self._since_ping = 0

    def _take_window(self, frame: Frame) -> None:
        self._require_known(frame, or_connection=True)
        grown = frame.number
        if not grown:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a window does not grow")
        if not frame.stream:
            self._window = within_window(self._window + grown)
        elif (stream := self._streams.get(frame.stream)) is not None:
            stream.window = within_window(stream.window + grown)
            self._list(stream)

    def _require_known(self, frame: Frame, or_connection: bool = False) -> None:
        """Raises ConnectionFault for a frame of a stream that has not begun."""
        if frame.stream > self._last_stream or not (frame.stream or or_connection):
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a frame is of a stream that did not begin")

    # These methods send.

    def _send(self) -> None:
        """Sends answers until none is ready, or until the client's windows or its socket are full."""
        while True:
            self._fill()
            if not self._output.size:
                return
            before = self._output.size
            self._output.flush()
            if self._output.size < before:
                self._sent = time.monotonic()
            if self._output.size:
                return

    def _fill(self) -> None:
        """Moves answers to the output in turns, as far as the windows allow.

        The answer to a ping comes after the ready answers: clients use it to measure how large their windows should be.
        """
        for _ in range(len(self._ready)):
            if self._output.size >= _AT_ONCE:
                break
            stream = self._ready.popleft()
            stream.is_listed = False
            if not stream.is_gone and self._fill_from(stream):
                self._list(stream)
        is_waiting = self._window <= 0 or not self._ready or self._since_ping > _PING_BYTES
        if self._pings and is_waiting:
            for each in self._pings:
                self._output.add(frames.frame(Kind.PING, frames.ACK, payload=each))
            self._pings.clear()

    def _fill_from(self, stream: Stream) -> bool:
        """Moves answers of one call to the output. Returns whether it is ready to send more later."""
        size = 0
        while (answer := stream.next_answer()) is not None:
            if answer.headers is not None:
                stream.answer = None
                if self._add_headers(stream, answer):
                    return False
                continue
            most = min(answer.size, stream.window, self._window, _TURN - size)
            if most <= 0:
                return stream.window > 0  # otherwise the growth of its window puts it into the queue again
            stream.window -= most
            stream.moved = time.monotonic()
            self._window -= most
            self._since_ping += most
            size += most
            self._output.add_data(stream.number, answer, most, self._largest_frame)
            if not answer.size:
                stream.answer = None
        return False

    def _add_headers(self, stream: Stream, answer: Answer) -> bool:
        """Adds headers to the output. Returns whether they end the call."""
        flags = frames.END_HEADERS | (frames.END_STREAM if answer.is_last else 0)
        self._output.add(frames.frame(Kind.HEADERS, flags, stream.number, answer.headers or b""))
        if not answer.is_last:
            return False
        if not stream.is_complete:  # the client need not send the rest
            self._output.add(frames.number(Kind.RST_STREAM, stream.number, Code.NO_ERROR))
        self._streams.pop(stream.number, None)
        stream.end()
        return True
