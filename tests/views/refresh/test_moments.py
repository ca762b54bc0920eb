"""What readers see while refreshes run, and what refreshes see while others write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pyarrow as pa

from deployer.tables.append import open_appender
from tests.views.refresh.conftest import Views, rows
from tests.views.refresh.test_refresh import delete, merge, update


def test_readers_see_whole_refreshes_alone(views: Views) -> None:
    views.view()
    wholes, read, done = [views.rows()], list[list[dict[str, Any]]](), Event()

    def reader() -> None:
        while not done.is_set():
            read.append(views.rows())

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader)
        try:
            for change in (update, delete, merge, lambda views: views.add(rows(300, 400))):
                change(views)
                views.refresh(full=len(wholes) == 3, max_rows_per_fragment=40)
                wholes.append(views.expected())
        finally:
            done.set()
        reading.result()
    assert read and all(each in wholes for each in read)


PAIRS = "SELECT id, 'first' AS kind FROM air.first UNION ALL SELECT id, 'second' AS kind FROM air.second"


def test_all_sources_are_of_one_moment(views: Views) -> None:
    """A row comes to the second table after it came to the first one, while refreshes run."""
    schema, ended = pa.schema([pa.field("id", pa.int64(), nullable=False)]), Event()
    names = ("first", "second")
    for name in names:
        views.lake.table(schema, ("id",), splits=(), name=name, unique=True)
    views.view(PAIRS, "pairs")

    def write() -> None:
        appenders, number = [open_appender(views.lake.root, name) for name in names], 0
        while not ended.is_set():
            for appender in appenders:
                appender.append(pa.table({"id": [number]}, schema=schema))
            number += 1
        for appender in appenders:
            appender.close()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for _ in range(6):
                views.refresh("pairs")
                rows = views.rows("pairs")
                first, second = ({row["id"] for row in rows if row["kind"] == name} for name in names)
                assert second <= first and len(first - second) <= 1
        finally:
            ended.set()
        writing.result()
    done = views.refresh("pairs")
    assert dict(done.sources) == {f"air.{name}": f"1:{views.open(name).state.lance_version}" for name in names}
