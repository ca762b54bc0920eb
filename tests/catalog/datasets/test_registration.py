"""Registration: recordings become layers, bad files are named, and nothing is done by halves."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reading import Source
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.registration import OnDuplicate, Registration
from deployer.state import open_store
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.entities import INSTANCE_LOG
from tests.catalog.clients import refused
from tests.catalog.datasets.catalog import Catalog, catalog_at
from tests.catalog.datasets.recordings import Chunk, properties, scalars


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
    messages = [
        "is empty",
        "not a recording",
        "truncated",
        "holds no recording",
        "the file does not exist",
        "not a known kind",
    ]
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
        ("none", "the folder does not exist"),
        ("void", "no rrd files"),
    ):
        with refused("INVALID_ARGUMENT", match):
            catalog.register(dataset, (tmp_path / place).as_uri(), prefix=True)
    with refused("INVALID_ARGUMENT", "no data sources to register"):
        catalog.register(dataset)
    with refused("INVALID_ARGUMENT", "on_duplicate is not a known behavior"):
        catalog.register(dataset, catalog.recording("one"), on_duplicate=9)


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


def test_one_commit_names_all_versions_of_a_registration(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    with closing(open_store(root)) as store:
        before = store.instance().version
        catalog.register(dataset, *(catalog.recording(f"s{number}") for number in range(5)))
        [entry] = store.log(INSTANCE_LOG, before)
        [update] = entry.updates
        assert isinstance(update, SetInstanceProperties)
        [record] = update.changes.values()
        assert isinstance(record, Mapping)
        assert [record[name] for name in ("sources", "layers", "chunks", "tasks")] == [
            5,
            {"version": 1, "rows": 5},
            {"version": 1, "rows": 10},
            {"version": 1, "rows": 5},
        ]


def test_8_clients_register_and_read_at_the_same_time(catalog: Catalog, root: str, tmp_path: Path) -> None:
    """Each has a server, and registers a segment of its own and one that all want, which is registered once."""
    dataset = catalog.create()
    urls = [catalog.recording(f"s{number}") for number in range(8)]
    same = [catalog.recording("same", name=f"same{number}") for number in range(8)]
    failures, missing = list[str](), list[str]()

    def register(number: int) -> None:
        with catalog_at(root, tmp_path) as other:
            other.register(dataset, urls[number])
            found = other.query(dataset)
            messages = other.fetch(found)
            names = [each.store_id.recording_id for each in messages]
            if f"s{number}" not in names or names != found["chunk_segment_id"].to_pylist():
                missing.append(f"s{number}")
            try:
                other.register(dataset, same[number])
            except Exception as failure:
                failures.append(str(failure))

    threads = [threading.Thread(target=register, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missing == [] and ["Layer 'base' already exists" in each for each in failures] == [True] * 7
    with catalog_at(root, tmp_path) as fresh:
        for each in (catalog, fresh):
            names = [row["rerun_segment_id"] for row in each.segments(dataset)]
            assert sorted(names) == [*(f"s{number}" for number in range(8)), "same"]
            assert len(each.fetch(each.query(dataset))) == 18


def test_many_registrations_are_read_as_one(catalog: Catalog, root: str, tmp_path: Path) -> None:
    """More than one version of each table may have as parts."""
    dataset = catalog.create()
    for number in range(70):
        catalog.register(dataset, catalog.recording(f"s{number}", scalars("/a", [number])))
    with catalog_at(root, tmp_path) as fresh:
        for each in (catalog, fresh):
            assert [row["rerun_segment_id"] for row in each.segments(dataset)] == [f"s{n}" for n in range(70)]
            assert each.query(dataset)["chunk_segment_id"].to_pylist() == [f"s{n}" for n in range(70)]


def test_names_with_any_character_are_those_of_different_layers(catalog: Catalog) -> None:
    dataset = catalog.create()
    for segment, layer in (("a\0b", "c"), ("a", "b\0c"), ("ü/ö ", "")):
        catalog.register(dataset, catalog.recording(segment, scalars("/a", [1]), name="any"), layer=layer)
    found = [(row["rerun_segment_id"], row["rerun_layer_names"]) for row in catalog.segments(dataset)]
    assert found == [("a\0b", ["c"]), ("a", ["b\0c"]), ("ü/ö ", ["base"])]


def test_what_a_server_holds_is_what_is_stored_after_each_registration(catalog: Catalog, root: str) -> None:
    """A server adds rows to what it holds, whether it has read the chunks before or not."""
    dataset = catalog.create()
    with closing(open_store(root)) as store:
        datasets, indexes = Datasets(store, root), Indexes(root)
        registration = Registration(datasets, indexes)
        for number in range(5):
            chunks = scalars("/a", [number]), properties(f"p{number % 2}", x=float(number))
            registration.register(dataset, [Source(catalog.recording(f"s{number}", *chunks))])
            held, stored = (each.of(datasets.by_id(dataset)) for each in (indexes, Indexes(root)))
            if number != 2:  # which leaves chunks that are read later
                assert held.chunks.ids == stored.chunks.ids and held.chunks.count == 2 * number + 2
            assert held.properties.equals(stored.properties) and held.schema == stored.schema
            if number == 1:
                indexes = Indexes(root)
                registration = Registration(datasets, indexes)
