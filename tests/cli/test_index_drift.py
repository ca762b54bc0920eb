"""Indexes that a program created: `preview` and `drift` show them, and `drift --write-spec` declares them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.platform.system.processes import local_user
from deployer.table import connect
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run, table

COLUMNS = ("word: string", "place: vector<float32, 32>", "labels: list<string>")


def load() -> None:
    values = pa.array([float(place * 31 % 97 + part) for place in range(300) for part in range(32)], pa.float32())
    data = {
        "id": pa.array(range(300), pa.int64()),
        "word": [f"word{place % 7}" for place in range(300)],
        "place": pa.FixedSizeListArray.from_arrays(values, 32),
        "labels": [[f"l{place % 3}"] for place in range(300)],
    }
    pq.write_table(pa.table(data), "rows.parquet")
    run("ingest", "air.t", "rows.parquet")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of 300 rows, applied; the current folder."""
    folder = applied_project(tmp_path / "project", {"demo.yaml": INSTANCE, "t.yaml": table("t", *COLUMNS)}, load)
    monkeypatch.chdir(folder)
    return folder


def create_all(project: Path) -> None:
    with closing(connect(str(project / "lakes" / "demo"))) as connection:
        opened = connection.open_table("t")
        opened.create_index("cosine", vector_column_name="place", index_type="IVF_HNSW_PQ", sample_rate=64)
        opened.create_fts_index("word")
        opened.create_scalar_index("labels", index_type="LABEL_LIST")
        opened.create_scalar_index("id", parts=2)


WORDS = "word_inverted: inverted on word (stem off, remove_stop_words off, ascii_folding off, with_position on)"
SHOWN = (
    "id_btree: btree on id",
    "labels_label_list: label_list on labels",
    "place_ivf_hnsw_pq: ivf_hnsw_pq on place (metric cosine, ef_construction 300, sample_rate 64)",
    WORDS,
)
DECLARED = """indexes:
  - kind: btree
    columns: [id]
  - kind: label_list
    columns: [labels]
  - kind: ivf_hnsw_pq
    columns: [place]
    metric: cosine
    ef_construction: 300
    sample_rate: 64
  - kind: inverted
    columns: [word]
    stem: false
    remove_stop_words: false
    ascii_folding: false
    with_position: true
"""


def test_indexes_of_programs_are_drift_until_they_are_declared(deployer: Deployer, project: Path) -> None:
    create_all(project)
    preview = deployer("preview", "--exit-code")
    assert preview.code == 2
    for each in SHOWN:
        assert f"drop index {each}" in preview.out.replace("\n", " "), preview.out
    found = deployer("drift")
    assert found.code == 2
    for each in SHOWN:
        assert f"create index {each}  " in found.out, found.out
    assert "plain Lance" not in found.out and "somebody" not in found.out
    described = deployer("describe", "air.t", "--json").json["indexes"]
    ran = deployer("drift", "--write-spec")
    assert ran.code == 0, ran.out + ran.err
    assert (project / "specs" / "t.yaml").read_text(encoding="utf-8").endswith(DECLARED)
    assert (deployer("drift").code, deployer("preview", "--exit-code").code) == (0, 0)
    assert deployer("up", "--yes").code == 0
    assert deployer("ingest", "air.t", str(project / "rows.parquet"), "--job-id", "again").code == 0
    assert (deployer("drift").code, deployer("preview", "--exit-code").code) == (0, 0)
    again = deployer("describe", "air.t", "--json").json["indexes"]
    assert [(each["name"], each["kind"], each["parameters"]) for each in described] == [
        (each["name"], each["kind"], each["parameters"]) for each in again
    ]


def test_who_created_an_index_is_known_after_it_was_brought_up_to_date(deployer: Deployer, project: Path) -> None:
    create_all(project)
    assert deployer("rows", "update", "air.t", "--set", "word='x'", "--where", "id < 9", "--yes").code == 0
    found = deployer("drift")
    assert found.code == 2
    for each in SHOWN:
        assert f"create index {each}  {local_user()}, " in found.out, found.out
    location = next((project / "lakes" / "demo").glob("air/*.lance"))
    lance.dataset(location).create_scalar_index("id", "BITMAP", name="id_btree", replace=True)
    assert "create index id_btree: bitmap on id  somebody, " in deployer("drift").out


def test_up_drops_them_once_it_has_shown_that(deployer: Deployer, project: Path) -> None:
    create_all(project)
    ran = deployer("up", "--yes")
    assert ran.code == 0
    assert all(f"drop index {each.partition(':')[0]}" in ran.out.replace("\n", " ") for each in SHOWN)
    assert deployer("describe", "air.t", "--json").json["indexes"] == []
    assert deployer("preview", "--exit-code").code == 0
