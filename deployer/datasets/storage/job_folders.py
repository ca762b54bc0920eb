"""Folders of jobs below the root: `_work/TABLE_ID/JOB_ID/`, which have checkpoints (see `deployer.columns.fill`), and
`_errors/TABLE_ID/JOB_ID/`, which have rows for which a function failed (see `deployer.columns.backfill`)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from deployer.datasets.storage.options import objects_at
from deployer.platform.storage.objects import ObjectInfo

WORK, ERRORS = "_work", "_errors"
FILE_LISTS = "_ingest"  #: `_ingest/TABLE_ID/` lists the files that a table's INGEST loaded and set aside


def job_folder(table_id: str, job_id: str) -> str:
    """Returns the folder of a job's checkpoints, relative to the root."""
    return f"{WORK}/{table_id}/{job_id}"


def error_folder(table_id: str, job_id: str) -> str:
    """Returns the folder of the failed rows of a job, relative to the root."""
    return f"{ERRORS}/{table_id}/{job_id}"


def job_files(root: str, table_id: str, kind: str = WORK) -> dict[str, list[ObjectInfo]]:
    """Returns the files of a table's jobs by the job's id: checkpoints, or failed rows (`ERRORS`)."""
    found: dict[str, list[ObjectInfo]] = {}
    for each in objects_at(root).described(f"{kind}/{table_id}"):
        parts = each.path.split("/")
        if len(parts) > 3:
            found.setdefault(parts[2], []).append(each)
    return found


def tables_with_job(root: str, job_id: str) -> set[str]:
    """Returns the ids of the tables that have files of a job of that id."""
    found = (path.split("/") for path in objects_at(root).list(WORK))
    return {parts[1] for parts in found if len(parts) > 3 and parts[2] == job_id}


def remove_job_folder(root: str, table_id: str, job_id: str, kind: str = WORK) -> None:
    """Removes all checkpoints of a job, or the failed rows that it recorded (`ERRORS`)."""
    _remove(root, f"{kind}/{table_id}/{job_id}")


def remove_job_folders(root: str, table_id: str) -> None:
    """Removes all files of all jobs of a table."""
    for kind in (WORK, ERRORS):
        for job_id in job_files(root, table_id, kind):
            remove_job_folder(root, table_id, job_id, kind)
        _remove(root, f"{kind}/{table_id}")


def remove_file_lists(root: str, table_id: str) -> None:
    """Removes what INGEST recorded of a table."""
    _remove(root, f"{FILE_LISTS}/{table_id}")


def _remove(root: str, folder: str) -> None:
    objects = objects_at(root)
    paths: Iterable[str] = list(objects.list(folder))
    objects.delete(paths)
    if "://" not in root:
        for each, _, _ in os.walk(Path(root) / folder, topdown=False):
            with suppress(OSError):  # the folder is not empty, or does not exist
                Path(each).rmdir()
