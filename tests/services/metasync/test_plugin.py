"""METASYNC to a catalog that a package of somebody else knows, found by its entry point."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import InvalidInput
from deployer.services.kinds.metasync import NotPublished
from deployer.tables.admin.naming import rename_table
from tests.services.metasync.conftest import sync, sync_all
from tests.tables.lakes import Lake, flights

REPOSITORY = Path(__file__).resolve().parents[3]

#: The example of the documentation: a catalog that is one JSON file.
PACKAGE = next(
    block
    for block in re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / "metasync.md").read_text(), re.DOTALL)
    if "class JsonCatalog" in block
)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package is installed; the catalog's file, which is not there yet."""
    site = tmp_path / "site"
    about = site / "json_catalog-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "json_catalog.py").write_text(PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: json-catalog\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[deployer.metasync_targets]\njson = json_catalog:JsonCatalog\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "json_catalog", raising=False)
    importlib.invalidate_caches()
    return tmp_path / "catalog.json"


def target(catalog: Path) -> dict[str, Any]:
    return {"type": "plugin", "name": "json", "options": {"file": str(catalog)}}


def test_a_package_of_ones_own_is_a_target_like_any_other(lake: Lake, catalog: Path) -> None:
    done = sync(lake, target(catalog))
    assert (done.action, done.target) == ("created", "plugin json catalog.json air.flights")
    [(name, entry)] = json.loads(catalog.read_text()).items()
    assert name == "air.flights" and entry["location"] == Path(lake.open().opened.location).as_uri()
    assert sync_all(lake, target(catalog)).status == "SKIPPED"
    lake.ingest(lake.file(flights(5, 20)))
    assert sync(lake, target(catalog)).action == "updated"
    catalog.write_text(json.dumps({name: {**json.loads(catalog.read_text())[name], "location": "file:///elsewhere"}}))
    assert sync(lake, target(catalog)).changed_by_others == ("location",)
    rename_table(lake.store, lake.open().opened.entry, "air", "departures")
    assert {each.action for each in sync_all(lake, target(catalog), table="departures").targets} == {
        "created",
        "removed",
    }
    assert list(json.loads(catalog.read_text())) == ["air.departures"]


def test_what_a_plug_in_raises_fails_its_target_alone(lake: Lake, catalog: Path) -> None:
    catalog.write_text("no JSON")
    with pytest.raises(NotPublished, match="the plug-in json failed: JSONDecodeError: Expecting value") as failed:
        sync_all(lake, target(catalog), {"type": "directory"})
    assert "remedy" not in str(failed.value) and catalog.read_text() == "no JSON"
    assert sync_all(lake, {"type": "directory"}).status == "SKIPPED"


def test_one_that_is_not_installed_is_named_with_those_that_are(lake: Lake, catalog: Path) -> None:
    with pytest.raises(NotPublished, match="no installed package has a METASYNC target hive; there are: json"):
        sync_all(lake, {"type": "plugin", "name": "hive"})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"type": "plugin"}, "name"),
        ({"type": "plugin", "name": "../evil"}, "name"),
        ({"type": "plugin", "name": "json", "options": {"a": {"b": 1}}}, "a"),
    ],
)
def test_a_wrong_declaration_is_refused(lake: Lake, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sync_all(lake, wrong)
