"""Files that have a name as data has, and are not data: empty ones, and those that macOS puts beside others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.errors import InvalidInput
from deployer.tables.ingest.files.source_files import open_file

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import Source

#: How files of macOS begin: AppleSingle and AppleDouble (RFC 1740), and .DS_Store.
_MACOS = (b"\x00\x05\x16\x00", b"\x00\x05\x16\x07", b"\x00\x00\x00\x01Bud1")


def check_is_data(source: Source) -> None:
    """Raises InvalidInput for a file that is empty or not data. What else is wrong, reading it tells."""
    if source.format == "lance":
        return
    try:
        with open_file(source.path) as file:
            start = file.read(8)
    except OSError:
        return
    if not start:
        raise InvalidInput("the file is empty", where=source.name, remedy="remove it, or write it again")
    if start.startswith(_MACOS):
        raise InvalidInput(
            "it holds attributes that macOS stores beside a file, and no data",
            where=source.name,
            remedy="leave it out, or remove all such files of the folder, whose names begin with ._",
        )
