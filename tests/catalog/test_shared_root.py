"""Several servers and clients of one root at once, and a root in S3."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.catalog import local
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.entries import Entries
from deployer.catalog.serving.server import served
from deployer.errors import Conflict
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from deployer.state.store import StateStore
from tests.catalog.clients import APPEND, UPSERT, Client, refused
from tests.tables.lakes import Lake, flights, sorted_rows

KEYED = pa.schema([pa.field("k", pa.int64(), metadata={"rerun:is_table_index": "true"}), pa.field("v", pa.int64())])
CLIENTS = 8


@pytest.fixture
def clients(lake: Lake) -> Iterator[list[Client]]:
    """Eight clients of two servers."""
    with ExitStack() as stack:
        urls = []
        for _ in range(2):
            store = stack.enter_context(closing(open_store(lake.root)))
            urls.append(stack.enter_context(served(store, lake.root)))
        yield [stack.enter_context(closing(Client(urls[i % 2]))) for i in range(CLIENTS)]


def keys_of(table: pa.Table) -> list[tuple[str, int]]:
    return sorted(zip(table["carrier"].to_pylist(), table["flight"].to_pylist(), strict=True))


def test_clients_append_upsert_and_read_at_once(clients: list[Client], lake: Lake) -> None:
    def work(number: int) -> int:
        client = clients[number]
        client.write("air.flights", APPEND, flights(10, 100 + 10 * number))
        client.write("air.flights", UPSERT, flights(1, 100 + 10 * number))
        return int(client.rows("air.flights").num_rows)

    with ThreadPoolExecutor(CLIENTS) as pool:
        seen = list(pool.map(work, range(CLIENTS)))
    assert all(50 <= each <= 120 for each in seen)
    expected = keys_of(pa.concat_tables([flights(40), flights(10 * CLIENTS, 100)]))
    for client in clients[:2]:
        assert keys_of(client.rows("air.flights")) == expected
    kinds = [each.kind for each in lake.open().history()]  # one commit may have the appended rows of several clients
    assert kinds.count("upsert") == CLIENTS


def test_of_clients_that_create_one_name_one_succeeds(clients: list[Client], tmp_path: Path) -> None:
    def work(number: int) -> str:
        try:
            clients[number].create("t", KEYED, (tmp_path / f"t{number}").as_uri())
        except Exception as failure:
            return str(failure.code().name) if hasattr(failure, "code") else repr(failure)
        return "OK"

    with ThreadPoolExecutor(CLIENTS) as pool:
        outcomes = sorted(pool.map(work, range(CLIENTS)))
    assert outcomes.count("OK") == 1 and set(outcomes) <= {"OK", "ALREADY_EXISTS", "ABORTED"}
    assert [each.names().count("t") for each in clients[:2]] == [1, 1]


@pytest.mark.parametrize("name", ["t", "no name of a table", "default.no name of a table"])
@pytest.mark.parametrize("first", ["dataset", "external"])
def test_a_dataset_and_an_external_table_never_get_one_name(
    name: str, first: str, lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server commits the one right before this one commits the other."""
    lance.write_dataset(KEYED.empty_table(), tmp_path / "t.lance")
    with closing(open_store(lake.root)) as here, closing(open_store(lake.root)) as there:

        def create(store: StateStore, kind: str) -> None:
            if kind == "dataset":
                Datasets(store, lake.root).create(name)
            else:
                Entries(store, lake.root).register(name.removeprefix("default."), (tmp_path / "t.lance").as_uri())

        commit = here.commit

        def commit_late(*arguments: Any, **options: Any) -> Any:
            monkeypatch.setattr(here, "commit", commit)
            create(there, first)
            return commit(*arguments, **options)

        monkeypatch.setattr(here, "commit", commit_late)
        with pytest.raises(Conflict, match="already exists"):
            create(here, "external" if first == "dataset" else "dataset")
        names = [each.name for each in Entries(here, lake.root).all()]
        assert len([each for each in names if each.removeprefix("default.") == name.removeprefix("default.")]) == 1


def test_a_renamed_dataset_never_gets_the_name_of_an_external_table(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance.write_dataset(KEYED.empty_table(), tmp_path / "t.lance")
    with closing(open_store(lake.root)) as here, closing(open_store(lake.root)) as there:
        dataset = Datasets(here, lake.root).create("a dataset").dataset_id
        commit = here.commit

        def commit_late(*arguments: Any, **options: Any) -> Any:
            monkeypatch.setattr(here, "commit", commit)
            Entries(there, lake.root).register("a table", (tmp_path / "t.lance").as_uri())
            return commit(*arguments, **options)

        monkeypatch.setattr(here, "commit", commit_late)
        with pytest.raises(Conflict, match="already exists"):
            Datasets(here, lake.root).rename(dataset, "a table")


def test_clients_write_one_external_table_at_once(clients: list[Client], tmp_path: Path) -> None:
    clients[0].create("t", KEYED, (tmp_path / "t").as_uri())

    def work(number: int) -> None:
        clients[number].write("t", APPEND, pa.table({"k": [number], "v": [0]}))

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(work, range(CLIENTS)))
    assert sorted(clients[0].rows("t")["k"].to_pylist()) == list(range(CLIENTS))


@pytest.mark.full
def test_a_root_and_external_tables_in_s3(on_s3: str, tmp_path: Path, bucket: str) -> None:
    lake = Lake(tmp_path, on_s3)
    lake.table()
    lake.store.commit(lake.open().opened.entry.table_id, [SetTableProperties({"declared": {}})])
    outside = f"s3://{bucket}/{uuid.uuid4().hex}/t"
    with closing(open_store(on_s3)) as store, served(store, on_s3) as url, closing(Client(url)) as client:
        client.write("air.flights", APPEND, flights(20))
        client.write("air.flights", UPSERT, flights(3))
        assert sorted_rows(client.rows("air.flights")) == sorted_rows(flights(20))
        assert client.entry("air.flights").name == "air.flights"
        client.create("t", KEYED, outside)
        client.write("t", APPEND, pa.table({"k": [1, 2], "v": [1, 2]}))
        client.write("t", UPSERT, pa.table({"k": [2, 3], "v": [5, 6]}))
        assert client.rows("t").sort_by("k").to_pydict() == {"k": [1, 2, 3], "v": [1, 5, 6]}
        for bad, match in (
            (f"{outside}/x", "overlaps the table t"),
            (f"{on_s3}/x", "overlaps the instance's root"),
            (on_s3.rpartition("/")[0], "overlaps the instance's root"),
        ):
            with refused("INVALID_ARGUMENT", match):
                client.create("u", KEYED, bad)
        client.delete(client.entry("t"))
        client.register("again", outside)
        assert client.rows("again").num_rows == 3
        with refused("NOT_FOUND", "there is no Lance table at"):
            client.register("none", f"s3://{bucket}/{uuid.uuid4().hex}/none")


@pytest.mark.full
def test_a_child_process_serves_a_root_in_s3(on_s3: str, tmp_path: Path) -> None:
    Lake(tmp_path, on_s3).table()
    with local(on_s3) as url, closing(Client(url)) as client:
        client.write("air.flights", APPEND, flights(5))
        assert client.rows("air.flights").num_rows == 5
