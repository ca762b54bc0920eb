"""Datasets of recordings that specs declare, planned, applied, changed and deleted by commands."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.catalog.datasets.declared.live import live_of
from deployer.catalog.entries import Entries
from deployer.errors import NotFound, Refused
from deployer.state import open_store
from tests.catalog.datasets.recordings import Chunk, write_recording
from tests.catalog.declared.conftest import DRIVES, INDEX, ROOT, Deployer, changes, datasets, declare, drives
from tests.projects import table


def test_a_dataset_is_created_once(project: Path, deployer: Deployer) -> None:
    assert changes(deployer("preview", "--format", "json")) == ["CreateInstance", "CreateDataset"]
    assert deployer("up", "--yes").code == 0
    created = drives()
    assert live_of(created).owner.endswith("/dev")
    again = deployer("preview", "--format", "json")
    assert changes(again) == []
    assert deployer("up", "--yes").code == 0
    assert drives() == created


def test_what_differs_is_changed_in_place(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    before = drives()
    more = "register: manual\nretention: 7d\ndescription: Of the fleet.\ndeletion_protection: false\n"
    declare(project, DRIVES.replace("recordings", "others") + more + INDEX)
    kinds = ["ChangeSources", "ChangeRegister", "ChangeVersionsKept", "SetDeletionProtection", "ChangeDescription"]
    planned = deployer("preview", "--format", "json")
    assert changes(planned) == [*kinds, "CreateSearchIndex"]
    assert deployer("up", "--yes").code == 0
    after = drives()
    assert after.dataset_id == before.dataset_id
    spec = live_of(after).spec
    assert (spec.register, spec.retention, spec.deletion_protection) == ("manual", "7d", False)
    assert [index.column for index in spec.search_indexes] == ["/log:TextLog:text"]
    assert after.searches == ()  # there are no values to build it of
    assert changes(deployer("preview", "--format", "json")) == []


def test_a_dataset_that_is_not_declared_any_more_is_deleted(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    (project / "specs/drives.yaml").unlink()
    assert changes(deployer("preview", "--format", "json")) == ["DeleteDataset"]
    assert deployer("up", "--yes").code == 0
    with datasets() as found, pytest.raises(NotFound):
        found.by_name("drives")


def test_destroy_deletes_datasets_and_the_instance(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    assert deployer("destroy", "--yes").code == 0
    assert not (project / "lakes/demo").exists()


def test_the_name_of_a_table_is_refused(project: Path, deployer: Deployer) -> None:
    declare(project, table("drives").replace("database: air", "database: default"))
    assert deployer("up", "--yes").code == 0
    declare(project, DRIVES)
    refused = deployer("up", "--yes", "--allow-destroy", "table/default.drives")
    assert refused.code != 0
    assert "table/default.drives has the name" in refused.out + refused.err


@pytest.mark.parametrize("name", ["drives", "default.drives"])
@pytest.mark.parametrize("kind", ["dataset", "table"])
def test_a_preview_refuses_the_name_of_an_external_table(
    kind: str, name: str, project: Path, deployer: Deployer
) -> None:
    spec = DRIVES if kind == "dataset" else table("drives", database="default")
    address = "dataset/drives" if kind == "dataset" else "table/default.drives"
    (project / "specs/drives.yaml").unlink()
    assert deployer("up", "--yes").code == 0
    lance.write_dataset(pa.table({"a": [1]}), project / "t.lance")
    with closing(open_store(ROOT)) as store:
        entries = Entries(store, str(Path(ROOT).absolute()))
        entries.register(name, (project / "t.lance").as_uri())
        assert changes(deployer("preview", "--format", "json")) == []
        declare(project, spec)
        for command in (("preview",), ("up", "--yes")):
            refused = deployer(*command)
            assert refused.code != 0
            said = " ".join((refused.out + refused.err).split())
            assert f"the catalog has external tables with these names, which its clients made: {address}" in said
            assert "rename or delete the external table" in said
        [entry] = [each for each in entries.all() if each.name.endswith("drives")]
        entries.delete(entry.entry_id)
    assert deployer("up", "--yes").code == 0


def test_a_dataset_that_a_client_made_is_taken_over(project: Path, deployer: Deployer) -> None:
    (project / "specs/drives.yaml").rename(project / "drives.txt")
    assert deployer("up", "--yes").code == 0
    with datasets() as found:
        created = found.create("drives")
    assert changes(deployer("preview", "--format", "json")) == []  # it is not this stack's
    (project / "drives.txt").rename(project / "specs/drives.yaml")
    assert deployer("up", "--yes").code == 0
    assert drives().dataset_id == created.dataset_id
    assert live_of(drives()).owner.endswith("/dev")


def blueprint(project: Path, segment: str) -> None:
    chunk = Chunk("/viewport", {"Viewport:layout": [[1.0]]}, {"blueprint": [0]})
    write_recording(project / "drives.rbl", segment, [chunk], blueprint=True)


def test_a_blueprint_is_copied_and_set(project: Path, deployer: Deployer) -> None:
    blueprint(project, "first")
    declare(project, DRIVES + "default_blueprint: drives.rbl\n")
    assert deployer("up", "--yes").code == 0
    assert drives().default_blueprint == "first"
    assert changes(deployer("preview", "--format", "json")) == []
    blueprint(project, "second")
    planned = deployer("preview")
    assert "default blueprint drives.rbl: its content changed" in planned.out
    assert deployer("up", "--yes").code == 0
    assert drives().default_blueprint == "second"
    declare(project, DRIVES)
    assert deployer("up", "--yes").code == 0
    assert drives().default_blueprint is None


def test_a_file_that_is_no_blueprint_is_named(project: Path, deployer: Deployer) -> None:
    (project / "drives.rbl").write_bytes(b"not a blueprint")
    declare(project, DRIVES + "default_blueprint: drives.rbl\n")
    failed = deployer("up", "--yes")
    assert failed.code != 0
    assert "the blueprint drives.rbl cannot be registered" in failed.out + failed.err
    blueprint(project, "first")
    assert deployer("up", "--yes").code == 0
    assert drives().default_blueprint == "first"


def test_a_target_leaves_other_datasets_alone(project: Path, deployer: Deployer) -> None:
    (project / "specs/walks.yaml").write_text("kind: Dataset\nname: walks\n", encoding="utf-8")
    assert deployer("up", "--yes", "--target", "dataset/walks").code == 0
    with datasets() as found:
        assert [each.name for each in found.all() if each.kind == "dataset"] == ["walks"]


def test_a_saved_plan_is_applied(project: Path, deployer: Deployer) -> None:
    assert deployer("preview", "--out", "plan.json").code == 0
    assert deployer("up", "plan.json").code == 0
    assert drives().name == "drives"
    declare(project, DRIVES + "retention: 7d\n")
    assert deployer("preview", "--out", "plan.json").code == 0
    with datasets() as found:
        found.set_default_blueprint(drives().dataset_id, "another")
    moved = deployer("up", "plan.json")
    assert moved.code != 0
    assert "dataset/drives: default_blueprint: none → blueprint another" in moved.out + moved.err


def test_an_instance_with_datasets_of_clients_is_not_destroyed(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    with datasets() as found:
        walks = found.create("walks")
    refused = deployer("destroy", "--yes")
    assert refused.code != 0
    assert "1 dataset of recordings that this stack does not manage: walks" in refused.out + refused.err
    with datasets() as found:
        found.delete(walks.dataset_id)
    assert deployer("destroy", "--yes").code == 0


def test_clients_neither_rename_nor_delete_a_declared_dataset(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    with closing(open_store(ROOT)) as store:
        entries = Entries(store, str(Path(ROOT).absolute()))
        entry_id = bytes.fromhex(drives().dataset_id)
        with pytest.raises(Refused, match="cannot be renamed here"):
            entries.rename(entry_id, "walks")
        with pytest.raises(Refused, match="cannot be deleted here"):
            entries.delete(entry_id)
    assert drives().name == "drives"
