"""`import`: tables that exist come under management, in place or by copy, and a preview is clean afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Deployer
from tests.projects import make_project

ROWS = pa.table({"id": pa.array([1, 2, 3]), "name": pa.array(["a", None, "b"])})


def write(path: Path, rows: pa.Table = ROWS, version: str = "2.1") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lance.write_dataset(rows, str(path), data_storage_version=version)


def clean(deployer: Deployer) -> bool:
    return deployer("preview", "--exit-code").code == 0


def count(deployer: Deployer, table: str) -> int:
    rows = deployer("sql", f"SELECT count(*) AS n FROM {table}", "--json").json["rows"]  # noqa: S608
    return int(rows[0]["n"])


@pytest.mark.parametrize("applied", [False, True], ids=["before-up", "after-up"])
def test_a_dataset_below_the_root_stays_where_it_is(deployer: Deployer, project: Path, applied: bool) -> None:
    if applied:
        assert deployer("up", "--yes").code == 0
    path = project / "lakes" / "demo" / "trips.lance"
    write(path)
    before = sorted(path.rglob("*.lance"))
    ran = deployer("import", "table/air.trips", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["imported"][0]["location"] == "trips.lance"
    assert sorted(path.rglob("*.lance")) == before
    if applied:
        assert clean(deployer)
    else:  # the tables that were declared before are still to be created, and nothing else is
        assert deployer("preview", "--json").json["counts"]["create"] == 2
        assert deployer("up", "--yes").code == 0
        assert clean(deployer)
    assert count(deployer, "air.trips") == 3
    (project / "more.csv").write_text("id,name\n4,c\n", encoding="utf-8")
    assert deployer("ingest", "air.trips", "more.csv").code == 0
    assert count(deployer, "air.trips") == 4
    assert clean(deployer)


def test_the_last_write_of_an_imported_table_is_that_of_its_rows(deployer: Deployer, project: Path) -> None:
    path = project / "lakes" / "demo" / "trips.lance"
    write(path)
    written = lance.dataset(str(path)).versions()[0]["timestamp"].astimezone(UTC)
    assert deployer("import", "table/air.trips").code == 0
    lance.dataset(str(path)).update_config({"lance.auto_cleanup.interval": "20"})  # no rows come with it
    [found] = (each for each in deployer("tables", "--json").json["tables"] if each["name"] == "air.trips")
    assert datetime.fromisoformat(found["last_write"]) == written
    assert f"{written:%Y-%m-%d %H:%M:%S} UTC" in deployer("describe", "air.trips").out
    write_again = lance.dataset(str(path))
    lance.write_dataset(ROWS, write_again.uri, mode="append")
    [found] = (each for each in deployer("tables", "--json").json["tables"] if each["name"] == "air.trips")
    assert datetime.fromisoformat(found["last_write"]) > written


def test_anything_else_is_copied(deployer: Deployer, project: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "trips.parquet")
    write(tmp_path / "elsewhere" / "old.lance", version="2.0")
    assert deployer("import", "table/air.trips", str(tmp_path / "trips.parquet")).code == 0
    assert deployer("import", "air.old", str(tmp_path / "elsewhere" / "old.lance")).code == 0
    assert deployer("up", "--yes").code == 0
    assert (count(deployer, "air.trips"), count(deployer, "air.old")) == (3, 3)
    assert clean(deployer)


def test_a_copy_has_the_keys_that_are_asked_for(deployer: Deployer, project: Path, tmp_path: Path) -> None:
    pq.write_table(ROWS.take([2, 0, 1]), tmp_path / "trips.parquet")
    command = ("import", "air.trips", str(tmp_path / "trips.parquet"), "--row-keys", "id", "--sort-keys", "name")
    ran = deployer(*command)
    assert ran.code == 0, ran.err
    assert "row_keys" not in ran.err
    assert "row_keys:\n  - id\nsort_keys:\n  - name\n" in (project / "specs" / "trips.yaml").read_text(encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert clean(deployer)
    assert deployer("query", "air.trips", "--keys", "2", "--format", "json").out == '{"id": 2, "name": null}\n'
    assert deployer(*command).code == 0  # all was done before
    assert count(deployer, "air.trips") == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("air.x", "trips.parquet", "--row-keys", "ID"), "no column `ID`, which `row_keys` names; did you mean id?"),
        (("air.x", "trips.parquet", "--row-keys", "name"), "column name has nulls"),
        (("air.x", "lakes/demo/plain.lance", "--row-keys", "id"), "keep their order; add --copy"),
        (("--all", "lakes/demo", "--row-keys", "id"), "--all leaves rows where they are"),
    ],
    ids=["unknown", "null", "in-place", "all"],
)
def test_keys_that_cannot_be_are_refused_before_anything_is_done(
    deployer: Deployer, project: Path, arguments: tuple[str, ...], said: str
) -> None:
    pq.write_table(ROWS, project / "trips.parquet")
    write(project / "lakes" / "demo" / "plain.lance")
    before = sorted(project.rglob("*"))
    ran = deployer("import", *arguments)
    assert ran.code == 1, ran.out
    assert said in " ".join(ran.err.split())
    assert sorted(path for path in project.rglob("*") if ".pulumi" not in path.parts) == before


def test_a_grown_directory_is_declared_in_one_go(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(tmp_path / "project", {})
    monkeypatch.chdir(folder)
    root = tmp_path / "grown"
    described = pa.schema([pa.field("v", pa.list_(pa.float32(), 4), metadata={"description": "An embedding."})])
    write(root / "trips.lance")
    write(root / "Vectors-1.lance", pa.table({"v": [[1.0, 2.0, 3.0, 4.0]]}, schema=described), "2.2")
    lance.write_dataset(ROWS, str(root / "trips.lance"), mode="append")
    ran = deployer("import", "--all", str(root), "--database", "grown", "--json")
    assert ran.code == 0, ran.err
    assert [(each["address"], each["rows"]) for each in ran.json["imported"]] == [
        ("table/grown.vectors_1", 1),
        ("table/grown.trips", 6),
    ]
    assert clean(deployer)
    assert deployer("import", "--all", str(root), "--database", "grown", "--json").json["imported"] == []
    assert deployer("history", "trips").code == 0
    assert "An embedding." in deployer("render").out


def vectors(count: int) -> pa.Table:
    values = pa.array([float(i * 31 % 97 + i % 5) for i in range(count * 8)], pa.float32())
    words = [f"word {i % 7} of {i}" for i in range(count)]
    return pa.table({"id": range(count), "v": pa.FixedSizeListArray.from_arrays(values, 8), "text": words})


def test_indexes_are_declared_and_odd_names_made_fit(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project(tmp_path / "project", {}))
    root = tmp_path / "grown"
    names = ("Ünï çode-1", "2024", "with.dots", "a b", "a-b", "odd columns")
    for name in names:
        write(root / f"{name}.lance", vectors(300).rename_columns(["id", "v", "te`xt" if "odd" in name else "text"]))
    grown = lance.dataset(str(root / "2024.lance"))
    grown.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2, metric="cosine")
    grown.create_scalar_index("text", "INVERTED", with_position=True)
    grown.create_scalar_index("id", "ZONEMAP", name="no spec can declare it")
    lance.write_dataset(vectors(40), grown.uri, mode="append")
    ran = deployer("import", "--all", str(root), "--database", "grown", "--json")
    assert ran.code == 1
    assert [each["address"].partition(".")[2] for each in ran.json["imported"]] == [
        "t_2024",
        "a_b",
        "with_dots",
        "uni_code_1",
    ]
    failed = ran.json["failed"]
    assert failed.keys() == {"a-b.lance", "odd columns.lance"}
    assert f"`deployer import table/grown.OTHER {root}/a-b.lance`" in failed["a-b.lance"]
    assert "the name `te`xt` has a backtick" in failed["odd columns.lance"]
    assert clean(deployer)
    [declared] = [each for each in deployer("render", "--json").json["tables"] if each["name"] == "t_2024"]
    assert [(each["kind"], each["columns"]) for each in declared["indexes"]] == [
        ("inverted", ["text"]),
        ("ivf_pq", ["v"]),
    ]
    assert deployer("import", "table/grown.other", str(root / "a-b.lance")).code == 0
    assert clean(deployer)
    assert count(deployer, "grown.t_2024") == 340


def test_an_import_that_was_cut_off_goes_on(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(tmp_path / "project", {})
    monkeypatch.chdir(folder)
    write(tmp_path / "grown" / "trips.lance")
    assert deployer("import", "--all", str(tmp_path / "grown")).code == 0
    (folder / "specs" / "trips.yaml").unlink()  # what is left when the process ends before the specs are kept
    assert [
        each["address"] for each in deployer("import", "--all", str(tmp_path / "grown"), "--json").json["imported"]
    ] == ["table/main.trips"]
    assert clean(deployer)


def test_one_that_cannot_be_imported_does_not_stop_the_others(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project(tmp_path / "project", {}))
    write(tmp_path / "grown" / "old.lance", version="2.0")
    write(tmp_path / "grown" / "new.lance")
    ran = deployer("import", "--all", str(tmp_path / "grown"), "--json")
    assert ran.code == 1
    assert [each["address"] for each in ran.json["imported"]] == ["table/main.new"]
    assert "version 2.0" in ran.json["failed"]["old.lance"]
    assert clean(deployer)


def test_what_was_imported_is_protected(deployer: Deployer, project: Path) -> None:
    write(project / "lakes" / "demo" / "trips.lance")
    assert deployer("import", "air.trips").code == 0
    (project / "specs" / "trips.yaml").unlink()
    ran = deployer("up", "--yes")
    assert ran.code == 3, ran.out
    assert lance.dataset(str(project / "lakes" / "demo" / "trips.lance")).count_rows() == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("air.flights",), "declare the table already"),
        (("air.none",), "there is neither"),
        (("none",), "is not the name of a table"),
        ((), "give an ADDRESS"),
        (("air.x", "s3://bucket/x"), "from a local disk only"),
        (("--all", "."), "there is no *.lance dataset"),
    ],
    ids=["declared", "missing", "name", "nothing", "remote", "empty"],
)
def test_refusals_say_why_and_change_nothing(
    deployer: Deployer, project: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = sorted(project.rglob("*"))
    ran = deployer("import", *arguments)
    assert ran.code != 0
    assert said in ran.err
    assert sorted(project.rglob("*")) == before


def test_a_dataset_belongs_to_one_table(deployer: Deployer, project: Path) -> None:
    write(project / "lakes" / "demo" / "trips.lance")
    assert deployer("import", "air.trips").code == 0
    ran = deployer("import", "air.again", str(project / "lakes" / "demo" / "trips.lance"))
    assert ran.code == 1
    assert "belongs to table air.trips" in ran.err
    assert not (project / "specs" / "again.yaml").exists()


def test_a_table_that_is_managed_is_not_imported_again(deployer: Deployer, project: Path) -> None:
    assert deployer("up", "--yes").code == 0
    (project / "rows.csv").write_text("id,delay\n1,2\n2,3\n", encoding="utf-8")
    assert deployer("ingest", "air.flights", "rows.csv").code == 0
    (location,) = (project / "lakes/demo/air").glob("flights-*.lance")
    ran = deployer("import", "table/air.flights", str(location))
    assert ran.code == 0, ran.err
    assert ran.out.startswith("table/air.flights is managed already: 2 rows, declared in specs/flights.yaml; nothing")
    assert "without row keys" not in ran.err
    (found,) = deployer("import", "table/air.flights", str(location), "--json").json["imported"]
    assert found["managed"] and found["row_keys"] == ["id"]
