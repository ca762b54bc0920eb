"""Savepoints, `restore` and `table gc` of an instance with datasets of recordings, as a user runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.catalog.datasets.recordings import scalars, write_recording
from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)


def segments(loaded: Run) -> list[str]:  # noqa: F811
    found = json.loads(loaded("catalog", "segments", "drives", "--json")[1])
    return [each["rerun_segment_id"] for each in found["segments"]]


def test_the_catalog_is_saved_listed_restored_and_deleted_with_the_tables(loaded: Run) -> None:  # noqa: F811
    for name in ("one", "two"):
        write_recording(Path(f"{name}.rrd"), name, [scalars("/a", [1])])
    assert loaded("catalog", "register", "drives", "one.rrd", "--create")[0] == 0
    code, out, _ = loaded("savepoint", "create", "then")
    assert code == 0 and "savepoint then of 1 table and the catalog" in out
    assert "the catalog" in loaded("savepoint", "list")[1]
    [listed] = json.loads(loaded("savepoint", "list", "--json")[1])["catalog"]
    assert listed["name"] == "then" and listed["entries"][1] == "drives"
    assert "the catalog: the same as at savepoint then" in loaded("restore", "then")[1]
    assert loaded("catalog", "register", "drives", "two.rrd")[0] == 0
    code, out, _ = loaded("restore", "then", "--preview")
    assert code == 0 and "drives changes back" in out and segments(loaded) == ["one", "two"]
    code, out, _ = loaded("restore", "then", "--yes", "--json")
    document = json.loads(out)
    assert code == 0 and document["catalog"]["changed"] == ["drives"] and segments(loaded) == ["one"]
    assert loaded("restore", document["undo"], "--yes")[0] == 0 and segments(loaded) == ["one", "two"]
    code, out, _ = loaded("savepoint", "delete", "then")
    assert code == 0 and out == "deleted savepoint then of air.flights, the catalog\n"
    assert loaded("state", "verify")[0] == 0


def test_gc_removes_folders_that_no_dataset_has(loaded: Run) -> None:  # noqa: F811
    write_recording(Path("one.rrd"), "one", [scalars("/a", [1])])
    assert loaded("catalog", "register", "drives", "one.rrd", "--create")[0] == 0
    [folder] = Path().rglob("_catalog")
    [used] = folder.iterdir()
    left = folder / ("f" * 32)
    used.rename(left)  # as a killed process leaves it
    for path in left.rglob("*.manifest"):
        os.utime(path, (0, 0))
    assert json.loads(loaded("table", "gc", "--dry-run", "--json")[1])["catalog"] != [] and left.exists()
    assert "which belongs to no dataset" in loaded("table", "gc")[1] and not list(left.rglob("*.lance"))
