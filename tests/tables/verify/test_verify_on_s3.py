"""The state of an instance on S3 is verified and repaired as on disk; the data lies in the bucket."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import lance
import pytest

from deployer.datasets.storage.options import objects_at, storage_options
from deployer.state import create_store
from deployer.state.new_store import import_into
from deployer.tables.maintenance.verify.verify import repair, verify
from tests.tables.lakes import Lake, flights

pytestmark = pytest.mark.full  # the same steps on a disk are in the gate


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    made.table()
    made.ingest(made.file(flights(30)))
    yield made
    made.store.close()


def differences(lake: Lake) -> list[str]:
    return [str(one) for each in verify(lake.store, lake.root, full=True) for one in each.differences]


def repaired(lake: Lake) -> list[tuple[bool, str]]:
    now = int(time.time() * 1000) + 1
    return [(step.left, str(step)) for step in repair(lake.store, lake.root, now=now, grace=0)]


def test_commits_of_others_are_named_and_recorded(lake: Lake) -> None:
    assert differences(lake) == []
    location = lake.open().opened.location
    lance.dataset(location, storage_options=storage_options(location)).delete("flight < 300")
    [said] = differences(lake)
    assert "Lance has 1 commit that the log lacks (versions 3 to 3)" in said
    [(left, _)] = repaired(lake)
    assert not left and differences(lake) == []


def test_missing_objects_are_named(lake: Lake) -> None:
    objects = objects_at(lake.open().opened.location)
    gone = min(objects.list("data"))
    objects.delete([gone])
    assert any(said.endswith(f"its data file {gone} is missing") for said in differences(lake))
    steps = repaired(lake)
    assert steps and all(left for left, _ in steps)


def test_objects_of_another_size_are_named(lake: Lake) -> None:
    objects = objects_at(lake.open().opened.location)
    cut = min(objects.list("data"))
    content = objects.get(cut)
    objects.delete([cut])
    objects.put(cut, content[:-1])
    said = f"its data file {cut} has {len(content) - 1:,} bytes; {len(content):,} were written"
    assert any(difference.endswith(said) for difference in differences(lake))


def test_a_damaged_snapshot_is_made_again(lake: Lake) -> None:
    state = lake.open().opened.state
    lake.store.snapshot(state.table_id)
    objects = objects_at(lake.root)
    [file] = [path for path in objects.list("_state") if path.endswith("files.parquet")]
    objects.delete([file])
    objects.put(file, b"damaged")
    assert [f"the checksum of {file.partition('snapshots/')[2]}" in said for said in differences(lake)] == [True]
    assert [left for left, _ in repaired(lake)] == [False]
    assert differences(lake) == []


def test_an_export_is_whole_elsewhere(lake: Lake, tmp_path: Path) -> None:
    lake.store.export_to(tmp_path / "state.zip")
    import_into(tmp_path / "state.zip", str(tmp_path / "local"))
    location = lake.open().opened.location
    source = objects_at(location)
    for path in source.list(""):
        copy = tmp_path / "local" / "air" / location.rpartition("/")[2] / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(source.get(path))
    local = Lake(tmp_path / "x")
    local.root = str(tmp_path / "local")
    assert local.open().count() == 30
    local.store = create_store(local.root)
    assert differences(local) == []
