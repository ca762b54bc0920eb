"""Builds the wheel of deployer and its jobs from the running code. The same code gives the same bytes.

pip can install the wheel with its commands, and Spark uses it as a zip file of modules.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from deployer import DISTRIBUTION, __version__

PACKAGES = ("deployer", "spark_jobs")
JOBS = "spark_jobs"
STEM = f"{DISTRIBUTION.replace('-', '_')}-{__version__}"
NAME = f"{STEM}-py3-none-any.whl"

_TIME = (1980, 1, 1, 0, 0, 0)
_IS_PROGRAM = re.compile(r'^if __name__ == "__main__":', re.MULTILINE)


def build_wheel() -> bytes:
    """Returns the bytes of the wheel. Where deployer has no package metadata, as in a job on a cluster, the wheel
    declares neither dependencies nor commands."""
    files = {name: contents for package in PACKAGES for name, contents in _files(package)}
    info = f"{STEM}.dist-info"
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: deployer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        files[f"{info}/METADATA"] = _text("Metadata-Version: 2.4", *_IDENTITY)
    else:
        files[f"{info}/METADATA"] = _metadata(installed)
        files[f"{info}/entry_points.txt"] = _commands(installed)
        files |= {f"{info}/licenses/{name}": contents for name, contents in _licenses(installed)}
    return _zipped(tuple(sorted(files.items())), f"{info}/RECORD")


@lru_cache(maxsize=1)
def _zipped(files: Sequence[tuple[str, bytes]], record: str) -> bytes:
    """Returns the bytes of the wheel, built once for the same files, because a command needs it up to three times."""
    listed = [f"{name},sha256={_digest(contents)},{len(contents)}" for name, contents in files]
    recorded = (record, "\n".join([*listed, f"{record},,", ""]).encode())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        for name, contents in sorted([*files, recorded]):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr, entry.compress_type, entry.create_system = 0o644 << 16, zipfile.ZIP_DEFLATED, 3
            wheel.writestr(entry, contents)
    return buffer.getvalue()


def job_programs() -> dict[str, bytes]:
    """Returns the programs of jobs by job name, such as `ingest`."""
    return {
        Path(name).stem: contents
        for name, contents in _files(JOBS)
        if name.count("/") == 1 and name.endswith(".py") and _IS_PROGRAM.search(contents.decode())
    }


@cache
def _files(package: str) -> tuple[tuple[str, bytes], ...]:
    """Returns the files of a package by their names, read once: a process runs the code that it began with."""
    return tuple(_read_files(package))


def _read_files(package: str) -> Iterator[tuple[str, bytes]]:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(package)
    folder = Path(next(iter(spec.submodule_search_locations)))
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in inner.parts and path.suffix != ".pyc":
            yield f"{package}/{inner.as_posix()}", path.read_bytes()


_IDENTITY = (f"Name: {DISTRIBUTION}", f"Version: {__version__}")


def _metadata(installed: Distribution) -> bytes:
    """Returns the metadata fields that pip reads, in a fixed order, so that the text does not depend on the tool that
    built the installed package."""
    return _text(
        "Metadata-Version: 2.4",
        *_IDENTITY,
        *(
            f"{field}: {value}"
            for field in ("License-File", "Requires-Python", "Provides-Extra", "Requires-Dist")
            for value in sorted(installed.metadata.get_all(field) or ())
        ),
    )


def _commands(installed: Distribution) -> bytes:
    commands = installed.entry_points.select(group="console_scripts")
    return _text("[console_scripts]", *sorted(f"{each.name} = {each.value}" for each in commands))


def _licenses(installed: Distribution) -> Iterator[tuple[str, bytes]]:
    names = set(installed.metadata.get_all("License-File") or ())
    for file in installed.files or ():
        if file.name in names and file.parent.name in ("licenses", "") and (path := Path(str(file.locate()))).is_file():
            yield file.name, path.read_bytes()


def _text(*lines: str) -> bytes:
    return "\n".join([*lines, ""]).encode()


def _digest(contents: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
