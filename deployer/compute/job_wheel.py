"""The wheel of deployer and its jobs, made from the code that runs here: the same code gives the same bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path

from deployer import __version__

PACKAGES = ("deployer", "spark_jobs")
JOBS = "spark_jobs"
NAME = f"deployer-{__version__}-py3-none-any.whl"

_TIME = (1980, 1, 1, 0, 0, 0)
_IS_PROGRAM = re.compile(r'^if __name__ == "__main__":', re.MULTILINE)


def build_wheel() -> bytes:
    """A wheel, whose contents Spark also takes as a zip file of modules."""
    files = {name: contents for package in PACKAGES for name, contents in _files(package)}
    info = f"deployer-{__version__}.dist-info"
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: deployer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return _zipped(tuple(sorted(files.items())), f"{info}/RECORD")


@lru_cache(maxsize=1)
def _zipped(files: Sequence[tuple[str, bytes]], record: str) -> bytes:
    """Made once for the same files: a command wants it up to three times."""
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
    """The entry points of jobs by their names, such as `ingest`."""
    return {
        Path(name).stem: contents
        for name, contents in _files(JOBS)
        if name.count("/") == 1 and name.endswith(".py") and _IS_PROGRAM.search(contents.decode())
    }


def _files(package: str) -> Iterator[tuple[str, bytes]]:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(package)
    folder = Path(next(iter(spec.submodule_search_locations)))
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in inner.parts and path.suffix != ".pyc":
            yield f"{package}/{inner.as_posix()}", path.read_bytes()


def _metadata() -> str:
    try:
        needed = requires("deployer") or []
    except PackageNotFoundError:
        needed = []
    lines = ["Metadata-Version: 2.1", "Name: deployer", f"Version: {__version__}"]
    return "\n".join([*lines, *(f"Requires-Dist: {each}" for each in sorted(needed)), ""])


def _digest(contents: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
