"""A whole store as one file and back: between all backends, checked before anything is written."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import Corrupt, DeployerError, InvalidInput, NotFound, Refused
from deployer.platform.storage.envelope import digest
from deployer.state import create_store, open_store
from deployer.state.log.service_updates import PutService, RunQueued, SavepointTaken
from deployer.state.log.updates import RegisterTable, SetInstanceProperties
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, TableState
from deployer.state.model.services import Service
from deployer.state.new_store import import_into
from deployer.state.snapshots.retention import SnapshotPolicy

from .samples import TABLE, added, creation, entry, objects_at, store_at

SECOND = "b" * 32
POLICIES = {
    "snapshots and the whole log": SnapshotPolicy(entries=5, keep=100, keep_for=1 << 50),
    "the newest snapshots alone": SnapshotPolicy(entries=5, keep=2, keep_for=0),
    "one snapshot that is all": SnapshotPolicy(entries=1, keep=1, keep_for=0),
    "the log alone": SnapshotPolicy(entries=1_000_000),
}


def fill(root: str, policy: SnapshotPolicy) -> None:
    store = store_at(root, policy=policy)
    tables = [RegisterTable(entry()), RegisterTable(entry(SECOND, "planes"))]
    store.commit(INSTANCE_LOG, [SetInstanceProperties({"name": "nyc"}), *tables])
    store.commit(SECOND, [creation()])
    store.commit(SECOND, [PutService(Service("CLEAN")), RunQueued("one", "CLEAN", "by hand"), SavepointTaken("a")])
    for number in range(18):
        store.commit(TABLE, [added(number, f"job-{number}") if number else creation()])
    store.close()


def everything(root: str) -> tuple[InstanceState, dict[str, TableState], dict[str, Any]]:
    store = open_store(root)
    logs = {log: store.log(log) for log in store.logs()}
    found = store.instance(), store.tables([TABLE, SECOND]), logs
    assert [store.audit(log).differences for log in logs] == [()] * len(logs)
    store.close()
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_a_store_is_the_same_after_its_way_through_a_file(root: str, tmp_path: Path, policy: str) -> None:
    fill(root, POLICIES[policy])
    before = everything(root)
    there, back = str(tmp_path / "there"), str(tmp_path / "back")
    first, second = tmp_path / "first.zip", tmp_path / "second.zip"
    wrote = open_store(root).export_to(first)
    assert import_into(first, there) == wrote
    assert everything(there) == before
    open_store(there).export_to(second)
    import_into(second, back)
    assert everything(back) == before
    after = open_store(back).commit(TABLE, [added(500)])
    assert after.version == before[1][TABLE].version + 1
    if policy.startswith("snapshots"):
        for version in range(1, after.version):
            assert open_store(back).table(TABLE, version) == open_store(root).table(TABLE, version)


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("policy", POLICIES)
def test_a_local_store_moves_to_s3(tmp_path: Path, on_s3: str, policy: str) -> None:
    fill(str(tmp_path), POLICIES[policy])
    open_store(tmp_path).export_to(tmp_path / "state.zip")
    import_into(tmp_path / "state.zip", on_s3, instance="test")
    assert everything(on_s3) == everything(str(tmp_path))
    assert open_store(on_s3).commit(TABLE, [added(500)]).version == 19


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    fill(str(tmp_path / "lake"), POLICIES["snapshots and the whole log"])
    open_store(tmp_path / "lake").export_to(tmp_path / "state.zip")
    return tmp_path / "state.zip"


def rewritten(path: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Writes the archive anew with other members: whole for ZIP, whatever it holds."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def in_manifest(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, bytes]], None]:
    def apply(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return apply


def set_format(manifest: dict[str, Any]) -> None:
    manifest["format"] = 2


def set_kind(manifest: dict[str, Any]) -> None:
    manifest["kind"] = "something else"


def climb(manifest: dict[str, Any]) -> None:
    manifest["logs"][TABLE]["snapshots"][0]["location"] = "../../outside"


def change_a_part(members: dict[str, bytes]) -> None:
    name = next(name for name in members if name.endswith("files.parquet"))
    members[name] = members[name][:-1] + b"x"


def change_an_entry(members: dict[str, bytes]) -> None:
    members[f"{TABLE}/entries.jsonl"] = members[f"{TABLE}/entries.jsonl"].replace(b"job-7", b"job-9")


def lose_a_part(members: dict[str, bytes]) -> None:
    del members[next(name for name in members if name.endswith("files.parquet"))]


def with_entries(lines: bytes) -> Callable[[dict[str, bytes]], None]:
    """Another file of entries, whose checksum fits."""

    def apply(members: dict[str, bytes]) -> None:
        members[f"{TABLE}/entries.jsonl"] = lines
        in_manifest(lambda manifest: manifest["digests"].update({f"{TABLE}/entries.jsonl": digest(lines).hex()}))(
            members
        )

    return apply


UNFIT: dict[str, tuple[Callable[[dict[str, bytes]], None], type[DeployerError], str]] = {
    "newer": (in_manifest(set_format), Refused, r"written by a newer deployer \(format 2\), .* up to 1; upgrade"),
    "of something else": (in_manifest(set_kind), InvalidInput, "it is not a valid export of a state store"),
    "logs of another type": (
        in_manifest(lambda m: m.update(logs=[])),
        Corrupt,
        "its manifest has an unexpected structure",
    ),
    "a format of another type": (in_manifest(lambda m: m.update(format="x")), InvalidInput, "it is not a valid export"),
    "no digests": (in_manifest(lambda m: m.pop("digests")), Corrupt, "its manifest has an unexpected structure"),
    "a member without checksum": (in_manifest(lambda m: m["digests"].clear()), Corrupt, "it has no checksum of"),
    "entries that are none": (with_entries(b"[]\n" * 18), Corrupt, "entry .* of log .* cannot be read"),
    "deep entries": (with_entries((b"[" * 100_000 + b"\n") * 18), Corrupt, "log .*nested more than"),
    "no entries": (with_entries(b"{}\n" * 99), Corrupt, "does not have the entries that make its newest state"),
    "a path": (in_manifest(climb), Corrupt, "names that no export has"),
    "a changed part": (change_a_part, Corrupt, r"the checksum of .*files\.parquet does not match"),
    "a changed entry": (change_an_entry, Corrupt, r"the checksum of .*entries\.jsonl does not match"),
    "a lost part": (lose_a_part, Corrupt, r"the checksum of .*files\.parquet does not match"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_file_that_does_not_fit_is_refused_and_nothing_made(name: str, exported: Path, tmp_path: Path) -> None:
    change, error, words = UNFIT[name]
    rewritten(exported, change)
    with pytest.raises(error, match=words) as caught:
        import_into(exported, str(tmp_path / "new"))
    assert str(exported) in str(caught.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_flipped_byte_anywhere_is_noticed(place: float, exported: Path, tmp_path: Path) -> None:
    data = bytearray(exported.read_bytes())
    data[int(len(data) * place)] ^= 0xFF
    exported.write_bytes(bytes(data))
    try:
        import_into(exported, str(tmp_path / "new"))
    except (Corrupt, InvalidInput):
        assert not (tmp_path / "new").exists()
    else:  # a byte that holds nothing, such as a time in ZIP's own tables
        assert everything(str(tmp_path / "new")) == everything(str(tmp_path / "lake"))


@pytest.mark.parametrize("data", [None, b"", b"not a zip"], ids=["none", "empty", "other"])
def test_what_is_no_export_is_said_so(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "x.zip"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InvalidInput, match="no such file" if data is None else "it is not a valid export"):
        import_into(path, str(tmp_path / "new"))


def test_a_store_that_is_there_is_never_written_over(exported: Path, tmp_path: Path) -> None:
    before = everything(str(tmp_path / "lake"))
    with pytest.raises(Refused, match="there is a state store already; import into an instance with another root"):
        import_into(exported, str(tmp_path / "lake"))
    assert everything(str(tmp_path / "lake")) == before


def test_an_import_that_was_cut_off_is_made_anew(exported: Path, tmp_path: Path) -> None:
    half = create_store(tmp_path / "new")
    half.commit(TABLE, [creation()])  # the instance's log comes last
    with pytest.raises(InvalidInput, match="is not empty"):
        half.import_from(exported)
    half.close()
    import_into(exported, str(tmp_path / "new"))
    assert everything(str(tmp_path / "new")) == everything(str(tmp_path / "lake"))


def test_damage_is_not_exported(exported: Path, tmp_path: Path) -> None:
    objects = objects_at(tmp_path / "lake")
    objects.put(max(path for path in objects.list(TABLE) if path.endswith("jobs.parquet")), b"damaged")
    with pytest.raises(Corrupt, match=r"checksum of .*jobs\.parquet does not match; deployer state repair"):
        open_store(tmp_path / "lake").export_to(tmp_path / "other.zip")
    assert not list(tmp_path.glob("*other*"))


def test_there_is_nothing_at_a_root_without_a_store(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no state store"):
        open_store(tmp_path / "nowhere")
