"""`up` and `ingest` killed while they build indexes: the next run ends in what is declared, with every row once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.cli.main import run
from deployer.datasets.indexes.read import remembered_indexes
from deployer.state import open_store
from tests.crash.test_kill_up import killed
from tests.projects import INSTANCE, make_project, table

pytestmark = pytest.mark.full

INDEXES = """indexes:
  - {columns: [id], kind: btree}
  - {columns: [word], kind: inverted, stem: false}
  - {columns: [place], kind: ivf_pq, num_partitions: 2, num_sub_vectors: 2}
"""
COLUMNS = ("word: string", "place: vector<float32, 4>")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "t.yaml": table("t", *COLUMNS)})
    monkeypatch.chdir(folder)
    return folder


def declare(project: Path, indexes: str) -> None:
    (project / "specs" / "t.yaml").write_text(table("t", *COLUMNS, more=indexes), encoding="utf-8")


def rows(project: Path, start: int, count: int = 400) -> str:
    places = range(start, start + count)
    vectors = pa.array([float(i * 31 % 97 + part) for i in places for part in range(4)], pa.float32())
    data = pa.table(
        {
            "id": pa.array(places, pa.int64()),
            "word": [f"word{i % 7}" for i in places],
            "place": pa.FixedSizeListArray.from_arrays(vectors, 4),
        }
    )
    file = project / f"rows-{start}.parquet"
    pq.write_table(data, file)
    return str(file)


def check_is_as_declared(project: Path, count: int, names: set[str]) -> None:
    root = project / "lakes" / "demo"
    with closing(open_store(root)) as store:
        [entry] = store.instance().tables.values()
        remembered = remembered_indexes(store.table(entry.table_id).properties)
        assert {each.status for each in remembered.values()} <= {"ready"}
    dataset = lance.dataset(str(root / entry.location))
    assert dataset.count_rows() == len(set(dataset.to_table(columns=["id"])["id"].to_pylist())) == count
    assert {each.name for each in dataset.describe_indices()} == names
    fragments = {fragment.fragment_id for fragment in dataset.get_fragments()}
    for index in dataset.describe_indices():
        assert set().union(*(segment.fragment_ids for segment in index.segments)) == fragments
    assert run(["preview", "--exit-code"]) == 0


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("point", ["tables.index.begun", "tables.index.built"])
def test_up_goes_on_with_indexes_where_it_was_killed(project: Path, point: str, number: int) -> None:
    assert run(["up", "--yes"]) == 0
    assert run(["ingest", "air.t", rows(project, 0)]) == 0
    declare(project, INDEXES)
    killed("up", "--yes", at=f"{point}@{number}")
    assert run(["up", "--yes"]) == 0
    check_is_as_declared(project, 400, {"id_btree", "word_inverted", "place_ivf_pq"})


@pytest.mark.parametrize("point", ["tables.index.begun", "tables.index.built"])
def test_up_goes_on_with_an_index_that_takes_the_place_of_another(project: Path, point: str) -> None:
    declare(project, INDEXES)
    assert run(["up", "--yes"]) == 0
    assert run(["ingest", "air.t", rows(project, 0)]) == 0
    declare(project, INDEXES.replace("num_partitions: 2", "num_partitions: 3"))
    killed("up", "--yes", at=point)
    planned = run(["preview", "--exit-code"])
    assert planned == (2 if point == "tables.index.begun" else 0), "parts asked for are all that Lance does not tell"
    assert run(["up", "--yes"]) == 0
    check_is_as_declared(project, 400, {"id_btree", "word_inverted", "place_ivf_pq"})


@pytest.mark.parametrize("point", ["tables.index.begun", "tables.index.renamed"])
def test_up_goes_on_with_an_index_that_is_renamed_and_keeps_its_files(project: Path, point: str) -> None:
    declare(project, INDEXES)
    assert run(["up", "--yes"]) == 0
    assert run(["ingest", "air.t", rows(project, 0)]) == 0
    [dataset] = (project / "lakes" / "demo" / "air").iterdir()
    files = sorted((dataset / "_indices").iterdir())
    declare(project, INDEXES.replace("num_partitions: 2", "num_partitions: 2, name: places"))
    killed("up", "--yes", at=point)
    assert run(["up", "--yes"]) == 0
    check_is_as_declared(project, 400, {"id_btree", "word_inverted", "places"})
    assert sorted((dataset / "_indices").iterdir()) == files


def test_up_goes_on_with_a_dropped_index(project: Path) -> None:
    declare(project, INDEXES)
    assert run(["up", "--yes"]) == 0
    assert run(["ingest", "air.t", rows(project, 0)]) == 0
    declare(project, "indexes:\n  - {columns: [id], kind: btree}\n")
    killed("up", "--yes", at="tables.index.dropped")
    assert run(["up", "--yes"]) == 0
    check_is_as_declared(project, 400, {"id_btree"})


@pytest.mark.parametrize("point", ["tables.index.catching-up", "tables.index.begun", "tables.index.built"])
def test_rows_are_loaded_once_and_indexed_by_the_next_load(project: Path, point: str) -> None:
    declare(project, INDEXES)
    assert run(["up", "--yes"]) == 0
    killed("ingest", "air.t", rows(project, 0), "--job-id", "first", at=point)
    assert run(["ingest", "air.t", rows(project, 0), "--job-id", "first"]) == 0
    assert run(["up", "--yes"]) == 0
    assert run(["ingest", "air.t", rows(project, 400)]) == 0
    check_is_as_declared(project, 800, {"id_btree", "word_inverted", "place_ivf_pq"})
