"""What a job tells of itself below the root: whole, and by ids that never become paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.compute.jobs.status import FOLDER, JobStatus, StartedJob, read_status, remember, remembered, write_status
from deployer.errors import Corrupt
from deployer.platform.system.progress import Progress


def test_what_is_told_is_read(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert read_status(root, "a") == JobStatus()
    for reported in (JobStatus(Progress("loading", 1, None)), JobStatus(result={"rows": 3, "splits": None})):
        write_status(root, "a", reported)
        assert read_status(root, "a") == reported
    assert read_status(root, "b") == JobStatus()


@pytest.mark.parametrize("job_id", ["monday", "../../etc/passwd", "a b/ü\n"])
def test_a_job_is_found_by_its_id(tmp_path: Path, job_id: str) -> None:
    started = StartedJob(job_id, "ingest", "ingest air.flights", "small", "00abc", "key")
    assert remembered(str(tmp_path), job_id) is None
    remember(str(tmp_path), started)
    assert remembered(str(tmp_path), job_id) == started
    assert [file.parent.name for file in tmp_path.rglob("*") if file.is_file()] == [FOLDER]


def test_what_is_not_ours_is_said(tmp_path: Path) -> None:
    write_status(str(tmp_path), "a", JobStatus())
    (tmp_path / FOLDER / "a.json").write_text("[", encoding="utf-8")
    with pytest.raises(Corrupt, match="the record of the run cannot be read; run it again"):
        read_status(str(tmp_path), "a")
