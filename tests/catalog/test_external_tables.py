"""External tables: created and registered at URLs, written, renamed and deleted; their data stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import lance
import pyarrow as pa
import pytest

from deployer.catalog.external.place import Place
from deployer.catalog.protocol.dataframes import schema_in
from deployer.catalog.protocol.messages import cloud
from deployer.catalog.serving.server import served
from deployer.errors import Conflict
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.state import open_store
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.entities import INSTANCE_LOG
from deployer.tables.admin.tables import create_table
from tests import forks
from tests.catalog.clients import APPEND, OVERWRITE, UPSERT, Client, refused
from tests.catalog.clients import lance as lance_details
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows

KEYED = pa.schema([pa.field("k", pa.int64(), metadata={"rerun:is_table_index": "true"}), pa.field("v", pa.utf8())])
PLAIN = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.utf8())])


def rows(**columns: list[Any]) -> pa.Table:
    return pa.table(columns, schema=pa.schema([(name, KEYED.field(name).type) for name in columns]))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "outside" / "t").as_uri()


def test_a_table_is_created_written_and_read(client: Client, url: str) -> None:
    entry = client.create("t", KEYED, url)
    assert entry.details.name == "t"
    assert cloud.LanceTable.FromString(entry.provider_details.value).table_url == url
    schema = schema_in(client("GetTableSchema", cloud.GetTableSchemaRequest(table_id=entry.details.id)).schema)
    assert schema.equals(KEYED, check_metadata=True)
    assert client.rows("t").schema.equals(KEYED, check_metadata=True) and client.rows("t").num_rows == 0
    client.write("t", APPEND, rows(k=[1, 2], v=["a", "b"]), rows(k=[3], v=["c"]))
    client.write("t", UPSERT, rows(k=[3, 4], v=["C", "D"]))
    assert client.rows("t").sort_by("k").to_pydict() == {"k": [1, 2, 3, 4], "v": ["a", "b", "C", "D"]}
    client.write("t", OVERWRITE, rows(k=[9], v=["z"]), rows(k=[8], v=["y"]))
    assert client.rows("t").to_pydict() == {"k": [9, 8], "v": ["z", "y"]}
    assert client.rows("t").schema.equals(KEYED, check_metadata=True)
    assert lance.dataset(url).version == 4  # one version for each stream


def test_entries_last_and_are_of_all_servers_of_a_root(client: Client, lake: Lake, url: str) -> None:
    entry = client.create("t", KEYED, url)
    with closing(open_store(lake.root)) as store, served(store, lake.root) as other, closing(Client(other)) as second:
        assert second.entry("t").id == entry.details.id
        second.write("t", APPEND, rows(k=[1], v=["a"]))
        assert client.rows("t").to_pydict() == {"k": [1], "v": ["a"]}
        renamed = second.rename(second.entry("t"), "other.t")
        assert client.entry("other.t") == renamed and client.names() == ["air.flights", "air.empty", "other.t"]
        client.delete(client.entry("other.t"))
        assert second.names() == ["air.flights", "air.empty"]
    assert lance.dataset(url).count_rows() == 1


def test_a_table_is_registered_and_its_data_stays(client: Client, tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(k=[1, 2], v=["a", "b"]), str(tmp_path / "foreign"))
    url = (tmp_path / "foreign").as_uri()
    client.register("one", url)
    client.register("two", url)  # a table may have several names
    client.write("one", APPEND, rows(k=[3], v=["c"]))
    assert client.rows("two")["k"].to_pylist() == [1, 2, 3]
    for name in ("one", "two"):
        client.delete(client.entry(name))
    assert client.names() == ["air.flights", "air.empty"] and lance.dataset(dataset.uri).count_rows() == 3
    client.register("again", url)
    assert client.rows("again").num_rows == 3


def test_names_are_those_of_one_entry(client: Client, lake: Lake, url: str) -> None:
    client.create("t", KEYED, url)
    other = f"{url}-other"
    for taken in ("t", "default.t", "air.flights"):
        with refused("ALREADY_EXISTS", f"Entry name '{taken}' already exists"):
            client.create(taken, KEYED, other)
    with refused("ALREADY_EXISTS", "Entry name 'air.flights' already exists"):
        client.rename(client.entry("t"), "air.flights")
    with refused("ALREADY_EXISTS", "Entry name 't' already exists"):
        client.rename(client.entry("air.empty"), "t")
    assert client.rename(client.entry("t"), "default.t").name == "default.t"
    client.rename(client.entry("default.t"), "air.taken")
    with pytest.raises(Conflict, match=r"the name air.taken belongs to an entry of the catalog"):
        create_table(lake.store, lake.root, TableSpec("air", "taken", columns_of(FLIGHTS), ()), "tests/dev")
    client.delete(client.entry("air.taken"))
    create_table(lake.store, lake.root, TableSpec("air", "taken", columns_of(FLIGHTS), ()), "tests/dev")
    assert client.names() == ["air.flights", "air.empty", "air.taken"]


def test_names_of_datasets_of_recordings_are_taken_too(client: Client, lake: Lake, url: str) -> None:
    lake.store.commit(INSTANCE_LOG, [SetInstanceProperties({"recordings-name/drives": "0" * 32})])
    for name in ("drives", "default.drives"):
        with refused("ALREADY_EXISTS", f"Entry name '{name}' already exists"):
            client.create(name, KEYED, url)
    with refused("ALREADY_EXISTS", "Entry name 'drives' already exists"):
        client.rename(client.entry("air.empty"), "drives")


BAD_NAMES = {"empty": "", "blank": " t", "long": "t" * 257, "control": "a\nb", "hidden": "__t"}


@pytest.mark.parametrize("case", BAD_NAMES)
def test_what_is_not_a_name_is_refused(case: str, client: Client, url: str) -> None:
    with refused("INVALID_ARGUMENT", "the entry name"):
        client.create(BAD_NAMES[case], KEYED, url)
    assert not Path(url.removeprefix("file://")).exists()


BAD_URLS = {
    "empty": ("", "it is not a file:// or s3:// URL"),
    "relative": ("file://scratch/t", "it names the host scratch"),
    "path": ("/data/t", "it is not a file:// or s3:// URL"),
    "scheme": ("https://example.com/t", "it is not a file:// or s3:// URL"),
    "memory": ("memory://t", "it is not a file:// or s3:// URL"),
    "bucket": ("s3://bucket", "it does not name a bucket and a key"),
    "dots": ("s3://bucket/a/../b", "its key has an empty part"),
    "port": ("file://localhost:x/t", "Port could not be cast"),
    "query": ("file:///tmp/t?x=1", "it has a query or a fragment"),
    "root": ("file:///", "it names the root of the file system"),
    "null": ("file:///tmp/%00", "it does not name an absolute path"),
    "long": (f"file:///{'x' * 3000}", "it is longer than"),
}


@pytest.mark.parametrize("case", BAD_URLS)
def test_what_is_not_the_url_of_a_table_is_refused(case: str, client: Client) -> None:
    bad, match = BAD_URLS[case]
    with refused("INVALID_ARGUMENT", match):
        client.create("t", KEYED, bad)
    with refused("INVALID_ARGUMENT", match):
        client.register("t", bad)
    assert client.names() == ["air.flights", "air.empty"]


def test_a_url_inside_or_around_another_table_is_refused(client: Client, lake: Lake, url: str) -> None:
    client.create("t", KEYED, url)
    lance.write_dataset(rows(k=[1], v=["a"]), str(lake.folder / "unknown"))
    (lake.folder / "link").symlink_to(lake.root)
    own = Path(lake.open().opened.location).as_uri()
    for bad, match in (
        (f"{url}/data", "overlaps the table t"),
        (url.rpartition("/")[0], "overlaps the table t"),
        ((lake.folder / "unknown" / "x" / "y").as_uri(), "lies inside the table at"),
        (own, "overlaps the instance's root"),
        (f"{own}/x", "overlaps the instance's root"),
        ((lake.folder / "link" / "air" / "x").as_uri(), "overlaps the instance's root"),
        (lake.folder.as_uri(), "overlaps the instance's root"),
    ):
        with refused("INVALID_ARGUMENT", match):
            client.register("other", bad)
        with refused("INVALID_ARGUMENT", match):
            client.create("other", KEYED, bad)
    assert client.names() == ["air.flights", "air.empty", "t"]


def test_what_is_there_is_not_created_and_what_is_not_there_is_not_registered(client: Client, url: str) -> None:
    with refused("NOT_FOUND", "there is no Lance table at"):
        client.register("t", url)
    client.create("t", KEYED, url)
    with refused("ALREADY_EXISTS", "there is a Lance table at"):
        client.create("other", KEYED, url)
    with refused("INVALID_ARGUMENT", "is not the provider of a Lance table"):
        details = lance_details(url) | {"type_url": "/rerun.cloud.v1alpha1.SystemTable"}
        client("RegisterTable", cloud.RegisterTableRequest(name="s", provider_details=details))
    with refused("INVALID_ARGUMENT", "the provider cannot be read"):
        details = lance_details(url) | {"value": b"\xff"}
        client("RegisterTable", cloud.RegisterTableRequest(name="s", provider_details=details))
    with refused("INVALID_ARGUMENT", "the schema cannot be read"):
        client("CreateTableEntry", cloud.CreateTableEntryRequest(name="s", provider_details=lance_details(url)))
    with refused("INVALID_ARGUMENT", "a table cannot be created at"):
        client.create("s", pa.schema([("a", pa.int64()), ("a", pa.int64())]), f"{url}-twice")
    assert client.names() == ["air.flights", "air.empty", "t"]


def test_rows_that_do_not_fit_change_nothing(client: Client, url: str) -> None:
    client.create("plain", PLAIN, url)
    client.create("keyed", KEYED, f"{url}-keyed")
    version = lance.dataset(url).version
    for mode, table, match in (
        (UPSERT, rows(k=[1], v=["a"]), "the table has no index column"),
        (APPEND, rows(k=[1]), "the rows lack the column v"),
        (APPEND, rows(k=[1], v=["a"]).append_column("x", pa.array([1])), "the table has no column x"),
        (APPEND, rows(k=[None], v=["a"]), "column k: 1 value of it are null"),
        (OVERWRITE, pa.table({"k": ["x"], "v": ["a"]}), "column k: its values are string, and not int64"),
    ):
        with refused("INVALID_ARGUMENT", match):
            client.write("plain", mode, table)
    with refused("INVALID_ARGUMENT", "1 row of the upsert has the key of another one"):
        client.write("keyed", UPSERT, rows(k=[1, 2], v=["a", "b"]), rows(k=[1], v=["c"]))
    with refused("INVALID_ARGUMENT", "several schemas"):
        client.write("keyed", APPEND, rows(k=[1], v=["a"]), pa.table({"a": [1]}))
    assert lance.dataset(url).version == version and client.rows("keyed").num_rows == 0


def test_columns_are_matched_by_name_and_cast(client: Client, url: str) -> None:
    client.create("t", KEYED, url)
    client.write("t", APPEND, pa.table({"v": pa.array(["a"], pa.large_utf8()), "k": pa.array([7], pa.int32())}))
    assert client.rows("t").to_pydict() == {"k": [7], "v": ["a"]}


def test_a_table_of_another_instance_is_read_and_not_written(client: Client, tmp_path: Path) -> None:
    other = Lake(tmp_path / "other")
    other.table()
    other.folder.mkdir(exist_ok=True)
    other.ingest(other.file(flights(5)))
    client.register("theirs", Path(other.open().opened.location).as_uri())
    assert sorted_rows(client.rows("theirs")) == sorted_rows(flights(5))
    with refused("PERMISSION_DENIED", "a table of another instance of deployer"):
        client.write("theirs", APPEND, flights(1))
    client.delete(client.entry("theirs"))
    assert other.open().count() == 5


def test_an_entry_whose_data_is_gone_can_be_deleted(client: Client, url: str) -> None:
    client.create("t", KEYED, url)
    folder = Path(url.removeprefix("file://"))
    folder.rename(folder.with_name("moved"))
    with refused("NOT_FOUND", "there is no Lance table at"):
        client.rows("t")
    with refused("NOT_FOUND", "there is no Lance table at"):
        client.write("t", APPEND, rows(k=[1], v=["a"]))
    assert "t" in client.names()
    client.delete(client.entry("t"))
    assert "t" not in client.names()


PROGRAM = """
import sys
from contextlib import closing
import pyarrow as pa
from deployer.catalog.entries import Entries
from deployer.state import open_store
with closing(open_store(sys.argv[1])) as store:
    Entries(store, sys.argv[1]).create("t", pa.schema([("k", pa.int64())]), sys.argv[2])
