"""Indexes of large tables, which are built in parts as tasks of Spark where the instance declares a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.compute.spark.local import LocalCluster, job_session
from deployer.plan.planning import work_places
from deployer.runs.rewriting import index_builds
from deployer.table import connect
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table

CLUSTERS = "clusters:\n  laptop: {kind: local, cores: 2, memory: 1g}\n"
BTREE = "indexes:\n  - {columns: [id], kind: btree}\n"


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of more than ten rows are large, and a part has ten."""
    monkeypatch.setattr(index_builds, "SMALL_ROWS", 10)
    monkeypatch.setattr(work_places, "SMALL_ROWS", 10)
    monkeypatch.setattr(index_builds, "PART_ROWS", 10)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The sizes of the sessions that were started."""
    found: list[object] = []

    def noting(sizes: Callable[[], LocalCluster]) -> object:
        found.append(sizes())
        return job_session(sizes)

    monkeypatch.setattr(index_builds, "job_session", noting)
    return found


def applied(deployer: Deployer, folder: Path, clusters: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table of 40 rows in four files; the current folder."""
    project = make_project(folder / "project", {"demo.yaml": INSTANCE + clusters, "flights.yaml": table("flights")})
    monkeypatch.chdir(project)
    assert deployer("up", "--yes").code == 0
    for start in range(0, 40, 10):
        pq.write_table(pa.table({"id": pa.array(range(start, start + 10), pa.int64())}), "rows.parquet")
        assert deployer("ingest", "air.flights", "rows.parquet").code == 0
    return project


def segments(name: str = "id_btree") -> int:
    with connect(str(Path("lakes/demo").absolute())) as connection:
        stats = connection.open_table("air.flights").index_stats(name)
    assert stats is not None and stats.num_indexed_rows == 40
    return int(stats.num_indices or 0)


@pytest.mark.spark
@pytest.mark.usefixtures("large", "spark")
def test_up_and_calls_build_parts_with_spark(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[object]
) -> None:
    project = applied(deployer, tmp_path, CLUSTERS, monkeypatch)
    (project / "specs" / "flights.yaml").write_text(table("flights", more=BTREE), encoding="utf-8")
    assert "40 rows are indexed; none is written, in parts on cluster laptop (local)" in deployer("preview").out
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    assert segments() == 2 and len(started) == 1
    with connect(str(Path("lakes/demo").absolute())) as connection:
        flights = connection.open_table("air.flights")
        flights.create_scalar_index("id")
        assert segments() == 2 and len(started) == 2
        flights.create_scalar_index("id", parts=4)
        assert segments() == 4 and len(started) == 3
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    "clusters",
    ["", "clusters:\n  one: {kind: local}\n  two: {kind: local}\n"],
    ids=["no cluster", "several clusters of which none is the default"],
)
def test_this_process_builds_without_a_cluster(
    clusters: str, deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[object]
) -> None:
    project = applied(deployer, tmp_path, clusters, monkeypatch)
    (project / "specs" / "flights.yaml").write_text(table("flights", more=BTREE), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert segments() == 1 and started == []


def test_small_tables_need_no_spark(
    deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[object]
) -> None:
    applied(deployer, tmp_path, CLUSTERS, monkeypatch)
    with connect(str(Path("lakes/demo").absolute())) as connection:
        connection.open_table("air.flights").create_scalar_index("id")
    assert segments() == 1 and started == []
