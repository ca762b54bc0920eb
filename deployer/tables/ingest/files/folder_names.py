"""The names of folders `column=value`, such as `day=mon/part.parquet`, which Hive and Spark write.

Paths are texts here, so that files on a disk and objects on S3 have the same columns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from urllib.parse import quote, unquote

from deployer.errors import InvalidInput
from deployer.tables.ingest.files.source_files import is_on_s3

FolderValues = tuple[tuple[str, str | None], ...]  #: names of columns and their values as text, outermost first

NULL_NAME = "__HIVE_DEFAULT_PARTITION__"  #: Hive's value in the name of the folder for rows whose value is null
WILDCARD = re.compile(r"[*?[]")


def is_hive_folder(name: str) -> bool:
    """Returns whether a folder's name is `column=value`."""
    return name.find("=") > 0


def is_hidden(name: str) -> bool:
    """Returns whether files and folders with this name are left out. A folder such as `_day=mon` is not hidden, as in
    Spark."""
    return name.startswith(".") or (name.startswith("_") and not is_hive_folder(name))


def folder_values(path: str, given: str) -> FolderValues:
    """Returns the columns from the folders of a file, decoded.

    `given` is the file, folder or glob by which the file was found. All folders named `column=value` below `given` (for
    a glob, below its part without wildcards) count. Above it, only an unbroken series of such folders counts, from the
    innermost one upwards.
    Raises InvalidInput for a column that two folders name, and for a name that is not UTF-8.
    """
    folders = _parts(path)[:-1]
    base = _base(_parts(given))
    above, below = folders[: len(base)], folders[len(base) :]
    names = [*reversed([*takewhile(is_hive_folder, reversed(above))]), *filter(is_hive_folder, below)]
    found: dict[str, str | None] = {}
    for name in names:
        column, value = _decoded(name, path)
        if column in found:
            raise InvalidInput(f"two folders name column {column!r}", where=path, remedy="rename one of the folders")
        found[column] = value
    return tuple(found.items())


def folders_of(values: FolderValues) -> Iterator[str]:
    """Yields the names of folders for these columns and values."""
    for column, value in values:
        yield f"{quote(column, safe='')}={NULL_NAME if value is None else quote(value, safe='')}"


def check_same_folders(files: Sequence[tuple[str, FolderValues]]) -> None:
    """Raises InvalidInput, naming two files, unless the folders of all files name the same columns."""
    for name, values in files[1:]:
        first, other = ({column for column, _ in each} for each in (files[0][1], values))
        if first != other:
            raise InvalidInput(
                f"its folders give {_listed(other)}, and those of {files[0][0]} give {_listed(first)}",
                where=name,
                remedy="load the files one by one, or move them into folders of the same columns",
            )


def _parts(path: str) -> list[str]:
    # A relative path has its folders in the working directory, too; links stay as they are.
    return (path.rstrip("/") if is_on_s3(path) else os.path.abspath(path)).split("/")  # noqa: PTH100


def _base(given: Sequence[str]) -> Sequence[str]:
    """Returns the parts of a path before the first one with a wildcard."""
    return given[: next((i for i, part in enumerate(given) if WILDCARD.search(part)), len(given))]


def _decoded(folder: str, path: str) -> tuple[str, str | None]:
    try:
        column, value = (unquote(part, errors="strict") for part in folder.split("=", 1))
    except UnicodeDecodeError:
        raise InvalidInput(
            f"the name of folder {folder!r} is not UTF-8 after its %XX are decoded",
            where=path,
            remedy="rename the folder",
        ) from None
    return column, None if value == NULL_NAME else value


def _listed(columns: set[str]) -> str:
    names = ", ".join(map(repr, sorted(columns)))
    return f"column{'s' if len(columns) != 1 else ''} {names}" if columns else "no column"
