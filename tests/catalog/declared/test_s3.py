"""Sources in S3: what is below a prefix is listed, registered where it is, and compared by its etag."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from deployer.catalog.datasets.declared.apply import DeclaredDatasets
from deployer.catalog.datasets.declared.recordings import find_recordings, register_recordings
from deployer.platform.storage.s3_objects import S3Objects
from deployer.specs.types.dataset import DatasetSpec, RecordingSource
from deployer.state import create_store
from tests.catalog.datasets.recordings import scalars, write_recording

pytestmark = pytest.mark.full


def test_new_and_changed_recordings_of_a_bucket(bucket: str, tmp_path: Path) -> None:
    root, objects = str(tmp_path / "lake"), S3Objects(f"s3://{bucket}/drives")
    sources = (RecordingSource(f"s3://{bucket}/drives"), RecordingSource(f"s3://{bucket}/none", "labels"))
    spec = DatasetSpec("drives", sources)

    def put(segment: str, ticks: range) -> int:
        data = write_recording(tmp_path / f"{segment}.rrd", segment, [scalars("/a", ticks)]).read_bytes()
        objects.put(f"2031/{segment}.rrd", data)
        return len(data)

    objects.put("readme.txt", b"not a recording")
    S3Objects(f"s3://{bucket}").put("drives-of-others/one.rrd", b"")
    size = put("one", range(3))
    with closing(create_store(root)) as store:
        declared = DeclaredDatasets(store, root, tmp_path)
        record = declared.create(spec, "project/dev")
        found = find_recordings(root, record, spec, tmp_path)
        assert [each.url for each in found.new] == [f"s3://{bucket}/drives/2031/one.rrd"]
        assert (found.bytes, found.changed, found.unknown) == (size, (), ())
        [task] = register_recordings(declared.datasets, record.dataset_id, found)
        assert task.error is None
        record = declared.datasets.by_name("drives")
        assert find_recordings(root, record, spec, tmp_path).new == ()
        put("one", range(9))
        assert find_recordings(root, record, spec, tmp_path).changed == (f"s3://{bucket}/drives/2031/one.rrd",)
