"""What clients of the catalog changed of a declared dataset: found, said by whom, and taken over into the specs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deployer.catalog.datasets.declared.apply import DeclaredDatasets
from deployer.catalog.datasets.declared.live import live_of
from deployer.catalog.datasets.declared.search_indexes import build_index
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.search.searches import Searches
from deployer.specs.types.dataset import SearchIndexSpec
from tests.catalog.declared.conftest import DRIVES, INDEX, Deployer, datasets, declare, drives, record_drive
from tests.catalog.declared.test_up import blueprint

COMMENTED = f"# of the fleet\n{DRIVES}{INDEX}retention: 7d  # for readers\ndefault_blueprint: drives.rbl\n"
OTHER = SearchIndexSpec("/log:TextLog:text", "tick", "text", {"tokenizer": "whitespace"})


@pytest.fixture
def applied(project: Path, deployer: Deployer) -> Path:
    """The project with an index, a blueprint and a recording, applied."""
    blueprint(project, "first")
    declare(project, COMMENTED)
    record_drive(project, "one")
    assert deployer("up", "--yes").code == 0
    assert deployer("drift").code == 0
    return project


def summaries(deployer: Deployer) -> list[str]:
    return [each["summary"] for each in deployer("drift", "--json").json["drift"]]


def test_an_index_that_was_deleted(applied: Path, deployer: Deployer) -> None:
    with datasets() as found:
        Searches(found, Indexes(found.root)).delete(drives().dataset_id, "/log", "TextLog:text")
    [item] = deployer("drift", "--json").json["drift"]
    assert item["summary"] == "drop search index /log:TextLog:text: text by tick"
    assert item["who"]
    assert item["at"]
    assert deployer("drift", "--write-spec").code == 0
    text = (applied / "specs/drives.yaml").read_text(encoding="utf-8")
    assert text == COMMENTED.replace(INDEX, "")
    assert deployer("drift").code == 0
    assert deployer("preview", "--exit-code").code == 0


def test_an_index_that_is_another(applied: Path, deployer: Deployer) -> None:
    with datasets() as found:
        build_index(Searches(found, Indexes(found.root)), drives().dataset_id, OTHER)
    changed = (
        "rebuild search index /log:TextLog:text: text by tick → /log:TextLog:text: text by tick (tokenizer whitespace)"
    )
    assert summaries(deployer) == [changed]
    assert deployer("drift", "--write-spec").code == 0
    assert "tokenizer: whitespace" in (applied / "specs/drives.yaml").read_text(encoding="utf-8")
    assert deployer("preview", "--exit-code").code == 0


def test_up_undoes_drift(applied: Path, deployer: Deployer) -> None:
    with datasets() as found:
        Searches(found, Indexes(found.root)).delete(drives().dataset_id, "/log", "TextLog:text")
        found.set_default_blueprint(drives().dataset_id, None)
    assert deployer("preview", "--exit-code").code == 2
    assert deployer("up", "--yes").code == 0
    assert deployer("drift").code == 0
    assert [each.column for each in drives().searches] == [("/log", "TextLog:text")]
    assert drives().default_blueprint == "first"


def test_a_blueprint_that_was_taken_away_and_one_that_a_client_set(applied: Path, deployer: Deployer) -> None:
    with datasets() as found:
        found.set_default_blueprint(drives().dataset_id, "of a client")
    assert summaries(deployer) == ["default blueprint drives.rbl → blueprint of a client"]
    refused = deployer("drift", "--write-spec")
    assert refused.code != 0
    assert "a client set blueprint of a client, but specs name the file of a blueprint" in refused.out + refused.err
    with datasets() as found:
        found.set_default_blueprint(drives().dataset_id, None)
    assert deployer("drift", "--write-spec").code == 0
    assert (applied / "specs/drives.yaml").read_text(encoding="utf-8") == COMMENTED.replace(
        "default_blueprint: drives.rbl\n", ""
    )


def test_a_declaration_that_another_checkout_applied(applied: Path, deployer: Deployer) -> None:
    before = drives()
    with datasets() as found:
        live = live_of(before)
        changed = replace(live.spec, retention="30d", register="manual")
        DeclaredDatasets(found.store, found.root, applied).update(before.dataset_id, changed, live.owner)
    assert sorted(summaries(deployer)) == ["register auto → manual", "replaced versions kept 7d → 30d"]
    assert deployer("drift", "--write-spec").code == 0
    text = (applied / "specs/drives.yaml").read_text(encoding="utf-8")
    assert "retention: 30d # for readers" in text
    assert "register: manual" in text
    assert deployer("preview", "--exit-code").code == 0


def test_a_dataset_that_is_gone(applied: Path, deployer: Deployer) -> None:
    with datasets() as found:
        found.delete(drives().dataset_id)
    assert summaries(deployer) == ["delete dataset and what is registered with it"]
    assert deployer("drift", "--write-spec").code != 0
    assert deployer("up", "--yes").code == 0
    assert deployer("drift").code == 0
    assert drives().layers.rows == 1


def test_recordings_are_no_drift(applied: Path, deployer: Deployer) -> None:
    record_drive(applied, "two")
    assert deployer("catalog", "register", "drives", "recordings/two.rrd").code == 0
    assert deployer("drift").code == 0
