"""Datasets of recordings, called as Rerun's client calls them: entries, registration, tables, queries."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.catalog.datasets.registration import OnDuplicate
from deployer.catalog.protocol.dataframes import part, rows_in, schema_in
from deployer.catalog.protocol.messages import cloud, log_msg
from deployer.catalog.serving.server import served
from deployer.state import create_store, open_store
from deployer.state.model.entities import INSTANCE_LOG
from tests.catalog.recordings import Chunk, properties, scalars, write_recording
from tests.catalog.test_serving import BLUEPRINTS, DATASET, Client, hex_of, refused
from tests.tables.lakes import Lake


@dataclass(frozen=True)
class Catalog:
    """Calls for one dataset of a server."""

    client: Client
    folder: Path

    def create(self, name: str = "drives") -> str:
        return hex_of(self.client("CreateDatasetEntry", cloud.CreateDatasetEntryRequest(name=name)).dataset.details.id)

    def recording(self, segment: str, *chunks: Chunk, name: str = "", **options: Any) -> str:
        """Writes a recording and returns its URL."""
        chunks = chunks or (scalars("/a", [1, 2, 3]), properties("info", robot=segment))
        return write_recording(self.folder / f"{name or segment}.rrd", segment, chunks, **options).as_uri()

    def register(
        self, dataset: str, *urls: str, layer: str = "base", prefix: bool = False, on_duplicate: int = 3
    ) -> list[dict[str, Any]]:
        sources = [{"storage_url": url, "layer": layer, "typ": 1, "prefix": prefix} for url in urls]
        request = cloud.RegisterWithDatasetRequest(data_sources=sources, on_duplicate=on_duplicate)
        return rows(self.client("RegisterWithDataset", request, of(dataset)).data).to_pylist()

    def tasks(self, *ids: str) -> list[dict[str, Any]]:
        request = cloud.QueryTasksOnCompletionRequest(ids=[{"id": each} for each in ids])
        [answer] = self.client("QueryTasksOnCompletion", request)
        return rows(answer.data).to_pylist()

    def segments(self, dataset: str, *columns: str) -> list[dict[str, Any]]:
        request = cloud.ScanSegmentTableRequest(columns=columns)
        answers = self.client("ScanSegmentTable", request, of(dataset))
        return [row for each in answers for row in rows(each.data).to_pylist()]

    def manifest(self, dataset: str, version: str = "rerun-py/0.28.2") -> pa.Table:
        headers = [*of(dataset), ("x-rerun-client-version", version)]
        return pa.concat_tables([rows(each.data) for each in self.client("ScanDatasetManifest", None, headers)])

    def schema(self, dataset: str) -> pa.Schema:
        return schema_in(self.client("GetDatasetSchema", None, of(dataset)).schema)

    def query(self, dataset: str, **request: Any) -> pa.Table:
        answers = self.client("QueryDataset", cloud.QueryDatasetRequest(**request), of(dataset))
        return pa.concat_tables([rows(each.data) for each in answers])

    def fetch(self, found: pa.Table) -> list[Any]:
        """The messages of chunks that a query found."""
        request = cloud.FetchChunksRequest(chunk_infos=[part(each) for each in found.combine_chunks().to_batches()])
        return [message for answer in self.client("FetchChunks", request) for message in answer.chunks]


def of(dataset: str) -> list[tuple[str, str]]:
    return [("x-rerun-entry-id", dataset)]


def rows(message: Any) -> pa.Table:
    return pa.Table.from_batches(rows_in(message))


@pytest.fixture
def root(tmp_path: Path) -> str:
    root = str(tmp_path / "lake")
    create_store(root).close()
    return root


@pytest.fixture
def catalog(root: str, tmp_path: Path) -> Iterator[Catalog]:
    with catalog_at(root, tmp_path) as found:
        yield found


class catalog_at:  # noqa: N801 -- it is used as a function
    """A server of its own at the root, as after a restart."""

    def __init__(self, root: str, folder: Path) -> None:
        self._root, self._folder = root, folder

    def __enter__(self) -> Catalog:
        self._store = open_store(self._root)
        self._served = served(self._store, self._root)
        self._client = Client(self._served.__enter__())
        return Catalog(self._client, self._folder)

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._served.__exit__(None, None, None)
        self._store.close()


def test_a_dataset_has_one_for_its_blueprints_and_stays_over_a_restart(
    catalog: Catalog, root: str, tmp_path: Path
) -> None:
    dataset = catalog.create()
    entries = {each.name: each.entry_kind for each in catalog.client("FindEntries").entries}
    assert entries.pop("__entries") and entries == {"drives": DATASET, f"__bp_{dataset}": BLUEPRINTS}
    read = catalog.client("ReadDatasetEntry", None, of(dataset)).dataset
    assert read.dataset_handle.dataset_url.endswith(f"/lake/_catalog/{dataset}")
    with catalog_at(root, tmp_path) as other:
        assert other.client("ReadDatasetEntry", None, [("x-rerun-entry-name-bin", b"drives")]).dataset == read
        [blueprints] = other.client("FindEntries", cloud.FindEntriesRequest(filter={"entry_kind": BLUEPRINTS})).entries
        assert blueprints.id == read.dataset_details.blueprint_dataset


def test_a_dataset_is_renamed_and_deleted_and_its_name_is_free_again(catalog: Catalog, root: str) -> None:
    dataset, other = catalog.create(), catalog.create("other")
    catalog.register(dataset, catalog.recording("one"))
    entry = catalog.client.entry("drives")
    for name in ("trips", "trips"):
        renamed = catalog.client(
            "UpdateEntry", cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": name})
        )
        assert renamed.entry_details.name == "trips"
    with refused("ALREADY_EXISTS", "Entry name 'other' already exists"):
        catalog.client("UpdateEntry", cloud.UpdateEntryRequest(id=entry.id, entry_details_update={"name": "other"}))
    assert catalog.create("drives") not in (dataset, other)
    assert (Path(root) / "_catalog" / dataset / "layers.lance").is_dir()
    catalog.client("DeleteEntry", cloud.DeleteEntryRequest(id=entry.id))
    with refused("NOT_FOUND", f"Entry id '{dataset}' not found"):
        catalog.client("ReadDatasetEntry", None, of(dataset))
    assert not (Path(root) / "_catalog" / dataset).exists()
    assert Path(catalog.folder / "one.rrd").exists()
    catalog.create("trips")


def test_names_are_those_of_one_table_or_one_dataset(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table()
    with catalog_at(lake.root, tmp_path) as catalog:
        for name in ("air.flights", "__entries"):
            with refused("ALREADY_EXISTS", f"Entry name '{name}' already exists"):
                catalog.create(name)
        dataset = catalog.create("air.trips")
        with refused("NOT_FOUND", "it is a dataset, and not a table"):
            catalog.client("ReadTableEntry", cloud.ReadTableEntryRequest(id=catalog.client.entry("air.trips").id))
        assert catalog.segments(dataset) == []


def test_the_default_blueprint_is_kept(catalog: Catalog, root: str, tmp_path: Path) -> None:
    dataset = catalog.create()
    details = catalog.client("ReadDatasetEntry", None, of(dataset)).dataset
    blueprints = hex_of(details.dataset_details.blueprint_dataset)
    [row] = catalog.register(blueprints, catalog.recording("look", scalars("/view", [1]), blueprint=True))
    assert row["rerun_segment_id"] == "look"
    for segment in ("look", None):
        request = cloud.UpdateDatasetEntryRequest(id=details.details.id, dataset_details=details.dataset_details)
        request.dataset_details.ClearField("default_blueprint_segment")
        if segment is not None:
            request.dataset_details.default_blueprint_segment.id = segment
        catalog.client("UpdateDatasetEntry", request)
        with catalog_at(root, tmp_path) as other:
            found = other.client("ReadDatasetEntry", None, of(dataset)).dataset.dataset_details
            assert (found.HasField("default_blueprint_segment"), found.default_blueprint_segment.id) == (
                segment is not None,
                segment or "",
            )


def test_good_files_are_registered_and_bad_ones_named(catalog: Catalog, root: str, tmp_path: Path) -> None:
    dataset = catalog.create()
    empty, foreign, cut = (tmp_path / name for name in ("empty.rrd", "foreign.rrd", "cut.rrd"))
    empty.write_bytes(b"")
    foreign.write_bytes(b"PAR1" + bytes(100))
    good, unclosed = catalog.recording("good"), catalog.recording("unclosed", closed=False)
    cut.write_bytes(Path(unclosed.removeprefix("file://")).read_bytes()[:-10])
    blueprint = catalog.recording("look", scalars("/view", [1]), blueprint=True)
    bad = [empty.as_uri(), foreign.as_uri(), cut.as_uri(), blueprint, "file:///none.rrd", "ftp://x/y.rrd"]
    answered = catalog.register(dataset, good, *bad, unclosed)
    assert [each["rerun_segment_id"] for each in answered] == ["good", *[""] * len(bad), "unclosed"]
    assert [each["rerun_storage_url"] for each in answered] == [good, *bad, unclosed]
    assert {(each["rerun_segment_layer"], each["rerun_segment_type"]) for each in answered} == {("base", "rrd")}
    messages = ["is empty", "not a recording", "truncated", "holds no recording", "no such file", "not a known kind"]
    with catalog_at(root, tmp_path) as other:  # a handle that waits finds them after a restart
        tasks = other.tasks(*(each["rerun_task_id"] for each in answered))
        assert [each["exec_status"] for each in tasks] == ["success", *["failed"] * len(bad), "success"]
        for task, match in zip(tasks[1:-1], messages, strict=True):
            assert match in task["msgs"]
        assert [each["rerun_segment_id"] for each in other.segments(dataset)] == ["good", "unclosed"]
    with refused("NOT_FOUND", "task none not found"):
        catalog.tasks("none")


def test_a_recording_without_a_footer_is_registered_as_one_with_it(catalog: Catalog) -> None:
    dataset = catalog.create()
    chunks = scalars("/a", [1, 5]), scalars("/b", [3]), properties("info", robot="r", mass=2.5)
    catalog.register(dataset, catalog.recording("one", *chunks), layer="closed")
    catalog.register(dataset, catalog.recording("one", *chunks, name="two", closed=False), layer="open")
    closed, scanned = (
        catalog.manifest(dataset)
        .drop_columns(["rerun_layer_name", "rerun_storage_url", "rerun_registration_time", "rerun_last_updated_at"])
        .to_pylist()
    )
    assert closed == scanned and closed["property:info:robot"] == ["r"]
    found = catalog.query(dataset).to_pylist()
    for each in found:
        for name in ("chunk_key", "rerun_segment_layer"):
            del each[name]
    assert found[:3] == found[3:] and len(found) == 6


def test_recordings_below_a_prefix_are_registered(catalog: Catalog, tmp_path: Path) -> None:
    dataset = catalog.create()
    for name in ("day/b", "day/deep/a", "night"):
        catalog.recording(name.replace("/", "-"), name=f"drives/{name}")
    (tmp_path / "drives" / "day" / "note.txt").write_text("no recording")
    found = catalog.register(dataset, (tmp_path / "drives" / "day").as_uri(), prefix=True, layer="raw")
    assert [each["rerun_segment_id"] for each in found] == ["day-b", "day-deep-a"]
    (tmp_path / "void").mkdir()
    for place, match in (
        ("drives/night.rrd", "but got an object"),
        ("none", "no such folder"),
        ("void", "no rrd files"),
    ):
        with refused("INVALID_ARGUMENT", match):
            catalog.register(dataset, (tmp_path / place).as_uri(), prefix=True)
    with refused("INVALID_ARGUMENT", "no data sources to register"):
        catalog.register(dataset)


def test_layers_add_to_a_segment_and_the_last_property_counts(catalog: Catalog) -> None:
    dataset = catalog.create()
    base = catalog.recording("one", scalars("/a", [1]), properties("info", robot="a", mass=1.0))
    later = catalog.recording("one", scalars("/b", [1]), properties("info", robot="b"), name="later")
    other = catalog.recording("two", scalars("/a", [1]))
    catalog.register(dataset, base, other)
    catalog.register(dataset, later, layer="labels")
    one, two = catalog.segments(dataset)
    assert (one["rerun_layer_names"], one["rerun_storage_urls"]) == (["base", "labels"], [base, later])
    assert (one["property:info:robot"], one["property:info:mass"]) == (["b"], [1.0])
    assert (two["rerun_num_chunks"], two["property:info:robot"]) == (1, None)
    manifest = catalog.manifest(dataset)
    assert manifest["property:info:robot"].to_pylist() == [["a"], None, ["b"]]
    assert manifest["rerun_layer_name"].to_pylist() == ["base", "base", "labels"]
    assert "rerun_registration_status" not in manifest.column_names
    newer = catalog.manifest(dataset, "rerun-py/0.30.1")
    assert newer["rerun_registration_status"].to_pylist() == ["done"] * 3
    assert catalog.segments(dataset, "rerun_size_bytes", "rerun_segment_id")[1].keys() == {
        "rerun_size_bytes",
        "rerun_segment_id",
    }
    for columns, match in ((["none"], "Column 'none' not found"), (["rerun_segment_id"] * 2, "named twice")):
        with refused("INVALID_ARGUMENT", match):
            catalog.segments(dataset, *columns)
    assert [field.name for field in catalog.schema(dataset)] == [
        "rerun.controls.RowId",
        "tick",
        "property:info:mass",
        "property:info:robot",
        "/a:Scalars:scalars",
        "/b:Scalars:scalars",
    ]


def test_a_layer_that_is_there_is_refused_replaced_or_skipped(catalog: Catalog) -> None:
    dataset = catalog.create()
    first = catalog.recording("one", scalars("/a", [1, 2]), properties("info", robot="a"))
    second = catalog.recording("one", scalars("/b", [1]), name="second")
    fresh = catalog.recording("two")
    catalog.register(dataset, first)
    with refused("ALREADY_EXISTS", "Layer 'base' already exists"):
        catalog.register(dataset, fresh, second)
    with refused("ALREADY_EXISTS", "Layer 'base' already exists"):
        catalog.register(dataset, fresh, fresh)
    assert [each["rerun_segment_id"] for each in catalog.segments(dataset)] == ["one"]
    catalog.register(dataset, second, on_duplicate=OnDuplicate.SKIP)
    assert catalog.query(dataset)["chunk_entity_path"].to_pylist() == ["/a", "/__properties/info"]
    before = catalog.query(dataset)
    catalog.register(dataset, second, on_duplicate=OnDuplicate.OVERWRITE)
    assert catalog.query(dataset)["chunk_entity_path"].to_pylist() == ["/b"]
    assert catalog.segments(dataset)[0].keys() >= {"rerun_segment_id"}
    assert "/a:Scalars:scalars" not in catalog.schema(dataset).names
    with refused("NOT_FOUND", "no longer a layer of the dataset"):
        catalog.fetch(before)


def test_a_component_that_changes_its_type_is_refused_with_its_file_alone(catalog: Catalog) -> None:
    dataset = catalog.create()
    texts = Chunk("/a", {"Scalars:scalars": [["one"]]}, {"tick": [1]}, {"Scalars:scalars": pa.utf8()})
    first, bad = catalog.recording("one"), catalog.recording("two", texts)
    good = catalog.recording("three")
    answered = catalog.register(dataset, first, bad, good)
    tasks = catalog.tasks(*(each["rerun_task_id"] for each in answered))
    assert [each["exec_status"] for each in tasks] == ["success", "failed", "success"]
    assert bad in tasks[1]["msgs"] and "/a:Scalars:scalars is list<item: string>" in tasks[1]["msgs"]
    [answer] = catalog.register(dataset, bad, layer="other")
    assert catalog.tasks(answer["rerun_task_id"])[0]["exec_status"] == "failed"
    numbers = catalog.recording("four", properties("info", robot=1.0))
    [answer] = catalog.register(dataset, numbers)
    assert "property:info:robot" in catalog.tasks(answer["rerun_task_id"])[0]["msgs"]
    assert len(catalog.segments(dataset)) == 2


def test_chunks_are_sent_as_they_are_stored(catalog: Catalog) -> None:
    dataset = catalog.create()
    closed = Path(__file__).parent / "files" / "closed.rrd"
    catalog.register(dataset, closed.as_uri(), catalog.recording("one"))
    found = catalog.query(dataset)
    messages = catalog.fetch(found)
    assert [(each.store_id.recording_id, len(each.payload) > 0) for each in messages] == [("rec_0", True)] * 5 + [
        ("one", True)
    ] * 2
    stored = closed.read_bytes()
    assert all(each.SerializeToString() in stored for each in messages[:5])
    assert found["chunk_segment_id"].to_pylist() == [each.store_id.recording_id for each in messages]
    assert all(isinstance(each, log_msg.ArrowMsg) for each in messages)


LATEST = -(2**63)
QUERIES: dict[str, tuple[Mapping[str, Any], list[str]]] = {
    "all": ({}, ["one/a1", "one/a2", "one/b", "one/p", "two/a", "two/p"]),
    "a segment": ({"segment_ids": [{"id": "two"}]}, ["two/a", "two/p"]),
    "an entity": ({"entity_paths": [{"path": "/b"}]}, ["one/b"]),
    "no such entity": ({"entity_paths": [{"path": "/z"}]}, []),
    "static": ({"query": {"latest_at": {"at": LATEST}}}, ["one/p", "two/p"]),
    "without static": ({"exclude_static_data": True}, ["one/a1", "one/a2", "one/b", "two/a"]),
    "static alone": ({"exclude_temporal_data": True}, ["one/p", "two/p"]),
    "a range": (
        {
            "query": {
                "latest_at": {"index": {"timeline": {"name": "tick"}}, "at": 12},
                "range": {"index": {"timeline": {"name": "tick"}}, "index_range": {"start": 12, "end": 15}},
            }
        },
        ["one/a1", "one/a2", "one/b", "one/p", "two/a", "two/p"],
    ),
    "times before": (
        {"query": {"latest_at": {"index": {"timeline": {"name": "tick"}}, "at": 8}}},
        ["one/a1", "one/b", "one/p", "two/a", "two/p"],
    ),
    "another timeline": (
        {"query": {"range": {"index": {"timeline": {"name": "z"}}, "index_range": {"start": 0, "end": 9}}}},
        ["one/p", "two/p"],
    ),
}


@pytest.mark.parametrize("case", QUERIES)
def test_queries_name_the_chunks_that_they_need(case: str, catalog: Catalog) -> None:
    dataset = catalog.create()
    one = scalars("/a", [1, 2]), scalars("/a", [10, 20]), scalars("/b", [3]), properties("p", x=1.0)
    catalog.register(dataset, catalog.recording("one", *one))
    catalog.register(dataset, catalog.recording("two", scalars("/a", [5]), properties("p", x=2.0), first=11))
    names = dict(zip((1, 2, 3, 4, 11, 12), QUERIES["all"][1], strict=True))
    request, expected = QUERIES[case]
    found = catalog.query(dataset, **request)
    assert [names[int.from_bytes(each, "big")] for each in found["chunk_id"].to_pylist()] == expected
    columns = ["chunk_key", "chunk_byte_len"]
    assert catalog.query(dataset, **request, scan_parameters={"columns": columns}).column_names == columns


def test_queries_that_do_not_fit_are_refused(catalog: Catalog) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one"))
    with refused("NOT_FOUND", "Segment 'none' not found in dataset"):
        catalog.query(dataset, segment_ids=[{"id": "none"}])
    with refused("UNIMPLEMENTED", "specific chunk ids"):
        catalog.query(dataset, chunk_ids=[{"time_ns": 1}])
    with refused("INVALID_ARGUMENT", "cannot specify entity paths"):
        catalog.query(dataset, entity_paths=[{"path": "/a"}], select_all_entity_paths=True)
    with refused("INVALID_ARGUMENT", "missing mandatory"):
        catalog.client("GetDatasetSchema")
    with refused("INVALID_ARGUMENT", "is not an entry id"):
        catalog.schema("zz")
    found = catalog.query(dataset)
    keys = found["chunk_key"].to_pylist()
    cases: Sequence[tuple[str, list[bytes], str]] = [
        ("INVALID_ARGUMENT", [b"x"], "is not one of this server"),
        ("INVALID_ARGUMENT", [keys[0][:24] + b"\x7f" * 16], "does not have"),
        ("INVALID_ARGUMENT", [keys[0][:24] + b"\xff" * 16], "does not have"),
        ("NOT_FOUND", [keys[0][:16] + b"\x01" * 24], "no longer a layer"),
        ("NOT_FOUND", [bytes(16) + keys[0][16:]], "not found"),
    ]
    for code, wrong, match in cases:
        with refused(code, match):
            catalog.fetch(pa.table({"chunk_key": pa.array(wrong, pa.binary())}))
    with refused("INVALID_ARGUMENT", "Missing chunk_key column"):
        catalog.fetch(pa.table({"a": [1]}))


def test_a_recording_that_changed_is_refused_by_name(catalog: Catalog, tmp_path: Path) -> None:
    dataset = catalog.create()
    url = catalog.recording("one")
    path = tmp_path / "one.rrd"
    catalog.register(dataset, url)
    found = catalog.query(dataset)
    data = path.read_bytes()
    assert len(catalog.fetch(found)) == 2
    for change in (lambda: path.write_bytes(data[:-1] + b"x"), lambda: path.write_bytes(data + b"x")):
        change()
        with refused("FAILED_PRECONDITION", r"one\.rrd: the recording was changed since it was registered"):
            catalog.fetch(found)
    path.unlink()
    with refused("FAILED_PRECONDITION", r"one\.rrd: the recording is gone"):
        catalog.fetch(found)


def test_one_commit_names_all_versions_of_a_registration(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    with closing(open_store(root)) as store:
        before = store.instance().version
        catalog.register(dataset, *(catalog.recording(f"s{number}") for number in range(5)))
        [entry] = store.log(INSTANCE_LOG, before)
        [update] = entry.updates
        [record] = update.changes.values()  # type: ignore[union-attr]
        assert [record[name] for name in ("sources", "layers", "chunks", "tasks")] == [
            5,
            {"version": 1, "rows": 5},
            {"version": 1, "rows": 10},
            {"version": 1, "rows": 5},
        ]


def test_registrations_at_the_same_time_keep_all_or_refuse_one(catalog: Catalog, root: str, tmp_path: Path) -> None:
    dataset = catalog.create()
    urls = [catalog.recording(f"s{number}") for number in range(4)]
    same = [catalog.recording("same", name=f"same{number}") for number in range(4)]
    failures = list[str]()

    def register(number: int) -> None:
        with catalog_at(root, tmp_path) as other:
            other.register(dataset, urls[number])
            try:
                other.register(dataset, same[number])
            except Exception as failure:
                failures.append(str(failure))

    threads = [threading.Thread(target=register, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [("Layer 'base' already exists" in each) for each in failures] == [True] * 3
    with catalog_at(root, tmp_path) as fresh:
        for each in (catalog, fresh):
            names = [row["rerun_segment_id"] for row in each.segments(dataset)]
            assert sorted(names) == ["s0", "s1", "s2", "s3", "same"]
            assert len(each.fetch(each.query(dataset))) == 10


def test_many_registrations_are_read_as_one(catalog: Catalog, root: str, tmp_path: Path) -> None:
    """More than one version of each table may have as parts."""
    dataset = catalog.create()
    for number in range(70):
        catalog.register(dataset, catalog.recording(f"s{number}", scalars("/a", [number])))
    with catalog_at(root, tmp_path) as fresh:
        for each in (catalog, fresh):
            assert [row["rerun_segment_id"] for row in each.segments(dataset)] == [f"s{n}" for n in range(70)]
            assert each.query(dataset)["chunk_segment_id"].to_pylist() == [f"s{n}" for n in range(70)]
