"""The machines that plug-ins are built for, as their archives name them: `linux-amd64`."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from deployer.errors import Refused

_SYSTEMS = {"Linux": "linux", "Darwin": "darwin"}
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_ELF, _MACH_O = b"\x7fELF", b"\xcf\xfa\xed\xfe"
_OF_ELF = {62: "amd64", 183: "arm64"}  #: `e_machine`
_OF_MACH_O = {0x01000007: "amd64", 0x0100000C: "arm64"}  #: `cputype`
HEAD_BYTES = 20  #: first bytes of a program from which `machine_of` finds its machine


@dataclass(frozen=True, slots=True)
class Machine:
    """An operating system and an architecture of processors."""

    system: str
    architecture: str

    def __str__(self) -> str:
        return f"{self.system}-{self.architecture}"


def this_machine() -> Machine:
    """Returns this machine. Raises Refused for a machine for which Pulumi does not build plug-ins."""
    system, architecture = platform.system(), platform.machine()
    if system not in _SYSTEMS or architecture.lower() not in _ARCHITECTURES:
        raise Refused(
            f"Pulumi has no provider plug-ins for {system} on {architecture}",
            remedy="run it on Linux or macOS, on a processor of amd64 or arm64",
        )
    return Machine(_SYSTEMS[system], _ARCHITECTURES[architecture.lower()])


def machine_of(head: bytes) -> Machine | None:
    """Returns the machine that a program runs on, by its first `HEAD_BYTES`; None for a script or an unknown format."""
    if head.startswith(_ELF):
        number = int.from_bytes(head[18:20], "little" if head[5:6] == b"\x01" else "big")
        return Machine("linux", _OF_ELF.get(number, f"ELF machine {number}"))
    if head.startswith(_MACH_O):
        number = int.from_bytes(head[4:8], "little")
        return Machine("darwin", _OF_MACH_O.get(number, f"Mach-O processor {number}"))
    return Machine("windows", "any processor") if head.startswith(b"MZ") else None
