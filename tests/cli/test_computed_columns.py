"""Computed columns in specs: plans, what `up` applies, drift, renames, restores, imports, and what is not imported."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run

FLIGHTS = """\
kind: Table
database: air
name: flights
columns:
  - { name: flight, type: int32, nullable: false }
  - { name: distance, type: int32 }
  - { name: minutes, type: int32 }
row_keys: [flight]
"""
KM = '  - { name: km, type: float64, computed: { sql: "distance * 1.609344" } }\n'
SPEED = """\
  - name: speed
    type: float64
    computed: { udf: "features.flights:speed", inputs: [distance, minutes] }
"""
#: It must never be imported by what looks at specs.
MODULE = 'raise RuntimeError("features.flights was imported")\n'


def spec(*columns: str, text: str = FLIGHTS) -> str:
    return text.replace("row_keys:", "".join(columns) + "row_keys:")


def load() -> None:
    ids = pa.array(range(20), pa.int32())
    pq.write_table(pa.table({"flight": ids, "distance": ids, "minutes": ids}), "flights.parquet")
    run("ingest", "flights", "flights.parquet")
    Path("features").mkdir()
    Path("features/__init__.py").write_text(MODULE)
    Path("features/flights.py").write_text(MODULE)


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table of 20 rows; the current folder."""
    folder = applied_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": FLIGHTS}, load)
    monkeypatch.chdir(folder)
    return folder


def declare(folder: Path, text: str) -> None:
    (folder / "specs" / "flights.yaml").write_text(text)


def data_files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("**/*.lance/data/*")}


def dataset(folder: Path) -> lance.LanceDataset:
    [path] = folder.glob("**/air/*.lance")
    return lance.dataset(str(path))


def changes(deployer: Deployer) -> list[dict[str, Any]]:
    resources = deployer("preview", "--json").json["resources"]
    return [change for each in resources if each["address"] == "table/air.flights" for change in each["changes"]]


def columns(deployer: Deployer) -> dict[str, dict[str, object]]:
    found = deployer("column", "list", "flights", "--json")
    return {each["name"]: each for each in found.json["columns"]}


def test_declared_columns_are_added_without_a_file_and_nothing_is_imported(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(KM, SPEED))
    assert deployer("validate").code == 0
    found = changes(deployer)
    assert [change["kind"] for change in found] == ["AddColumn", "AddColumn"]
    assert all(change["why"] == "null until a backfill computes it, no file is written" for change in found)
    before = data_files(applied)
    assert deployer("up", "--yes").code == 0
    assert data_files(applied) == before
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0
    assert b'"sql": "distance * 1.609344"' in dataset(applied).schema.field("km").metadata[b"deployer:computed"]
    speed = columns(deployer)["speed"]
    assert (speed["udf"], speed["inputs"]) == ("features.flights:speed", ["distance", "minutes"])
    assert "100% not computed" in deployer("describe", "flights").out


def test_another_text_of_the_module_is_another_version(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(SPEED))
    assert deployer("up", "--yes").code == 0
    version = columns(deployer)["speed"]["version"]
    (applied / "features" / "flights.py").write_text(MODULE + "# changed\n")
    [change] = changes(deployer)
    assert change["kind"] == "ChangeColumnComputed"
    assert (change["risk"], change["rows"], change["bytes"]) == ("safe", 20, 160)
    assert "becomes stale" in change["why"]
    assert change["cause"].startswith("specs/flights.yaml:")
    assert deployer("up", "--yes").code == 0
    assert columns(deployer)["speed"]["version"] != version
    (applied / "features" / "flights.py").write_text(MODULE)
    declare(applied, spec(SPEED.replace("minutes]", 'minutes], version: "2"')))
    assert deployer("up", "--yes").code == 0
    assert columns(deployer)["speed"]["version"] == "2"


