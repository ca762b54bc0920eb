"""Hostile state of a lake in a bucket: no object of another table, of the state or outside of the root goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import erase_dataset
from deployer.datasets.storage.removal import remove_dataset
from deployer.errors import Corrupt, Refused
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.s3_objects import S3Objects
from deployer.state import open_store, remove_store
from deployer.state.backends.protocol import Record
from deployer.state.model.location import Location
from deployer.tables.admin.deletion import delete_table
from deployer.tables.evolution.rewrite.cleanup import remove_old_datasets
from tests.state.samples import backend_of
from tests.tables.lakes import Lake, flights

pytestmark = pytest.mark.full


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    yield made
    made.store.close()


def data(root: str) -> list[str]:
    """All objects of the bucket, but for the state's."""
    bucket = root.rpartition("/")[0]
    return sorted(path for path in objects_at(bucket).list("") if "/_state/" not in path)


def append(lake: Lake, log: str, *updates: dict[str, Any]) -> None:
    backend = backend_of(lake.store)
    last = backend.records(log, 0)[-1]
    document = json.loads(unseal(last.body, ""))
    document |= {"version": last.version + 1, "txn_id": "cd" * 16, "requirements": [], "updates": updates}
    assert backend.put([Record(log, last.version + 1, "cd" * 16, seal(json.dumps(document).encode()))])


def test_a_prefix_takes_no_other_object(lake: Lake) -> None:
    """F2: `x.lance` and `x.lance2`, and locations that were the whole lake."""
    bucket = S3Objects(lake.root.rpartition("/")[0])
    own = Location("air/x-0a1b2c3d.lance")
    for name in (f"lake/{own}/data/a", f"lake/{own}2/data/a", f"lake/{own}", "lake2/air/x", "lake/_jobs/code"):
        bucket.put(name, b"x")
    for bad in ("", "..", ".", "_state", "/", "air/../.."):
        with pytest.raises(ValueError, match=r"."):
            erase_dataset(lake.root, Location(bad))
    erase_dataset(lake.root, own)
    left = [path for path in bucket.list("") if "/_state/" not in path]
    assert sorted(left) == sorted([f"lake/{own}2/data/a", f"lake/{own}", "lake2/air/x", "lake/_jobs/code"])
    with pytest.raises(Refused, match="not a path below the folder"):
        bucket.delete([""])
    bucket.put(f"lake/{own}/letters.txt", b"x")
    with pytest.raises(Refused, match="which no dataset has"):
        erase_dataset(lake.root, own)


def test_a_rewrite_that_was_never_begun_removes_nothing(lake: Lake) -> None:
    """F2: the entry in DynamoDB, with another table's place, one outside, and one that only Lance would decode."""
    first, second = lake.table(), lake.table(name="planes")
    lake.ingest(lake.file(flights(10)))
    id, other = first.opened.entry.table_id, second.opened.entry.location
    before = data(lake.root)
    for location in ("", other, f"{other}#x", other.replace("planes", "%70lanes")):
        lake.store.table(id)
        append(lake, id, {"type": "rewrite-started", "number": 9, "location": location, "target": "x"})
        with closing(open_store(lake.root)) as store:
            with pytest.raises(Corrupt, match=r"location|cannot be at"):
                store.table(id)
            assert remove_old_datasets(store, lake.root) == []
        assert data(lake.root) == before
        backend = backend_of(lake.store)
        newest = backend.records(id, 0)[-1].version
        requests = backend._requests  # type: ignore[attr-defined]
        _take_back(requests, backend._reads.key_of(id), newest)  # type: ignore[attr-defined]
    append(lake, id, {"type": "rewrite-started", "number": 9, "location": other, "target": "x"})
    with closing(open_store(lake.root)) as store:
        delete_table(store, lake.root, id, allow_destroy=True)
    own = f"lake/{first.opened.entry.location}/"
    assert data(lake.root) == [path for path in before if not path.startswith(own)]


def _take_back(requests: Any, log: str, version: int) -> None:
    from deployer.state.backends.dynamodb.items import HEAD, entry_name, key, number

    requests.write("delete_item", TableName=requests.table.name, Key=key(log, entry_name(version)))
    requests.write(
        "update_item",
        TableName=requests.table.name,
        Key=key(log, HEAD),
        UpdateExpression="SET version = :v",
        ExpressionAttributeValues={":v": number(version - 1)},
    )


def test_data_in_a_bucket_carries_its_tables_id(lake: Lake) -> None:
    """F2: nothing is imported in place there, so that other places are nobody's to remove."""
    entry = lake.table().opened.entry
    other = S3Objects(lake.root)
    other.put("air/flights.lance/data/theirs.lance", b"x")
    before = data(lake.root)
    for location in (Location("air/flights.lance"), Location("air/flights-g2.lance"), entry.location):
        with pytest.raises(Corrupt, match="not removed"):
            remove_dataset(lake.store, lake.root, entry.table_id, location)
    assert data(lake.root) == before


def test_the_state_of_another_lake_is_not_removed(lake: Lake, bucket: str, tmp_path: Path) -> None:
    """F2: `store.json` names another lake's store and table, and says that the table goes with it."""
    other = Lake(tmp_path, f"s3://{bucket}/other-{lake.root.split('/')[3]}/lake")
    other.table()
    sign = S3Objects(other.root).get("_state/store.json")
    S3Objects(lake.root).put("_state/store.json", json.dumps({**json.loads(sign), "made_table": True}).encode())
    with pytest.raises(Refused, match="so it is not removed"):
        remove_store(lake.root)
    odd: dict[str, Any]
    for odd in ({"store": 7}, {"store": "../x"}, {"table": []}, {"region": {}}):
        S3Objects(lake.root).put("_state/store.json", json.dumps({**json.loads(sign), **odd}).encode())
        with pytest.raises(Corrupt):
            open_store(lake.root)
    assert other.open().count() == 0
    other.store.close()
    remove_store(other.root)
