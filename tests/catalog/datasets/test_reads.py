"""What clients read of a dataset: tables of segments and layers, columns, and the chunks of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.catalog.datasets.model.schemas import entity_order
from deployer.catalog.datasets.reads import objects
from deployer.catalog.protocol.messages import cloud, log_msg
from deployer.platform.storage.s3_objects import S3Objects
from deployer.state import create_store
from tests.catalog.clients import refused
from tests.catalog.datasets.catalog import Catalog, catalog_at
from tests.catalog.datasets.recordings import properties, scalars, write_recording


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
        "/a:Scalars:scalars",
        "/b:Scalars:scalars",
        "property:info:mass",
        "property:info:robot",
    ]


def test_chunks_are_sent_as_they_are_stored(catalog: Catalog) -> None:
    dataset = catalog.create()
    closed = Path(__file__).parents[1] / "files" / "closed.rrd"
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
    for changed in (data[:-1] + b"x", data + b"x"):
        path.write_bytes(changed)
        with refused("FAILED_PRECONDITION", r"one\.rrd: the recording was changed since it was registered"):
            catalog.fetch(found)
        with refused("FAILED_PRECONDITION", r"one\.rrd: the recording was changed since it was registered"):
            catalog.query(dataset)
    path.unlink()
    with refused("FAILED_PRECONDITION", r"one\.rrd: the recording is gone"):
        catalog.query(dataset)
    with refused("FAILED_PRECONDITION", r"one\.rrd: the recording is gone"):
        catalog.fetch(found)


@pytest.mark.full
def test_an_instance_and_recordings_in_s3_are_served_as_those_of_a_disk(bucket: str, tmp_path: Path) -> None:
    root, recordings = f"s3://{bucket}/lake", S3Objects(f"s3://{bucket}/in")
    create_store(root, instance="tests").close()
    for name in ("one", "two"):
        chunks = scalars("/a", [1, 2]), properties("info", robot=name)
        recordings.put(f"{name}.rrd", write_recording(tmp_path / f"{name}.rrd", name, chunks).read_bytes())
    with catalog_at(root, tmp_path) as catalog:
        dataset = catalog.create()
        found = catalog.register(dataset, f"s3://{bucket}/in", f"s3://{bucket}/none", prefix=False)
        assert [each["rerun_segment_id"] for each in found] == ["", ""]
        catalog.register(dataset, f"s3://{bucket}/in", prefix=True)
        with refused("INVALID_ARGUMENT", "no rrd files"):
            catalog.register(dataset, f"s3://{bucket}/void", prefix=True)
        with refused("INVALID_ARGUMENT", "but got an object"):
            catalog.register(dataset, f"s3://{bucket}/in/one.rrd", prefix=True)
    with catalog_at(root, tmp_path) as catalog:
        assert [each["property:info:robot"] for each in catalog.segments(dataset)] == [["one"], ["two"]]
        chunks_found = catalog.query(dataset)
        assert [each.store_id.recording_id for each in catalog.fetch(chunks_found)] == ["one"] * 2 + ["two"] * 2
        recordings.put("two.rrd", b"RRF2 something else")
        with refused("FAILED_PRECONDITION", r"two\.rrd: the recording was changed since it was registered"):
            catalog.fetch(chunks_found)
        with refused("FAILED_PRECONDITION", r"two\.rrd: the recording was changed since it was registered"):
            catalog.query(dataset)
        recordings.delete(["two.rrd"])
        for ask in (lambda: catalog.fetch(chunks_found), lambda: catalog.query(dataset)):
            with refused("FAILED_PRECONDITION", r"two\.rrd: the recording is gone"):
                ask()
        recordings.put("two.rrd", (tmp_path / "two.rrd").read_bytes())
        assert len(catalog.fetch(chunks_found)) == 4
        catalog.client("DeleteEntry", cloud.DeleteEntryRequest(id=catalog.client.entry("drives").id))
    assert S3Objects(f"{root}/_catalog").list("") == [] and len(recordings.list("")) == 2


@pytest.mark.full
def test_many_objects_of_a_folder_are_compared_by_its_listing(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = f"s3://{bucket}/many"
    store = S3Objects(folder)
    for number in range(objects.MANY + 4):
        store.put(f"r/{number:03}.rrd", b"x" * number)
        store.put(f"r/{number:03}.txt", b"another object")
    store.put("alone.rrd", b"x")
    known = [(f"{folder}/{each.path}", each.bytes, each.tag) for each in store.described("")]
    known = [each for each in known if each[0].endswith(".rrd")]
    asked, ask = list[str](), objects._requested

    def counted(each: objects.Known) -> Any:
        asked.append(each[0])
        return ask(each)

    monkeypatch.setattr(objects, "_requested", counted)
    objects.require_objects(known, lambda url, what: ValueError(f"{url} {what}"))
    assert sorted(asked) == [f"{folder}/alone.rrd", f"{folder}/r/000.rrd"]
    store.put("r/003.rrd", b"123")
    with pytest.raises(ValueError, match=r"r/003\.rrd was changed"):
        objects.require_objects(known, lambda url, what: ValueError(f"{url} {what}"))
    store.delete(["r/003.rrd"])
    with pytest.raises(ValueError, match=r"r/003\.rrd is gone"):
        objects.require_objects(known, lambda url, what: ValueError(f"{url} {what}"))


def test_columns_have_the_order_of_reruns_entity_paths() -> None:
    """As Rerun's own server of 0.28.2 lists them."""
    expected = r"/9 /10 /_x /a /a/2/b /a/10 /a/b /a\ b /a-b /a.b /a01 /a1 /a2 /a2/z /a2b /a10 /ab /B /Z/1 /z/2 /z/10 /é"
    paths = [*expected.replace("\\ ", "\\~").split(), "/__properties", "/__y"]
    paths = [each.replace("~", " ") for each in paths]
    for mixed in (sorted(paths), paths[::-1]):
        assert sorted(mixed, key=entity_order) == paths
