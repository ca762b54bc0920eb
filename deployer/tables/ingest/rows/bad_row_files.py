"""Files of bad rows. Each row has the form of its source and the reasons, so that it can be repaired and loaded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.files.private import make_folder, replacing
from deployer.tables.ingest.files.source_files import is_on_s3
from deployer.tables.ingest.rows.bad_rows import BadRows, KeptRow, Problem
from deployer.tables.ingest.rows.kept_rows import REASONS


@dataclass(frozen=True, slots=True)
class _Row:
    file: str
    number: int
    problems: Sequence[Problem]
    kept: KeptRow | None


def check_bad_rows_file(path: str | Path, table: pa.Schema, *, may_be_own: bool) -> None:
    """Raises InvalidInput where bad rows cannot be written to `path`. An existing file is never replaced or extended.

    `may_be_own` says that an existing file may be from an earlier attempt of the same load; `write_bad_rows` then
    checks its content.
    """
    if not may_be_own and _exists(str(path)):
        raise _exists_already(path)
    if not _is_parquet(path) and REASONS in table.names:
        raise InvalidInput(
            f"the table has a column {REASONS!r}, which is the name for the reasons in a file of bad rows",
            where=path,
            remedy="give --bad-rows a name that ends with .parquet",
        )


def _exists_already(path: str | Path) -> InvalidInput:
    return InvalidInput(
        "the file of bad rows exists already, and deployer does not replace it",
        where=path,
        remedy="give --bad-rows another name, or move the file away",
    )


def _exists(path: str) -> bool:
    """Returns whether a regular file exists. A link or a pipe does not count, because writing refuses these."""
    if not is_on_s3(path):
        return Path(path).is_file() and not Path(path).is_symlink()
    from deployer.platform.storage.s3_objects import S3Objects

    folder, _, name = path.rpartition("/")
    return S3Objects(folder).has(name)


def write_bad_rows(path: str | Path, bad: Mapping[str, BadRows]) -> None:
    """Writes the rows to a new file at `path`, which may be an s3:// address. The format is Parquet if the name ends
    with `.parquet`, else JSON lines. An existing local file with the same content is kept. Raises InvalidInput where
    the file cannot be written."""
    rows = [*_rows(bad)]
    data = _as_parquet(rows) if _is_parquet(path) else _as_json_lines(rows)
    if is_on_s3(str(path)):
        from deployer.platform.storage.s3_objects import S3Objects

        folder, _, name = str(path).rpartition("/")
        if not S3Objects(folder).put_new(name, data):
            raise _exists_already(path)
        return
    if _exists(str(path)) and Path(path).read_bytes() == data:
        return
    if _exists(str(path)):
        raise _exists_already(path)
    try:
        make_folder(Path(path).parent)
        with replacing(Path(path)) as file:
            file.write(data)
    except OSError as failure:
        raise InvalidInput(
            f"bad rows cannot be written: {failure}", where=path, remedy="give another --bad-rows"
        ) from None


def remove_bad_rows(path: str | Path) -> None:
    """Removes the file that `write_bad_rows` wrote for a load that failed, so that the load can be repeated."""
    if not is_on_s3(str(path)):
        Path(path).unlink(missing_ok=True)
        return
    from deployer.platform.storage.s3_objects import S3Objects

    folder, _, name = str(path).rpartition("/")
    S3Objects(folder).delete([name])


def _is_parquet(path: str | Path) -> bool:
    return str(path).lower().endswith(".parquet")


def _rows(bad: Mapping[str, BadRows]) -> Iterator[_Row]:
    for file, each in bad.items():
        for number, problems in groupby(each.problems, key=lambda problem: problem.row):
            yield _Row(file, number, tuple(problems), each.kept.get(number))


def _as_json_lines(rows: Sequence[_Row]) -> bytes:
    return "".join(json.dumps(_document(row), ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace")


def _document(row: _Row) -> dict[str, Any]:
    """Returns the row's own fields, then the reasons. The text of a line without fields is stored in its reasons."""
    reasons: list[dict[str, Any]] = [
        {"file": row.file, "row": row.number, "column": problem.column, "reason": problem.reason}
        for problem in row.problems
    ]
    if isinstance(row.kept, dict):
        return {**row.kept, REASONS: reasons}
    return {REASONS: [{**reason, "line": row.kept} for reason in reasons]}


def _as_parquet(rows: Sequence[_Row]) -> bytes:
    import pyarrow.parquet as pq

    listed = [
        {
            "file": row.file,
            "row": row.number,
            "column": problem.column,
            "reason": problem.reason,
            "source": row.kept if isinstance(row.kept, str | None) else json.dumps(row.kept, ensure_ascii=False),
        }
        for row in rows
        for problem in row.problems
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(listed, schema=_PARQUET), sink)
    return bytes(sink.getvalue())


_PARQUET = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("column", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("source", pa.string()),
    ]
)
