"""Finds the user whose process has the other end of a connection on this machine.

Only Linux reports this.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

IS_USER_KNOWN = sys.platform == "linux"  #: whether the system reports the user of a connection

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def connection_user(address: str, number: int, port: int) -> int | None:
    """Returns the user whose process has the end `address` and `number` of an open connection to `port` of 127.0.0.1;
    None when that is unknown.

    A connection that its owner has closed already is no longer known: the kernel gives it to user 0 then.
    """
    try:
        packed = socket.inet_aton(address)
    except OSError:
        return None
    found = _asked_of_kernel(packed, number, port)
    return _found_in_tables(packed, number, port) if found is None else found


_SERVER = socket.inet_aton("127.0.0.1")
_ESTABLISHED = 1
_REQUEST = struct.Struct("=IHHIIBBBxI2s2s16s16s4s8s")  # nlmsghdr, inet_diag_req_v2, inet_diag_sockid in it
_ANSWER = struct.Struct("=IHHIIBBBB48sIIIII")  # nlmsghdr, inet_diag_msg
_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST = 4, 20, 1  # linux/netlink.h, linux/sock_diag.h


def _asked_of_kernel(client: bytes, number: int, port: int) -> int | None:
    """Asks the kernel's socket diagnostics (man sock_diag) once, however many connections there are."""
    wanted = _REQUEST.pack(
        *(_REQUEST.size, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0),
        *(socket.AF_INET, socket.IPPROTO_TCP, 0, 1 << _ESTABLISHED),
        *(number.to_bytes(2, "big"), port.to_bytes(2, "big"), client, _SERVER, b"", b"\xff" * 8),
    )
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG) as asking:
            asking.settimeout(1.0)
            asking.send(wanted)
            answer = asking.recv(8192)
    except OSError:  # a sandbox without it
        return None
    if len(answer) < _ANSWER.size:
        return None
    _, kind, _, _, _, _, state, _, _, _, _, _, _, user, inode = _ANSWER.unpack_from(answer)
    return int(user) if (kind, state) == (_SOCK_DIAG_BY_FAMILY, _ESTABLISHED) and inode else None


def _found_in_tables(client: bytes, number: int, port: int) -> int | None:
    """Searches the list of all connections, which takes several milliseconds."""
    for table, form in zip(_TABLES, (_words, _mapped), strict=True):
        wanted = [f"{form(client)}:{number:04X}", f"{form(_SERVER)}:{port:04X}", f"{_ESTABLISHED:02X}"]
        for fields in _rows(table):
            if fields[1:4] == wanted and fields[9] != "0":
                return int(fields[7])
    return None


def _rows(table: Path) -> Iterator[list[str]]:
    try:
        lines = table.read_text(encoding="ascii").splitlines()
    except OSError:
        return
    yield from (fields for line in lines[1:] if len(fields := line.split()) > 9)


def _words(packed: bytes) -> str:
    """Returns the kernel's form of an address: words of 32 bits in the machine's order, in hexadecimal digits."""
    return "".join(f"{word:08X}" for word in struct.unpack(f"={len(packed) // 4}I", packed))


def _mapped(packed: bytes) -> str:
    """Returns the same for a socket of IPv6 that is connected to an address of IPv4."""
    return _words(bytes(10) + b"\xff\xff" + packed)
