"""A state store on S3 and DynamoDB that was lost is rebuilt as one on a disk is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import boto3
import pytest

from deployer.errors import Refused
from deployer.platform.storage.s3_objects import S3Objects
from deployer.tables.maintenance.verify.rebuild import plan_rebuild
from tests.tables.lakes import Lake, flights
from tests.tables.verify.test_rebuild import declared, keys_changed, load, rebuild, rows, save, told, whole

pytestmark = pytest.mark.full  # the same steps on a disk are in the gate


def bucket_has_none(root: str) -> None:
    objects = S3Objects(root)
    objects.delete([path for path in objects.list("") if path.startswith("_state/")])


def dynamodb_has_none(root: str) -> None:
    table = json.loads(S3Objects(root).get("_state/store.json"))["table"]
    boto3.client("dynamodb").delete_table(TableName=table)


LOSSES: Mapping[str, Callable[[str], None]] = {each.__name__: each for each in (bucket_has_none, dynamodb_has_none)}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_state_is_as_it_was(on_s3: str, tmp_path: Path, loss: str) -> None:
    lake = Lake(tmp_path, on_s3)
    keys_changed(lake)
    save(lake, "then")
    load(lake, "four", 10, 200)
    before = told(lake)
    with pytest.raises(Refused, match="the state store is there and has 1 table"):
        plan_rebuild(lake.root, declared(lake))
    lake.store.close()
    LOSSES[loss](lake.root)
    assert rebuild(lake).problems == ()
    assert told(lake) == before
    whole(lake)
    lake.ingest(lake.file(flights(10, 900)), job_id="afterwards")
    assert len(rows(lake)) == len(before["air.flights"][2]) + 10
    lake.store.close()
