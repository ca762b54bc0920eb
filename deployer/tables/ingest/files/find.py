"""Finds the files to load, determines their formats, and divides them into splits that are read independently."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from deployer.errors import InvalidInput, NotFound
from deployer.platform.files.reading import NotAFile, check_regular
from deployer.tables.ingest.files.folder_names import check_same_folders, folder_values, is_hidden
from deployer.tables.ingest.files.model import SUFFIXES, Format, Source, Split
from deployer.tables.ingest.files.source_files import is_on_s3, shown_name, without_codec

SPLIT_BYTES = 32 * 1024 * 1024  #: about the number of bytes of a file that a split reads, with at most `SPLIT_ROWS`
SPLIT_ROWS = 262_144  #: rows from which on a split is complete, for files with row groups, batches or fragments


_CREDENTIALS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<user>[^/?#]*@)?(?P<place>[^?#]*)(?P<query>[?#].*)?"
)


def refuse_credentials(paths: Iterable[str]) -> None:
    """Raises InvalidInput for an address that contains credentials, such as a presigned URL, because messages, the
    arguments of jobs on clusters, and their records contain addresses. The error shows the address without
    credentials."""
    for path in paths:
        found = _CREDENTIALS.fullmatch(path)
        if found is None:
            continue
        query = found["query"] or ""  # for S3, it may be the rest of a glob
        signed = "x-amz-" in query.lower() if found["scheme"] == "s3" else query
        if found["user"] or signed:
            raise InvalidInput(
                "the address has credentials in it",
                where=f"{found['scheme']}://{found['place']}",
                remedy="leave them out: credentials come from the environment or the AWS profile; download what a "
                "presigned URL leads to",
            )


def find_sources(paths: Sequence[str], format_name: Format | None) -> list[Source]:
    """Returns the sources that files, folders and globs name, each once, in the order of their names within each
    argument.

    `paths` has paths or s3:// addresses of files, folders and globs. A folder stands for the files in it, at any depth,
    whose suffix shows a known format; hidden files are left out. Folders named `column=value` must give the same
    columns to all sources. Raises NotFound where nothing is found, and InvalidInput for sources that cannot be loaded.
    """
    found: dict[str, Source] = {}
    for given in paths:
        for path, is_lance in _expanded(given, format_name):
            source = replace(source_of(path, format_name, is_lance), folders=folder_values(path, given))
            found.setdefault(path if is_on_s3(path) else str(Path(path).resolve()), source)
    sources = list(found.values())
    check_same_folders([(source.name, source.folders) for source in sources])
    return sources


def _expanded(given: str, format_name: Format | None) -> list[tuple[str, bool]]:
    """Returns the files that an argument names, and whether each is a Lance dataset."""
    if is_on_s3(given):
        from deployer.tables.ingest.files.s3_sources import expanded

        return expanded(given, lambda name: format_name is not None or known_format(name) is not None)
    found = [(path, _is_lance(path)) for path in _expanded_here(given, format_name)]
    for path, is_lance in found:
        if not is_lance:
            _refuse_other_kinds(path)
    return [(str(path), is_lance) for path, is_lance in found]


def _refuse_other_kinds(path: Path) -> None:
    try:
        check_regular(path)
    except NotAFile as error:
        raise InvalidInput(f"it cannot be read: {error.strerror}", where=path, remedy="give a file") from None


def _expanded_here(given: str, format_name: Format | None) -> list[Path]:
    path = Path(given)
    if path.is_file() or _is_lance(path):
        return [path]
    if path.is_dir():
        if inside := _in_folder(path, format_name):
            return inside
        raise NotFound(
            "no file of a known format is in the folder", where=given, remedy=f"give files of {', '.join(Format)}"
        )
    matches = sorted(Path(match) for match in glob.glob(given, recursive=True))  # noqa: PTH207 (absolute ones too)
    if not matches:
        raise NotFound("no such file, folder or glob", where=given, remedy="check the path")
    return [
        file
        for match in matches
        for file in (_in_folder(match, format_name) if match.is_dir() and not _is_lance(match) else [match])
    ]


def _in_folder(folder: Path, format_name: Format | None) -> list[Path]:
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if is_hidden(path.name):
            continue
        if _is_lance(path):
            found.append(path)
        elif path.is_dir():
            found += _in_folder(path, format_name)
        elif known_format(path.name) is not None or format_name is not None:
            found.append(path)
    return found


def _is_lance(path: Path) -> bool:
    return path.is_dir() and (path / "_versions").is_dir()


def known_format(name: str) -> Format | None:
    """Returns the format that a file's suffix shows; None for an unknown suffix."""
    return SUFFIXES.get(Path(without_codec(name.lower())).suffix)


def source_of(path: str, format_name: Format | None, is_lance: bool) -> Source:
    """Returns the source of a file. Its format is `format_name`, or that of its suffix. Raises InvalidInput for a file
    that cannot be read."""
    name = path.rpartition("/")[2].lower()
    form = Format.LANCE if is_lance else format_name or known_format(name)
    if name.endswith(".zip"):
        raise InvalidInput("zip archives are not read", where=path, remedy="unzip it first")
    if form is None:
        raise InvalidInput(
            f"the name does not show the format (known: {', '.join(SUFFIXES)}, each CSV or JSON also with .gz or .zst)",
            where=path,
            remedy=f"give --format: {', '.join(Format)}",
        )
    compressed = without_codec(name) != name
    if compressed and not form.is_text:
        raise InvalidInput(f"a compressed {form} file is not read", where=path, remedy="uncompress it first")
    return Source(path, form, shown_name(path), compressed)


def splits_of(sources: Sequence[Source]) -> list[Split]:
    """Returns all splits of all sources, numbered in order."""
    found: list[Split] = []
    for source in sources:
        for start, stop, rows, size in _parts(source):
            found.append(Split(len(found), source, start, stop, rows, size))
    return found


def _parts(source: Source) -> list[tuple[int, int, int, int]]:
    match source.format:
        case Format.PARQUET | Format.ARROW | Format.LANCE:
            from deployer.tables.ingest.files.columnar import units

            return _grouped(units(source))
        case Format.CSV | Format.JSON:
            from deployer.tables.ingest.files.text_blocks import ranges

            return ranges(source, SPLIT_BYTES)
        case _:
            assert_never(source.format)


def _grouped(units: Sequence[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Returns parts (start, stop, rows, bytes) of neighbouring units, which are given as (rows, bytes). A part is
    complete once it has `SPLIT_BYTES` or `SPLIT_ROWS`."""
    parts, start, rows, size = [], 0, 0, 0
    for i, (unit_rows, unit_bytes) in enumerate(units):
        rows, size = rows + unit_rows, size + unit_bytes
        if size >= SPLIT_BYTES or rows >= SPLIT_ROWS:
            parts.append((start, i + 1, rows, size))
            start, rows, size = i + 1, 0, 0
    if start < len(units):
        parts.append((start, len(units), rows, size))
    return parts
