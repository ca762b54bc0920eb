"""Pulumi's protocol between a program and the engine, as frames of a channel: calls with numbers, answers to them.

The messages are those of the SDK's services `ResourceMonitor` and `Engine`. A frame is a letter and what belongs to it:

    from the program   C  number, method, message      a call
                       W  text                         a warning of the SDK about an unhandled task
                       F  JSON                         the program failed: the error, see `isolation.carried`
                       D                               the program came to its end
    to the program     {…}                             first, JSON: what to run and with which settings
                       A  number, message              the answer to a call
                       E  number, JSON                 the call was refused: code and message
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.message_factory import GetMessageClass
from pulumi.runtime.proto import engine_pb2, resource_pb2

CALL, WARNING, FAILED, DONE, ANSWER, ERROR = b"C", b"W", b"F", b"D", b"A", b"E"
MONITOR, ENGINE = "monitor", "engine"
CALL_HEADER = struct.Struct(">IH")
ANSWER_HEADER = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Method:
    """A call without streams. Its number is its index in `methods()`."""

    number: int
    service: str
    name: str
    request: Any  #: the class of the message
    answer: Any


@cache
def methods() -> Sequence[Method]:
    """Returns all methods of both services, in an order that the SDK's own descriptors give."""
    services = (
        (MONITOR, resource_pb2.DESCRIPTOR.services_by_name["ResourceMonitor"]),
        (ENGINE, engine_pb2.DESCRIPTOR.services_by_name["Engine"]),
    )
    found = [
        (service, method)
        for service, descriptor in services
        for method in descriptor.methods
        if not (method.client_streaming or method.server_streaming)
    ]
    return tuple(
        Method(number, service, each.name, GetMessageClass(each.input_type), GetMessageClass(each.output_type))
        for number, (service, each) in enumerate(found)
    )
