"""Definitions of computed columns: their forms, identities and versions, and that specs import nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deployer.errors import InvalidSpecs
from deployer.specs import load_lake
from deployer.specs.editing.write import lake_to_yaml
from deployer.specs.rules import Rule
from deployer.specs.serialized.specs import column_from_json, column_to_json
from deployer.specs.sources.modules import MAX_SOURCE
from deployer.specs.types.arrow import arrow_field, arrow_schema, column_of
from deployer.specs.types.computed import (
    Computed,
    ComputedBySql,
    ComputedByUdf,
    computation_order,
    computed_from_json,
    computed_from_note,
    converted,
    definitions_after,
    readers_of,
    succeeding,
    version_of,
    with_renamed_inputs,
)
from deployer.specs.types.types import Column, Scalar
from tests.projects import INSTANCE

SQL = ComputedBySql('distance * "Rate"', ("distance", "Rate"), on_load=True)
UDF = ComputedByUdf("air.features:speed", "", ("distance", "minutes"), "2")
PACKAGED = ComputedByUdf("speed", "5a2f" * 16, ("distance",), "1.0-beta", "first", on_load=True)
FORMS: dict[str, Computed] = {"SQL": SQL, "function": UDF, "package": PACKAGED}


@pytest.mark.parametrize("form", FORMS)
def test_json_and_metadata_give_the_definition_back(form: str) -> None:
    column = Column("x", Scalar("float64"), description="X.", computed=FORMS[form])
    for found in (column_from_json(column_to_json(column)), column_of(arrow_field(column))):
        assert found == column
        assert found.computed is not None
        assert found.computed.inputs == FORMS[form].inputs
    kept = converted(FORMS[form], "distance is int64")
    again = column_of(arrow_field(Column("x", Scalar("float64"), computed=kept))).computed
    assert again is not None
    assert again.identity == kept.identity != FORMS[form].identity


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"sql": 4}', '{"udf": "a:b"}', '{"sql": "a", "udf": "b"}', '{"sql": "a", "inputs": 3}'],
)
def test_metadata_of_others_is_no_definition(text: str) -> None:
    assert computed_from_note(text) is None


def test_a_form_of_neither_is_none() -> None:
    assert computed_from_json({"inputs": ["a"], "on_load": True}) is None


@pytest.mark.parametrize("form", FORMS)
def test_an_identity_has_the_version_that_people_see(form: str) -> None:
    computed = FORMS[form]
    assert version_of(computed.identity) == computed.version
    assert version_of(converted(computed, "other").identity) == computed.version


def test_renamed_inputs_keep_the_identity() -> None:
    renamed = with_renamed_inputs(SQL, {"distance": "miles", "minutes": "time"})
    assert renamed == ComputedBySql('miles * "Rate"', ("miles", "Rate"), on_load=True)
    assert renamed.identity == SQL.identity
    assert with_renamed_inputs(UDF, {"minutes": "time"}).inputs == ("distance", "time")
    assert with_renamed_inputs(UDF, {"other": "x"}) is UDF


def test_what_takes_the_place_of_a_definition_keeps_its_identity_where_values_are_the_same() -> None:
    kept = converted(SQL, "an input was converted")
    assert succeeding(kept, ComputedBySql('DISTANCE*"Rate"')).identity == kept.identity
    assert succeeding(kept, ComputedBySql("distance")).identity == ComputedBySql("distance").identity
    assert succeeding(None, UDF) is UDF
    assert succeeding(SQL, UDF).identity == UDF.identity


def test_columns_are_computed_after_those_that_they_read() -> None:
    assert computation_order({"c": ("b", "x"), "a": ("x",), "b": ("a",)}) == ["a", "b", "c"]
    assert computation_order({"a": ("b",), "b": ("a",), "c": ("a",), "d": ("x",)}) == ["d"]


def test_all_that_reads_a_column_becomes_another_one() -> None:
    definitions: dict[str, Computed] = {
        "a": ComputedBySql("x + 1", ("x",)),
        "b": ComputedBySql("a + y", ("a", "y")),
        "c": ComputedBySql("y", ("y",)),
    }
    assert readers_of(definitions, ["x"]) == ["a", "b"]
    found = definitions_after(definitions, "x", "x is int64")
    assert found == {"a": definitions["a"], "b": definitions["b"]}
    assert all(found[name].identity != definitions[name].identity for name in found)


SPEC = """\
kind: Table
database: air
name: trips
columns:
  - {name: distance, type: int32}
  - {name: minutes, type: int32}
  - {name: km, type: float64, computed: {sql: "distance * 1.6", on_load: true}}
  - {name: far, type: bool, computed: {sql: "km > 1000"}}
  - {name: speed, type: float64, computed: {udf: "air.features:speed", inputs: [distance, minutes]}}
