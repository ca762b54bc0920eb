"""The process that computes SQL for another one: `python -m deployer.platform.sql.worker MEMORY ANSWER`.

It reads requests from stdin and answers on stdout. Both are frames: the length of a JSON header and the number of
tables, the header, and each table as an Arrow IPC stream after its length. MEMORY is the limit of bytes that it may
allocate after its start, ANSWER the limit of bytes of an answer. It writes no file, and ends with its stdin.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

import pyarrow as pa

HEAD = struct.Struct("<II")  #: bytes of the header, and how many tables follow, each behind its own `SIZE`
SIZE = struct.Struct("<Q")


def write_frame(stream: IO[bytes], header: Mapping[str, Any], tables: Sequence[pa.Table]) -> None:
    """Writes one request or answer."""
    text = json.dumps(header).encode()
    stream.write(HEAD.pack(len(text), len(tables)) + text)
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        buffer = sink.getvalue()
        stream.write(SIZE.pack(len(buffer)))
        stream.write(buffer)
    stream.flush()


def read_frame(read: Any) -> tuple[dict[str, Any], list[pa.Table]]:
    """Returns the header and the tables of one frame; `read` returns exactly this many bytes, or raises EOFError."""
    length, count = HEAD.unpack(read(HEAD.size))
    header: dict[str, Any] = json.loads(read(length))
    tables = []
    for _ in range(count):
        (size,) = SIZE.unpack(read(SIZE.size))
        tables.append(pa.ipc.open_stream(read(size)).read_all())
    return header, tables


def main() -> None:
    import datafusion  # its memory is not part of the limit

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer

    def read(size: int) -> bytes:
        data = stdin.read(size)
        if len(data) < size:
            raise EOFError
        return data

    memory, most = map(int, sys.argv[1:])
    _limit(memory)
    write_frame(stdout, {"ready": True}, [])
    while True:
        try:
            header, tables = read_frame(read)
        except EOFError:
            return
        try:
            answer = (_expression if "expression" in header else _query)(datafusion, header, tables)
            if answer.nbytes > most:
                write_frame(stdout, {"too_large": True}, [])
            else:
                write_frame(stdout, {}, [answer])
        except BaseException as failure:  # a Rust panic is not an Exception
            write_frame(stdout, {"error": str(failure)[:10_000] or type(failure).__name__}, [])


def _limit(memory: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            pages = int(file.read().split()[0])
    except OSError:  # a system that does not report memory does not enforce the limit either
        return
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _expression(datafusion: Any, header: Mapping[str, Any], tables: Sequence[pa.Table]) -> pa.Table:
    """Returns one column `value`."""
    [table] = tables
    # With one partition: several end in any order, and their values would be those of other rows.
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    frame = context.from_arrow(table)  # no other way has nested extension types without rows
    found: pa.Table = frame.select(frame.parse_sql_expr(header["expression"]).alias("value")).to_arrow_table()
    return found


def _query(datafusion: Any, header: Mapping[str, Any], tables: Sequence[pa.Table]) -> pa.Table:
    """Returns the result of one SELECT over tables by their names; other statements are refused."""
    # One thread: plans are small, and threads cost more than the query.
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    for name, table in zip(header["names"], tables, strict=True):
        rows = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        context.register_record_batches(name, [rows])
    allowed = datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    found: pa.Table = context.sql_with_options(header["query"], allowed).to_arrow_table()
    return found


if __name__ == "__main__":
    main()