"""


@pytest.mark.parametrize("point", ["catalog.create.begun", "catalog.create.written", "commit:before-put@2"])
def test_a_creation_that_is_killed_is_not_seen_and_resumes(point: str, client: Client, lake: Lake, url: str) -> None:
    command = [sys.executable, "-c", PROGRAM, lake.root, url]
    with forks.Popen(command, env=os.environ | {"DEPLOYER_FAILPOINT": point}) as killed:
        assert killed.wait() == -signal.SIGKILL
    assert client.names() == ["air.flights", "air.empty"]
    with pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        client("FindEntries", cloud.FindEntriesRequest(filter={"name": "t", "entry_kind": 3}))
    client.create("t", pa.schema([("k", pa.int64())]), url)
    client.write("t", APPEND, pa.table({"k": [1]}))
    assert client.rows("t").to_pydict() == {"k": [1]}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as again:
        assert "Entry name 't' already exists" in str(again.communicate()[1])


CHANGES = """
import sys
from contextlib import closing
import pyarrow as pa
from deployer.catalog.entries import Entries
from deployer.state import open_store
with closing(open_store(sys.argv[1])) as store:
    entries = Entries(store, sys.argv[1])
    [entry] = [each for each in entries.all() if each.name == "t"]
    match sys.argv[2]:
        case "rename":
            entries.rename(entry.entry_id, "renamed")
        case "delete":
            entries.delete(entry.entry_id)
        case "upsert":
            entries.rows(entry).write([pa.record_batch({"k": [1, 2], "v": ["A", "B"]})], "upsert")
