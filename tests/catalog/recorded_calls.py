"""Calls of the official client as the server gets them: recorded beside their outcomes, and made again without it.

Ids and folders differ from run to run. In a recording, the id of an entry is its number, from 1, among the ids of
answers, and the folder of URLs is `/FOLDER`.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from deployer.catalog.protocol.dataframes import rows_in, schema_in
from deployer.catalog.protocol.messages import Method, cloud, methods
from deployer.catalog.serving import server
from deployer.catalog.serving.grpc_calls import Call

FOLDER = "/FOLDER"
ENTRY_ID = "x-rerun-entry-id"
_HEADERS = (ENTRY_ID, "x-rerun-client-version")
_TUID = "rerun.common.v1alpha1.Tuid"
_MADE = re.compile(r"-[0-9a-f]{8}\.lance$")  #: the end of the place of a table of the instance, with its id
_ANY = "google.protobuf.Any"


@dataclass(frozen=True)
class RecordedCall:
    """A call: the messages as base64, the headers that the server reads, and what came of it."""

    method: str
    headers: dict[str, str]
    requests: list[str]
    outcome: Any

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Names:
    """The ids of entries in the order in which answers had them, and the folder of URLs."""

    folder: str
    ids: list[int] = field(default_factory=list)

    def note(self, message: Any) -> None:
        """Remembers the ids in an answer."""
        for each in _tuids(message):
            if (found := _number(each)) not in self.ids:
                self.ids.append(found)

    def to_symbols(self, message: Any) -> Any:
        known = {found: number for number, found in enumerate(self.ids, 1)}
        return _translated(message, lambda found: known.get(found, found), self.folder, FOLDER)

    def from_symbols(self, message: Any) -> Any:
        known = dict(enumerate(self.ids, 1))
        return _translated(message, lambda found: known.get(found, found), FOLDER, self.folder)

    def header_to_symbol(self, value: str) -> str:
        return f"{self.ids.index(int(value, 16)) + 1:032x}"

    def header_from_symbol(self, value: str) -> str:
        return f"{self.ids[int(value, 16) - 1]:032x}"


@contextmanager
def recorded(folder: str) -> Iterator[list[RecordedCall]]:
    """Yields the list to which servers that start in the block add the calls that they answer."""
    calls: list[RecordedCall] = []
    names, checked = Names(folder), server._checked

    def recording(method: Method, call: Call) -> Call:
        inner = checked(method, call)

        def answer(request: Any, headers: Mapping[str, str]) -> Any:
            requests = list(request) if method.takes_stream else [request]
            sent = [b64encode(names.to_symbols(each).SerializeToString()).decode() for each in requests]
            kept = {name: headers[name] for name in _HEADERS if name in headers}
            if ENTRY_ID in kept:
                kept[ENTRY_ID] = names.header_to_symbol(kept[ENTRY_ID])
            place = len(calls)
            calls.append(RecordedCall(method.name, kept, sent, None))

            def ended(outcome: Any) -> None:
                calls[place] = RecordedCall(method.name, kept, sent, outcome)

            try:
                found = inner(iter(requests) if method.takes_stream else request, headers)
                answers = list(found) if method.gives_stream else [found]
            except Exception as failure:
                ended(type(failure).__name__)
                raise
            for each in answers:
                names.note(each)
            ended([described(each, names) for each in answers])
            return iter(answers) if method.gives_stream else found

        return answer

    with patch.object(server, "_checked", recording):
        yield calls


def repeat(call: Mapping[str, Any], client: Callable[..., Any], names: Names) -> Any:
    """Makes a recorded call again; returns what came of it, errors as their code."""
    import grpc

    method = next(each for each in methods() if each.name == call["method"])
    requests = [names.from_symbols(method.request.FromString(b64decode(each))) for each in call["requests"]]
    headers = dict(call["headers"])
    if ENTRY_ID in headers:
        headers[ENTRY_ID] = names.header_from_symbol(headers[ENTRY_ID])
    try:
        found = client(method.name, iter(requests) if method.takes_stream else requests[0], list(headers.items()))
    except grpc.RpcError as failure:
        return failure.code().name
    answers = found if method.gives_stream else [found]
    for each in answers:
        names.note(each)
    return [described(each, names) for each in answers]


def described(message: Any, names: Names) -> Any:
    """Returns what an answer says: names, URLs, columns and rows; no ids and times."""
    kind = type(message).DESCRIPTOR.name
    if kind == "FindEntriesResponse":
        return [each.name for each in message.entries]
    if kind == "ScanTableResponse":
        rows = pa.Table.from_batches(list(rows_in(message.dataframe_part)))
        rows = rows.drop_columns([each for each in rows.schema.names if each in ("id", "created_at", "updated_at")])
        return sorted(repr(each) for each in rows.to_pylist())
    if kind == "GetTableSchemaResponse":
        return [
            f"{each.name}: {each.type} {sorted((each.metadata or {}).items())}" for each in schema_in(message.schema)
        ]
    for name in ("table", "table_entry"):
        if name in type(message).DESCRIPTOR.fields_by_name:
            entry = getattr(message, name)
            url = cloud.LanceTable.FromString(entry.provider_details.value).table_url
            return [entry.details.name, _MADE.sub("-ID.lance", url.replace(names.folder, FOLDER))]
    if kind == "UpdateEntryResponse":
        return message.entry_details.name
    return kind


def _translated(message: Any, number: Callable[[int], int], before: str, after: str) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    for each in _messages(copy):
        if each.DESCRIPTOR.full_name == _TUID:
            found = number(_number(each))
            each.time_ns, each.inc = found >> 64, found & (1 << 64) - 1
        elif each.DESCRIPTOR.full_name == _ANY:
            table = cloud.LanceTable.FromString(each.value)
            each.value = cloud.LanceTable(table_url=table.table_url.replace(before, after)).SerializeToString()
    return copy


def _tuids(message: Any) -> Iterator[Any]:
    return (each for each in _messages(message) if each.DESCRIPTOR.full_name == _TUID)


def _messages(message: Any) -> Iterator[Any]:
    """Yields the message and those in it."""
    yield message
    for described, value in message.ListFields():
        if described.message_type is not None:
            for each in value if hasattr(value, "add") or isinstance(value, list) else [value]:
                yield from _messages(each)


def _number(tuid: Any) -> int:
    return int(tuid.time_ns) << 64 | int(tuid.inc)
