"""What df93aa6 and this release store is opened, folds to the same states, and is written again byte for byte.

The kinds that came after df93aa6 are in `entries.jsonl` and `records.json`, which this release wrote. A class or module
may be renamed without a change here; what is stored may not change.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.datasets.commit_metadata import (
    CommitMetadata,
    CommittedFile,
    ComputedFragments,
    commit_metadata_of,
    properties_of,
)
from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.ordering.clustering import FileClustering
from deployer.datasets.ordering.key_ranges import KeyRange
from deployer.engine.persistence.deployment import open_deployment, to_deployment
from deployer.engine.secrets.encryption import StackKeys
from deployer.plan.saved.file import read_plan, write_plan
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.objects import LocalObjects
from deployer.state import open_reader
from deployer.state.backends.protocol import Record
from deployer.state.backends.sqlite.backend import SqliteBackend
from deployer.state.log import codec
from deployer.state.log.codec import Kinds
from deployer.state.log.entries import REQUIREMENTS, UPDATES, from_record, to_record
from deployer.state.log.requirements import Requirement
from deployer.state.log.updates import Update
from deployer.state.model.entities import Partition
from deployer.state.new_store import import_into
from deployer.state.records.document import JobsRecord, TableRecord, jobs_from_bytes, table_from_bytes, to_bytes
from deployer.state.snapshots.files import SnapshotReader, SnapshotWriter, manifest_of
from deployer.tables.evolution.rewrite.progress import Progress, RangeLedger
from tests.archives import unpack
from tests.state.samples import objects_at, store_at

from .write_entries import EXTREME, LITTLE, MUCH, filled, lines
from .write_states import records_of, states_of

HERE = Path(__file__).parent
OLD, NOW = HERE / "entries-df93aa6.jsonl", HERE / "entries.jsonl"
RECORDS = HERE / "records.json"
STATES = HERE / "states-df93aa6.jsonl"
#: Fields of states that later releases added.
SINCE = {"sources", "services_cluster", "restore", "target", "job", "claims", "counts", "computed"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that df93aa6 wrote; nothing here changes it."""
    folder = tmp_path_factory.mktemp("df93aa6")
    unpack(HERE / "df93aa6.tar.gz", folder)
    return folder


@pytest.fixture(scope="module")
def records(project: Path) -> Mapping[str, list[Record]]:
    return records_of(project / "lakes" / "dev" / "_state" / "state.db")


def types_in(path: Path) -> tuple[set[str], set[str]]:
    """The types of the updates and of the requirements in a log."""
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    return (
        {each["type"] for entry in entries for each in entry["updates"]},
        {each["type"] for entry in entries for each in entry["requirements"]},
    )


def written_again(line: bytes) -> bytes:
    document = json.loads(line)
    entry = from_record(Record(document["log"], document["version"], document["txn_id"], seal(line)))
    return unseal(to_record(entry).body, "here")


@pytest.mark.parametrize("path", [OLD, NOW], ids=["df93aa6", "now"])
def test_entries_of_every_kind_are_written_again_byte_for_byte(path: Path) -> None:
    for line in path.read_bytes().splitlines():
        assert written_again(line) == line


def test_every_kind_is_in_a_log_and_the_old_ones_are_known() -> None:
    """For a new kind, write entries.jsonl with write_entries.py: lines are added, and none is changed."""
    assert types_in(NOW) == (set(UPDATES.classes), set(REQUIREMENTS.classes))
    old = types_in(OLD)
    assert (len(old[0]), len(old[1])) == (32, 23)
    assert old[0] <= set(UPDATES.classes) and old[1] <= set(REQUIREMENTS.classes)


def test_the_same_values_are_stored_as_the_same_bytes() -> None:
    assert list(lines()) == NOW.read_bytes().splitlines()


@pytest.fixture
def renamed() -> Iterator[None]:
    """Every class of the state's model has another name, as in a release that renamed them; codecs are made again."""
    modules = [module for name, module in sys.modules.items() if name.startswith("deployer.state.")]
    found = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    names = {each: each.__name__ for each in found if dataclasses.is_dataclass(each)}
    assert names.keys() >= {*get_args(Update), *get_args(Requirement), Partition}
    codec._codec.cache_clear()
    try:
        for number, each in enumerate(names):
            each.__name__ = f"Renamed{number}"
        yield
    finally:
        for each, name in names.items():
            each.__name__ = name
        codec._codec.cache_clear()


