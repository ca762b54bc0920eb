"""EXPIRE and erasure on S3 and DynamoDB: the same steps as on a disk, and no object with the value is left."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.datasets.storage.options import objects_at
from deployer.services.erasure.erase import erase
from deployer.services.kinds.expire import expire_table
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.specs.model import IndexSpec
from deployer.tables.layout.indexes.build import build_index
from deployer.tables.open_table import open_to_change
from tests.tables.lakes import Lake

pytestmark = pytest.mark.full  # the same steps on a disk are in the gate

SCHEMA = pa.schema([pa.field("mail", pa.string(), nullable=False), pa.field("day", pa.date32())])
DAY = dt.date(2026, 1, 1)


@pytest.fixture
def lake(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    yield made
    made.store.close()


def test_rows_expire_and_are_erased(lake: Lake) -> None:
    mark = f"m{secrets.token_hex(12)}@example.com"
    lake.table(SCHEMA, ("mail",), splits=(("k",),), name="people")
    mails = [*(f"{'az'[i % 2]}{i:04}@example.com" for i in range(99)), mark]
    days = [DAY + dt.timedelta(days=i) for i in range(100)]
    lake.ingest(lake.file(pa.table([mails, days], schema=SCHEMA)), table="people")
    opened = open_to_change(lake.root, "people")
    build_index(lake.store, lake.root, opened.entry.table_id, IndexSpec("by_mail", ("mail",), "btree"))
    lake.store.declare(opened.entry.table_id, {"retention": {"column": "day", "keep": "30d"}})
    at = dt.datetime(2026, 2, 10, 12, tzinfo=dt.UTC).timestamp()
    assert expire_table(lake.root, "people", now=at).rows == 10
    make_savepoint(lake.store, lake.root, [opened.entry], "before")
    done = erase(open_to_change(lake.root, "people"), f"mail = '{mark}'", delete_savepoints=True)
    assert (done.rows, done.savepoints, done.unreached, done.is_proven) == (1, ("before",), (), True)
    assert lake.open("people").count() == 89
    objects = objects_at(lake.root)
    assert [path for path in objects.list("") if mark.encode() in objects.get(path)] == []
