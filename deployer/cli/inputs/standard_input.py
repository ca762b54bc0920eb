"""The file `-`: standard input, stored in a private temporary file while a command runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

STDIN = "-"
#: suffixes of compressed files by their first bytes
_CODEC_BY_START = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}


@contextmanager
def standard_input(files: Sequence[str], format_name: str | None) -> Iterator[list[str]]:
    """Yields the files, with a temporary file in place of `-` that has the content of standard input. The temporary
    file is removed when the block ends.

    Raises InvalidInput where the format is unknown, or where standard input is a terminal.
    """
    from deployer.errors import InvalidInput
    from deployer.platform.files.temporary import temporary_folder
    from deployer.tables.ingest.files.source_files import STDIN_PURPOSE

    if STDIN not in files:
        yield list(files)
        return
    if format_name is None:
        raise InvalidInput("standard input has no name that shows its format", remedy="give --format, such as csv")
    if sys.stdin.isatty():
        raise InvalidInput("standard input is a terminal", remedy="send a file to it: … | deployer …, or … < FILE")
    with temporary_folder(STDIN_PURPOSE) as folder:  # mode 0700, with a random name
        path = _spooled(sys.stdin.buffer, folder)
        yield [str(path) if file == STDIN else file for file in files]


def refuse_standard_input(files: Sequence[str]) -> None:
    """Raises InvalidInput for `-`, because a cluster on AWS reads the files."""
    from deployer.errors import InvalidInput

    if STDIN in files:
        raise InvalidInput(
            "a cluster on AWS cannot read the standard input of this machine", remedy="give a file, with --upload"
        )


def _spooled(stream: BinaryIO, folder: Path) -> Path:
    """Writes the content of the stream to a file in the folder; returns the file. A compressed one gets its suffix."""
    plain = folder / "stdin"
    with plain.open("xb") as file:
        shutil.copyfileobj(stream, file, 1024 * 1024)
    with plain.open("rb") as file:
        start = file.read(4)
    for magic, suffix in _CODEC_BY_START.items():
        if start.startswith(magic):
            return plain.rename(plain.with_suffix(suffix))
    return plain
