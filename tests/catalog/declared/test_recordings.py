"""New recordings below the sources of datasets: reported by previews, registered by `up`, and never a difference."""

from __future__ import annotations

import os
from pathlib import Path

from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.search.searches import Searches
from tests.catalog.declared.conftest import (
    DRIVES,
    INDEX,
    Deployer,
    changes,
    datasets,
    declare,
    drives,
    record_drive,
)


def segments() -> list[str]:
    record = drives()
    return sorted(Indexes(str(Path("lakes/demo").absolute())).of(record).numbers)


def new_of(deployer: Deployer) -> dict[str, object]:
    [found] = deployer("preview", "--format", "json").json["recordings"]
    assert isinstance(found, dict)
    return found


def test_new_recordings_are_reported_and_registered(project: Path, deployer: Deployer) -> None:
    sizes = [record_drive(project, name).stat().st_size for name in ("one", "two")]
    (project / "recordings/notes.txt").write_text("not a recording", encoding="utf-8")
    before = deployer("preview")
    assert "Recordings: drives: 2 new recordings, " in before.out
    assert "(registered by up)" in before.out
    assert new_of(deployer)["bytes"] == sum(sizes)
    up = deployer("up", "--yes")
    assert up.code == 0
    assert "dataset/drives: 2 recordings registered" in up.err
    assert segments() == ["one", "two"]
    assert "Recordings" not in deployer("preview").out


