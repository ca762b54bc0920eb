"""Reads the SHA-256 of trusted package files, by name and version.

The lock is part of the package (`lock/`, made by `make lock`). For a version that a project's own requirements files
pin, their hashes replace those of the lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from deployer.errors import InvalidInput

PACKAGES, AWS, BUILD = "packages.txt", "packages-aws.txt", "packages-build.txt"
OF_PROJECTS = "requirements*.txt"
LARGEST = 16 * 2**20  #: most bytes of a requirements file

#: The SHA-256 of trusted files, in hexadecimal, by `name==version`.
Hashes = Mapping[str, frozenset[str]]

_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*==\s*([^\s;\\#*]+)")
_HASH = re.compile(r"--hash[= ]sha256:([0-9a-fA-F]{64})\b")


def lock_text(name: str) -> str:
    """Returns a file of the lock in pip's format: PACKAGES, AWS (further packages for the program of a lake on S3) or
    BUILD."""
    return files("deployer.compute").joinpath("lock", name).read_text(encoding="utf-8")


def parse_hashes(text: str) -> dict[str, frozenset[str]]:
    """Returns the hashes in a requirements file. Skips lines without a pinned version or without a hash."""
    found: dict[str, frozenset[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        if (match := _PIN.match(line.strip())) and (hashes := _HASH.findall(line)):
            pin = f"{canonical(match[1])}=={match[2]}"
            found[pin] = found.get(pin, frozenset()) | {each.lower() for each in hashes}
    return found


def known_hashes(project_dir: Path | None = None) -> Hashes:
    """Returns the hashes of the lock and of the project's requirements files. Raises InvalidInput for a file that is
    too large or is not UTF-8."""
    own: dict[str, frozenset[str]] = {}
    for path in sorted(project_dir.glob(OF_PROJECTS)) if project_dir else ():
        if path.is_file():
            for pin, hashes in parse_hashes(_read(path)).items():
                own[pin] = own.get(pin, frozenset()) | hashes
    return {**_locked(), **own}


def hashes_of(pins: Sequence[str], project_dir: Path | None = None) -> Hashes:
    """Returns the hashes of these pins. Raises InvalidInput, which names all pins without a known hash."""
    known = known_hashes(project_dir)
    if missing := [pin for pin in pins if pin not in known]:
        raise InvalidInput(
            f"no SHA-256 is known of {_listed(missing)}, which jobs on clusters need",
            where=(project_dir or Path()) / "requirements.txt",
            remedy="install the versions that this file pins, or pin these there with --hash=sha256:…, as "
            "`uv pip compile --generate-hashes` writes it",
        )
    return {pin: known[pin] for pin in pins}


def version_in(text: str, name: str) -> str:
    """Returns the version to which a requirements file pins a package. Raises KeyError for an unpinned package."""
    return dict(pin.split("==") for pin in parse_hashes(text))[canonical(name)]


def canonical(name: str) -> str:
    """Returns the normalized name of a package, by which indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


@lru_cache(maxsize=1)
def _locked() -> Hashes:
    return parse_hashes("\n".join(map(lock_text, (PACKAGES, AWS, BUILD))))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InvalidInput("a requirements file of more than 16 MiB is not read", where=path, remedy="make it smaller")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidInput("not UTF-8 text", where=path, remedy="save the file as UTF-8") from None


def _listed(pins: Iterable[str], most: int = 8) -> str:
    pins = list(pins)
    more = f" and {len(pins) - most} more" if len(pins) > most else ""
    return ", ".join(pins[:most]) + more