"""


def project(folder: Path, module: str = "air/features.py", text: str = "raise RuntimeError\n") -> Path:
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "specs" / "demo.yaml").write_text(INSTANCE)
    (folder / "specs" / "trips.yaml").write_text(SPEC)
    path = folder / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder


def speed_of(folder: Path) -> ComputedByUdf:
    found = load_lake(folder, Path("specs")).tables[0].columns[-1].computed
    assert isinstance(found, ComputedByUdf)
    return found


@pytest.mark.parametrize(
    "module", ["air/features.py", "air/features/__init__.py", "src/air/features.py", "src/air/features/__init__.py"]
)
def test_the_version_of_a_function_is_a_hash_of_its_modules_text(module: str, tmp_path: Path) -> None:
    first = speed_of(project(tmp_path, module)).version
    assert speed_of(project(tmp_path, module, "raise RuntimeError\r\n")).version == first
    assert speed_of(project(tmp_path, module, "raise RuntimeError()\n")).version != first


def test_a_module_that_a_link_has_outside_of_the_project_is_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("secret = 1\n")
    folder = tmp_path / "project"
    folder.mkdir()
    project(folder)
    (folder / "air" / "features.py").unlink()
    (folder / "air" / "features.py").symlink_to(outside)
    with pytest.raises(InvalidSpecs) as caught:
        speed_of(folder)
    assert [problem.rule for problem in caught.value.problems] == [Rule.COMPUTED_VERSION]
    (folder / "air" / "features.py").unlink()
    (folder / "air" / "features.py").write_bytes(b"#" * (MAX_SOURCE + 1))
    with pytest.raises(InvalidSpecs) as caught:
        speed_of(folder)
    assert [problem.rule for problem in caught.value.problems] == [Rule.COMPUTED_VERSION]


def test_a_printed_lake_is_read_back(tmp_path: Path) -> None:
    lake = load_lake(project(tmp_path), Path("specs"))
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "lake.yaml").write_text(lake_to_yaml(lake))
    again = load_lake(tmp_path, Path("again"))
    assert again.tables[0].columns == lake.tables[0].columns
    assert [each.computed and each.computed.inputs for each in again.tables[0].columns] == [
        None, None, ("distance",), ("km",), ("distance", "minutes"),
    ]  # fmt: skip
    assert arrow_schema(again.tables[0].columns).equals(arrow_schema(lake.tables[0].columns), check_metadata=True)


def test_specs_of_functions_import_neither_these_nor_what_runs_them(tmp_path: Path) -> None:
    project(tmp_path)
    text = (tmp_path / "specs" / "trips.yaml").read_text().splitlines(keepends=True)
    (tmp_path / "specs" / "trips.yaml").write_text("".join(line for line in text if "sql:" not in line))
    program = (
        "import sys; from pathlib import Path; from deployer.specs import load_lake; "
        f"load_lake(Path({str(tmp_path)!r}), Path('specs')); "
        "print([name for name in ('air', 'pyarrow', 'datafusion', 'cloudpickle', 'deployer.functions') "
        "if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert ran.stdout.strip() == "[]"