def test_a_renamed_input_keeps_what_is_computed(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(KM, SPEED))
    assert deployer("up", "--yes").code == 0
    text = spec(KM, SPEED).replace("distance,", "miles,").replace("[distance", "[miles").replace('"distance', '"miles')
    declare(applied, text.replace("name: miles,", "name: miles, renamed_from: distance,"))
    [change] = changes(deployer)
    assert change["kind"] == "RenameColumn"
    assert change["why"] == "the definition of km, speed follows"
    before = data_files(applied)
    assert deployer("up", "--yes").code == 0
    assert data_files(applied) == before
    assert columns(deployer)["km"]["sql"] == "miles * 1.609344"
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0


def test_a_dropped_input_is_refused_with_its_readers(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(KM, SPEED))
    assert deployer("up", "--yes").code == 0
    declare(applied, spec(KM, SPEED).replace("  - { name: distance, type: int32 }\n", ""))
    ran = deployer("preview")
    assert ran.code == 1
    assert "no column `distance`, which computed column `speed` reads" in ran.out + ran.err
    assert "`sql` of column `km` cannot be computed: no field named distance" in ran.out + ran.err


def test_added_columns_are_drift_until_the_spec_declares_them(deployer: Deployer, applied: Path) -> None:
    added = deployer("column", "add", "flights", "km", "--sql", "distance * 1.609344")
    assert added.code == 0, added.err
    assert "the column is drift until the spec declares it" in added.err
    ran = deployer("drift")
    assert ran.code == 2
    assert "add column km: float64 computed distance * 1.609344" in ran.out
    ran = deployer(
        "column", "add", "flights", "speed", "--udf", "features.flights:speed", "--inputs", "distance, minutes",
        "--type", "float64", "--version", "3", "--on-load", "--write-spec",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    text = (applied / "specs" / "flights.yaml").read_text()
    assert "distance * 1.609344" in text
    assert "features.flights:speed" in text
    assert deployer("drift").code == 0
    assert deployer("preview", "--exit-code").code == 0


def test_another_definition_by_a_call_is_written_into_the_spec(deployer: Deployer, applied: Path) -> None:
    from deployer.table import connect

    declare(applied, spec(KM))
    assert deployer("up", "--yes").code == 0
    [root] = {str(path.parents[1]) for path in applied.glob("**/air/*.lance")}
    with connect(root) as connection:
        connection.open_table("flights").alter_columns({"path": "km", "udf": "distance * 1.6", "on_load": True})
    ran = deployer("drift")
    assert ran.code == 2
    assert "compute column km" in ran.out
    assert "distance * 1.6 on load" in ran.out
    assert deployer("drift", "--write-spec").code == 0
    text = (applied / "specs" / "flights.yaml").read_text()
    assert "distance * 1.6" in text
    assert "on_load: true" in text
    assert deployer("drift").code == 0


def test_a_restore_brings_the_definition_back(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(KM))
    assert deployer("up", "--yes").code == 0
    assert deployer("savepoint", "create", "before").code == 0
    declare(applied, spec(KM.replace("1.609344", "1.6")))
    assert deployer("up", "--yes").code == 0
    assert deployer("restore", "before", "--yes").code == 0
    assert columns(deployer)["km"]["sql"] == "distance * 1.609344"
    ran = deployer("drift")
    assert ran.code == 2
    assert "compute column km: distance * 1.6 → distance * 1.609344" in ran.out


def test_a_rebuilt_state_has_the_definitions_and_what_they_computed(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(KM.replace('"distance * 1.609344"', '"distance * 1.609344", on_load: true'), SPEED))
    assert deployer("up", "--yes").code == 0
    assert deployer("ingest", "flights", "flights.parquet").code == 0
    before = deployer("column", "list", "flights", "--json").json
    assert "50% by version" in deployer("column", "list", "flights").out
    shutil.rmtree(applied / "lakes" / "demo" / "_state")
    assert deployer("state", "rebuild", "--yes").code == 0
    assert deployer("column", "list", "flights", "--json").json == before
    assert deployer("preview", "--exit-code").code == 0


def test_other_keys_keep_the_definition(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(KM))
    assert deployer("up", "--yes").code == 0
    before = columns(deployer)["km"]
    declare(applied, spec(KM).replace("row_keys: [flight]", "row_keys: [flight]\nsort_keys: [minutes]"))
    assert deployer("up", "--yes").code == 0
    after = columns(deployer)["km"]
    assert (after["sql"], after["version"]) == (before["sql"], before["version"])
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize("options", [(), ("--copy",)])
def test_an_imported_table_has_its_definitions_and_a_copy_the_values(
    options: tuple[str, ...], deployer: Deployer, applied: Path
) -> None:
    declare(applied, spec(KM))
    assert deployer("up", "--yes").code == 0
    [path] = applied.glob("**/air/*.lance")
    copy = path.parent / "copy.lance"
    rows = dataset(applied).to_table()
    place = rows.schema.get_field_index("km")
    lance.write_dataset(rows.set_column(place, rows.schema.field("km"), pa.array([1.5] * 20)), str(copy))
    ran = deployer("import", "table/air.copied", str(copy), *options)
    assert ran.code == 0, ran.err
    text = "".join(each.read_text() for each in (applied / "specs").glob("**/*.yaml"))
    assert text.count("distance * 1.609344") == (1 if options else 2)
    assert ("the copy does not compute them" in ran.out + ran.err) == bool(options)
    found = deployer("query", "air.copied", "--json").json["rows"]
    assert {row["km"] for row in found} == {1.5}
    assert deployer("validate").code == 0
    assert deployer("preview", "--exit-code").code == 0


BAD = {
    "neither": ((), "needs `--sql` or `--udf`"),
    "both": (("--sql", "1", "--udf", "a:b"), "are both given"),
    "no type": (("--udf", "features.flights:speed", "--inputs", "distance"), "`--type` is missing"),
    "no inputs": (("--udf", "features.flights:speed", "--type", "float64"), "`--inputs` is missing"),
    "no module": (("--udf", "other.module:f", "--inputs", "distance", "--type", "int8"), "no file of module other"),
    "not a name": (("--udf", "speed", "--inputs", "distance", "--type", "int8", "--version", "1"), "not the name of"),
    "unknown": (("--sql", "distanc * 2"), "no field named distanc"),
    "of functions": (("--sql", "distance", "--version", "1"), "`--version` is given with `--sql`"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("applied")
def test_a_column_that_cannot_be_is_refused(case: str, deployer: Deployer) -> None:
    arguments, message = BAD[case]
    ran = deployer("column", "add", "flights", "new", *arguments)
    assert ran.code == 1
    assert message in ran.out + ran.err
    assert deployer("drift").code == 0


def test_a_stale_column_is_noted_and_is_no_change(deployer: Deployer, applied: Path) -> None:
    declare(applied, spec(KM))
    assert deployer("up", "--yes").code == 0
    missing = "column km is not computed yet: a backfill to version"
    assert missing in folded(deployer("preview", "--exit-code").out)
    assert deployer("column", "backfill", "flights", "km").code == 0
    assert "pending_backfills" not in deployer("preview", "--json").json
    declare(applied, spec(KM.replace("1.609344", "1.6")))
    assert "pending_backfills" not in deployer("preview", "--json").json  # the change says it
    assert deployer("up", "--yes").code == 0
    shown = deployer("preview", "--exit-code")
    assert shown.code == 0 and "column km is stale" in folded(shown.out)
    [row] = deployer("preview", "--json").json["pending_backfills"]
    assert (row["table"], row["status"], row["rows"], row["bytes"]) == ("air.flights", "stale", 20, 160)
    assert row["seconds"] > 0
    assert deployer("report", "--html", "lake.html").code == 0
    page = (applied / "lake.html").read_text()
    assert ">stale<" in page and "deployer column backfill air.flights km" in page
    text = spec(KM.replace("1.609344", "1.6"))
    declare(applied, text + "services:\n  backfill: {trigger: {rows: 5}, options: {on_change: recompute}}\n")
    assert "its service BACKFILL does that" in folded(deployer("preview").out)
    assert deployer("up", "--yes").code == 0
    assert deployer("service", "run", "flights", "BACKFILL").code == 0
    assert "is stale" not in deployer("preview").out
    assert deployer("report", "--html", "lake.html").code == 0
    page = (applied / "lake.html").read_text()
    assert "BACKFILL" in page and "after 5 rows" in page and ">stale<" not in page


def folded(text: str) -> str:
    return " ".join(text.split())