def test_recordings_are_no_difference(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    record_drive(project, "one")
    assert deployer("preview", "--exit-code").code == 0
    assert changes(deployer("preview", "--format", "json")) == []
    done = deployer("up", "--json")  # there is nothing to approve
    assert done.code == 0
    assert done.json["recordings"] == [{"address": "dataset/drives", "registered": 1, "failures": [], "indexes": []}]
    assert segments() == ["one"]


def test_manual_registration_is_only_reported(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + "register: manual\n")
    record_drive(project, "one")
    assert "1 new recording, " in (shown := deployer("preview").out)
    assert "(`deployer catalog register drives` registers them)" in shown.replace("\n", " ").replace("  ", " ")
    assert deployer("up", "--yes").code == 0
    assert segments() == []
    assert deployer("catalog", "register", "drives", "recordings", "--prefix").code == 0
    assert new_of(deployer)["recordings"] == 0


def test_a_bad_file_is_named_and_the_others_are_registered(project: Path, deployer: Deployer) -> None:
    record_drive(project, "one")
    (project / "recordings/bad.rrd").write_bytes(b"RRF2")
    done = deployer("up", "--yes")
    assert done.code == 1
    assert "error: dataset/drives: file://" in done.err
    assert "bad.rrd" in done.err
    assert segments() == ["one"]
    (project / "recordings/bad.rrd").unlink()
    assert deployer("up", "--yes").code == 0


def test_a_changed_file_is_reported_and_not_registered_again(project: Path, deployer: Deployer) -> None:
    path = record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    record_drive(project, "one", "another text, which is longer")
    os.utime(path, ns=(1, 1))
    assert "1 file changed since registration: file://" in deployer("preview").out.replace("\n", " ")
    done = deployer("up", "--yes")
    assert done.code == 1
    assert "one.rrd: the file changed since it was registered" in done.err


def test_a_segment_that_another_file_has_is_not_new_for_ever(project: Path, deployer: Deployer) -> None:
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    record_drive(project, "one", folder="recordings/again")
    assert new_of(deployer)["recordings"] == 1
    assert deployer("up", "--yes").code == 0
    assert new_of(deployer)["recordings"] == 0
    assert len(segments()) == 1


def test_layers_of_sources(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES.replace("}]", "}, {prefix: labels, layer: labels}]"))
    record_drive(project, "one")
    record_drive(project, "one", folder="labels")
    assert deployer("up", "--yes").code == 0
    rows = deployer("catalog", "layers", "drives", "--json").json["layers"]
    assert sorted(row["layer"] for row in rows) == ["base", "labels"]


def test_a_folder_that_is_not_there_is_named(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES.replace("recordings", "nowhere"))
    assert "nowhere: the folder does not exist" in deployer("preview").out.replace("\n", " ")
    assert deployer("up", "--yes").code == 0


def test_a_search_index_gets_its_first_values_by_up(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + INDEX)
    assert deployer("up", "--yes").code == 0
    record_drive(project, "one", "a dog runs")
    done = deployer("up", "--json")
    assert done.json["recordings"][0]["indexes"] == ["/log:TextLog:text"]
    record_drive(project, "two", "a cat sits")
    assert deployer("up", "--yes").code == 0
    with datasets() as found:
        searches = Searches(found, Indexes(found.root))
        hits = searches.search_texts(drives(), "/log", "TextLog:text", "cat")
    assert hits["rerun_segment_id"].to_pylist() == ["two"]
    assert changes(deployer("preview", "--format", "json")) == []


def test_an_index_of_a_component_that_is_not_there_is_named(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + INDEX.replace("TextLog", "TextLogs"))
    record_drive(project, "one")
    done = deployer("up", "--yes")
    assert done.code == 1
    assert "no recording of dataset drives has the component /log:TextLogs:text" in done.err
    assert "did you mean /log:TextLog:text?" in done.err
    assert segments() == ["one"]
    declare(project, DRIVES + INDEX)
    assert deployer("up", "--yes").code == 0
    assert [each.column for each in drives().searches] == [("/log", "TextLog:text")]


def test_an_index_by_a_timeline_that_is_not_there_is_named(project: Path, deployer: Deployer) -> None:
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    declare(project, DRIVES + INDEX.replace("timeline: tick", "timeline: frame"))
    done = deployer("up", "--yes")
    assert done.code != 0
    assert "no value of /log:TextLog:text has a time of the index frame" in done.out + done.err


def test_another_index_takes_the_place_of_one(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + INDEX)
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    declare(project, DRIVES + INDEX.replace("kind: text", "kind: text, tokenizer: whitespace"))
    assert changes(deployer("preview", "--format", "json")) == ["RebuildSearchIndex"]
    assert deployer("up", "--yes").code == 0
    [search] = drives().searches
    assert search.settings["tokenizer"] == "whitespace"
    declare(project, DRIVES)
    assert deployer("up", "--yes").code == 0
    assert drives().searches == ()


def test_a_dataset_with_layers_is_protected(project: Path, deployer: Deployer) -> None:
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    refused = deployer("destroy", "--yes")
    assert refused.code != 0
    assert "--allow-destroy dataset/drives" in refused.out + refused.err
    assert segments() == ["one"]
    assert deployer("destroy", "--yes", "--allow-destroy", "dataset/drives").code == 0
    assert (project / "recordings/one.rrd").is_file()
    assert not (project / "lakes/demo").exists()


def test_protection_that_is_off_needs_no_permission(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + "deletion_protection: false\n")
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    assert deployer("destroy", "--yes").code == 0


def test_register_without_files_registers_what_is_new(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + "register: manual\n")
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    assert "1 recording registered with drives" in deployer("catalog", "register", "drives").out
    assert "0 recordings registered with drives" in deployer("catalog", "register", "drives").out
    root = str(Path("lakes/demo").absolute())
    record_drive(project, "two")
    os.chdir(project.parent)  # what is relative to the project is known where there is none
    assert deployer("catalog", "register", "drives", "--root", root).code == 0
    os.chdir(project)
    assert segments() == ["one", "two"]


def test_register_without_files_needs_sources(project: Path, deployer: Deployer) -> None:
    declare(project, "kind: Dataset\nname: drives\n")
    assert deployer("up", "--yes").code == 0
    refused = deployer("catalog", "register", "drives")
    assert refused.code == 1
    assert "the dataset declares no sources" in refused.err


def test_maintenance_removes_versions_that_are_older_than_declared(project: Path, deployer: Deployer) -> None:
    declare(project, DRIVES + "retention: 1h\n")
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    assert "bytes of old versions were removed" in deployer("catalog", "maintain", "drives").out
    declare(project, DRIVES)
    assert deployer("up", "--yes").code == 0
    assert "old versions" not in deployer("catalog", "maintain", "drives").out