def test_renamed_classes_are_stored_as_before(renamed: None) -> None:
    updates, requirements = Kinds("update", Update), Kinds("requirement", Requirement)
    for line in NOW.read_bytes().splitlines():
        document = json.loads(line)
        for kinds, name in ((updates, "updates"), (requirements, "requirements")):
            assert [kinds.encode(kinds.decode(each)) for each in document[name]] == document[name]


def test_the_old_log_is_stored_again_byte_for_byte(records: Mapping[str, list[Record]]) -> None:
    assert sorted(map(len, records.values())) == [13, 32, 55]
    for listed in records.values():
        for record in listed:
            assert to_record(from_record(record)) == record


def test_the_old_log_folds_to_the_states_of_then(records: Mapping[str, list[Record]]) -> None:
    expected = [json.loads(line) for line in STATES.read_text(encoding="utf-8").splitlines()]
    found = list(states_of(records))
    assert len(found) == len(expected) > 12
    for before, now in zip(expected, found, strict=True):
        assert _without_new(now, before) == before, f"{before['log']} at {before['version']}"


def _without_new(now: Any, before: Any) -> Any:
    """`now` without fields that came since, which must be empty."""
    if isinstance(now, dict) and isinstance(before, dict):
        new = now.keys() - before.keys()
        assert new <= SINCE and not any(now[name] for name in new)
        return {name: _without_new(value, before.get(name)) for name, value in now.items() if name not in new}
    if isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        return [_without_new(*pair) for pair in zip(now, before, strict=True)]
    return now


def test_old_snapshots_are_read_and_taken_again_byte_for_byte(project: Path, tmp_path: Path) -> None:
    folder = project / "lakes" / "dev" / "_state"
    newest = {each["log"]: each for each in map(json.loads, STATES.read_text(encoding="utf-8").splitlines())}
    found = 0
    with (
        closing(SqliteBackend(folder / "state.db")) as backend,
        closing(store_at(tmp_path)) as other,
    ):
        old, objects = SnapshotReader(backend, LocalObjects(folder / "snapshots")), objects_at(tmp_path)
        writer = SnapshotWriter(other._backend, objects, other._clock)
        for log in newest:
            for pointer in backend.snapshots(log):
                manifest = manifest_of(pointer)
                assert other._backend.begin_at(log, pointer.version) or found
                again, _, _ = writer._write(old.read(pointer).state)
                _same_snapshot(folder / "snapshots", manifest, tmp_path / "_state" / "snapshots", manifest_of(again))
                found += 1
    assert found > 8


def _same_snapshot(old: Path, then: Mapping[str, Any], new: Path, now: Mapping[str, Any]) -> None:
    """The same manifest but for its folder, and the same files; as bytes where the same release of Arrow wrote them."""
    assert [(key, then[key]) for key in ("format", "log", "version", "at")] == [
        (key, now[key]) for key in ("format", "log", "version", "at")
    ]
    assert list(then) == list(now) and list(then["parts"]) == list(now["parts"])
    for name in then["parts"]:
        before, after = (
            (place / manifest["location"] / f"{name}.parquet").read_bytes()
            for place, manifest in ((old, then), (new, now))
        )
        files = [pq.ParquetFile(pa.BufferReader(data)) for data in (before, after)]
        tables = [file.read() for file in files]
        assert tables[0].schema.equals(tables[1].schema, check_metadata=True) and tables[0].equals(tables[1])
        if files[0].metadata.created_by == files[1].metadata.created_by:
            assert before == after
            assert then["parts"][name] == now["parts"][name] or "data" in then["parts"][name]


def test_the_old_plan_is_written_again_byte_for_byte_but_for_what_is_new(project: Path, tmp_path: Path) -> None:
    saved = project / "saved.plan"
    release = json.loads(saved.read_bytes())["deployer"]
    write_plan(tmp_path / "again.plan", read_plan(saved, deployer=release))
    then, now = (json.loads(path.read_bytes()) for path in (saved, tmp_path / "again.plan"))
    assert now["desired"].pop("aws") == {}  # later releases added it
    assert json.dumps(now | {"checksum": then["checksum"]}, indent=1, ensure_ascii=False) + "\n" == saved.read_text()