"""


@pytest.mark.parametrize(
    ("change", "point", "names", "values"),
    [
        ("rename", "commit:before-put", ["t"], ["a"]),
        ("rename", "commit:after-put", ["renamed"], ["a"]),
        ("delete", "commit:before-put", ["t"], ["a"]),
        ("delete", "commit:after-put", [], ["a"]),
        ("upsert", "catalog.write.spooled", ["t"], ["a"]),
        ("upsert", "catalog.write.committed", ["t"], ["A", "B"]),
    ],
)
def test_a_change_that_is_killed_is_whole_or_not_there(
    change: str, point: str, names: list[str], values: list[str], client: Client, lake: Lake, url: str
) -> None:
    client.create("t", KEYED, url)
    client.write("t", APPEND, rows(k=[1], v=["a"]))
    command = [sys.executable, "-c", CHANGES, lake.root, change]
    with forks.Popen(command, env=os.environ | {"DEPLOYER_FAILPOINT": point}) as killed:
        assert killed.wait() == -signal.SIGKILL
    assert client.names()[2:] == names
    assert sorted(lance.dataset(url).to_table()["v"].to_pylist()) == values


def test_places_are_compared_by_parts() -> None:
    assert Place("/a/b").is_within(Place("/a")) and not Place("/ab").is_within(Place("/a"))
    assert [each.location for each in Place("s3://b/x/y").parents()] == ["s3://b/x", "s3://b"]
    assert [each.location for each in Place("/a/b/c").parents()] == ["/a/b", "/a"]
