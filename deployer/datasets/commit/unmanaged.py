"""Commits to datasets that no state store manages: plain Lance commits, where Lance decides what two writers may do at
once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import first_line, is_of_files, is_of_lance, lance_errors
from deployer.datasets.storage.options import storage_options
from deployer.errors import Conflict, DeployerError, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


def append_rows(location: str, rows: pa.RecordBatchReader) -> None:
    """Adds rows as one version. Raises InvalidInput for rows that do not fit, Conflict where other writers won."""
    _write(location, rows, "append")


def overwrite_rows(location: str, rows: pa.RecordBatchReader) -> None:
    """Replaces all rows, as one version. Raises as `append_rows` does."""
    _write(location, rows, "overwrite")


def upsert_rows(location: str, rows: pa.RecordBatchReader, keys: Sequence[str]) -> None:
    """Replaces rows with the same keys and adds the other rows, as one version. Two rows may not have the same key.
    Raises as `append_rows` does."""
    dataset = open_dataset(location)
    with _errors(location):
        dataset.merge_insert(list(keys)).when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _write(location: str, rows: pa.RecordBatchReader, mode: str) -> None:
    import lance

    with _errors(location):
        lance.write_dataset(rows, location, mode=mode, storage_options=storage_options(location))


@contextmanager
def _errors(location: str) -> Iterator[None]:
    with lance_errors(location):
        try:
            yield
        except BaseException as failure:
            if isinstance(failure, DeployerError) or not is_of_lance(failure) or is_of_files(failure):
                raise
            if "conflict" in str(failure).lower() or "preempted" in str(failure):
                raise Conflict(
                    "another process wrote the table at the same time", where=location, remedy="write the rows again"
                ) from failure
            raise InvalidInput(
                f"the rows cannot be written: {first_line(failure)}", where=location, remedy="send other rows"
            ) from failure