def test_the_old_export_is_written_again_byte_for_byte(project: Path, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    root.mkdir()
    import_into(project / "state.zip", str(root))
    with closing(open_reader(root)) as reader:
        reader.export_to(tmp_path / "again.zip")
    with zipfile.ZipFile(project / "state.zip") as old, zipfile.ZipFile(tmp_path / "again.zip") as again:
        assert old.namelist() == again.namelist() and len(old.namelist()) > 70
        for name in old.namelist():
            if name != "manifest.json":
                assert old.read(name) == again.read(name), name
        manifests = [json.loads(archive.read("manifest.json")) | {"at": 0} for archive in (old, again)]
        assert json.dumps(manifests[0]) == json.dumps(manifests[1])


@pytest.mark.parametrize("name", [".pulumi/stacks/upgrade/dev.json", "stack.json"])
def test_the_old_checkpoint_is_written_again_byte_for_byte(name: str, project: Path) -> None:
    raw = (project / name).read_bytes()
    document = json.loads(raw)
    holder, key = (document, "deployment") if "deployment" in document else (document["checkpoint"], "latest")
    opened = open_deployment(holder[key], StackKeys())
    again = to_deployment(opened.snapshot, opened.secrets, opened.metadata)
    assert len(again["resources"]) > 4
    again["manifest"]["time"] = holder[key]["manifest"]["time"]
    holder[key] = again
    forms = ({"indent": 4}, {"separators": (",", ":")})
    assert raw.decode().strip() in [json.dumps(document, ensure_ascii=False, **form) for form in forms]


KEYS = KeyRange(b"\x00a", b"\xffz", (b"a", b"b"), (b"y", b"z"))
WRITTEN = [
    WrittenFragment({"id": 0, "files": [{"path": "a.lance", "fields": [0]}]}, "root", 3, KEYS, True),
    WrittenFragment({"id": 0}, None, 0, None, False),
]
MARKS = [
    CommitMetadata(
        "job-1",
        "ingest",
        30,
        (CommittedFile("a.lance", "root", KEYS, True), CommittedFile("b", None, None, False)),
        "x",
    ),
    CommitMetadata(
        "job-2", "cluster", 3, (CommittedFile("c", "leaf", KEYS, False, FileClustering("zorder(a)", (b"l",), (b"h",))),)
    ),
    CommitMetadata("fence-1", "fence", 0),
    CommitMetadata("job-3", "merge", 3, (CommittedFile("d", "root", None, False, None, '{"7":["v1"]}'),)),
    CommitMetadata("job-4", "backfill", 9, computed=ComputedFragments({7: "v2"}, (0, 3))),
]
TREE = (Partition("root", None, b"", None, ("l", "r"), b"m"), Partition("l", "root", b"", b"m"))


def stored(folder: Path) -> dict[str, Any]:
    """What is stored outside of the log and snapshots, by name, as text."""
    progress = Progress(str(folder))
    progress.choose_tree(TREE)
    RangeLedger(progress.ledger(0).folder).record(7, WRITTEN)
    notes = {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.json"))}
    amounts = {"little": LITTLE, "much": MUCH, "extreme": EXTREME}
    return {
        **{f"table.json, {name}": to_bytes(_record(amount)).decode() for name, amount in amounts.items()},
        **{f"jobs.json, {name}": to_bytes(filled(JobsRecord, amount)).decode() for name, amount in amounts.items()},
        **{f"mark of {mark.job_id}": mark.to_properties() for mark in MARKS},
        "marks of all": properties_of(MARKS),
        **{f"notes of a rewrite, {name}": text for name, text in notes.items()},
    }


def _record(amount: int) -> TableRecord:
    record: TableRecord = filled(TableRecord, amount)
    return dataclasses.replace(record, at=min(record.at, 1_700_000_000_000))


def test_other_records_are_stored_as_the_same_bytes(tmp_path: Path, update_golden: bool) -> None:
    found = stored(tmp_path)
    if update_golden:
        RECORDS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    expected = json.loads(RECORDS.read_text(encoding="utf-8"))
    assert found == expected and json.dumps(found) == json.dumps(expected)


READERS: dict[str, Callable[[bytes, str], Any]] = {"table.json": table_from_bytes, "jobs.json": jobs_from_bytes}


def test_other_records_are_read_as_they_were_stored(tmp_path: Path) -> None:
    expected = json.loads(RECORDS.read_text(encoding="utf-8"))
    for name, text in expected.items():
        if (read := READERS.get(name.partition(",")[0])) is not None:
            assert to_bytes(read(text.encode(), "here")).decode() == text
    for mark in MARKS:
        assert CommitMetadata.of(expected[f"mark of {mark.job_id}"]) == mark
    assert commit_metadata_of(expected["marks of all"]) == tuple(MARKS)
    stored(tmp_path)
    assert Progress(str(tmp_path)).tree() == TREE
    assert Progress(str(tmp_path)).ledger(0).finished() == {7: tuple(WRITTEN)}
