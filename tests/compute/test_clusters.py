"""Which declared cluster a job runs on, and that rewrites and loads run on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.cli.main import run
from deployer.compute.clusters import local_cluster
from deployer.compute.spark.local import LocalCluster
from deployer.errors import DeployerError, InvalidInput, NotFound, Refused
from deployer.specs.model import Cluster
from deployer.tables.evolution.rewrite import load as rewrite_load
from tests.projects import INSTANCE, make_project, table

SMALL = Cluster("small", "local", {"cores": 1, "memory": "1g"})
LARGE = Cluster("large", "local", {"cores": 8, "memory": "16g"})
DEFAULT = Cluster("default", "local", {"cores": 4})
REMOTE = Cluster("remote", "emr-serverless", {"release": "emr-7.12.0"})

CHOSEN: dict[str, tuple[tuple[Cluster, ...], str | None, LocalCluster]] = {
    "none declared": ((), None, LocalCluster()),
    "the only one": ((SMALL,), None, LocalCluster(1, "1g")),
    "the only local one": ((REMOTE, SMALL), None, LocalCluster(1, "1g")),
    "the one called default": ((SMALL, DEFAULT, LARGE), None, LocalCluster(4)),
    "by name": ((SMALL, DEFAULT, LARGE), "large", LocalCluster(8, "16g")),
}
REFUSED: dict[str, tuple[tuple[Cluster, ...], str | None, type[DeployerError], str]] = {
    "several": ((SMALL, LARGE), None, InvalidInput, "call one of them default, or choose one with `--cluster"),
    "no such name": ((SMALL, LARGE), "smal", NotFound, "no cluster 'smal' is declared; there are: small, large"),
    "none and a name": ((), "small", NotFound, "there are: none"),
    "another kind by name": ((SMALL, REMOTE), "remote", Refused, "cluster remote is of kind emr-serverless"),
    "another kind alone": ((REMOTE,), None, Refused, r"none of remote \(emr-serverless\) is used unless you name it"),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_cluster_is_chosen(name: str) -> None:
    clusters, given, expected = CHOSEN[name]
    assert local_cluster(clusters, given, "instance/demo") == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_chosen_is_said(name: str) -> None:
    clusters, given, error, message = REFUSED[name]
    with pytest.raises(error, match=message) as raised:
        local_cluster(clusters, given, "instance/demo")
    assert str(raised.value).startswith("instance/demo: ")


CLUSTERS = """clusters:
  small: {kind: local, cores: 1, memory: 1g}
  default: {kind: local, cores: 2, memory: 1g}
  remote: {kind: emr-serverless, release: emr-7.12.0}
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table of ten rows; every rewrite is too large for one process."""
    specs = {"demo.yaml": INSTANCE + CLUSTERS, "t.yaml": table("t", "value: int64")}
    folder = make_project(tmp_path / "project", specs)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(rewrite_load, "SMALL_ROWS", 0)
    pq.write_table(pa.table({"id": range(10), "value": range(10)}), folder / "rows.parquet")
    assert run(["up", "--yes"]) == 0
    assert run(["ingest", "air.t", "rows.parquet"]) == 0
    return folder


@pytest.fixture
def asked(spark: Any, monkeypatch: pytest.MonkeyPatch) -> list[LocalCluster | None]:
    """The sizes that jobs ask for. They get the session of the tests, whose sizes are fixed."""
    found: list[LocalCluster | None] = []

    def session(cluster: LocalCluster | None = None) -> Any:
        found.append(cluster)
        return spark

    monkeypatch.setattr("spark_jobs.rewrite.local_session", session)
    monkeypatch.setattr("deployer.compute.spark.local.local_session", session)
    return found


@pytest.mark.spark
def test_up_rewrites_on_the_declared_cluster(loaded: Path, asked: list[LocalCluster | None]) -> None:
    spec = table("t", "value: int64", more="sort_keys: [value]\n")
    (loaded / "specs" / "t.yaml").write_text(spec, encoding="utf-8")
    assert run(["up", "--yes"]) == 0
    assert asked == [LocalCluster(2, "1g")]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        pytest.param((), LocalCluster(2, "1g"), id="default"),
        pytest.param(("--cluster", "small"), LocalCluster(1, "1g"), id="named"),
    ],
)
def test_ingest_runs_on_the_cluster(
    arguments: tuple[str, ...], sizes: LocalCluster, loaded: Path, asked: list[LocalCluster | None]
) -> None:
    assert run(["ingest", "air.t", str(loaded / "rows.parquet"), "--engine", "spark", *arguments]) == 0
    assert asked == [sizes]


def test_a_cluster_that_the_stack_has_not_made_is_said(loaded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ingest", "air.t", "s3://bucket/rows.parquet", "--cluster", "remote"]) == NotFound.exit_code
    assert "the stack has made no cluster remote yet; run `deployer up`" in capsys.readouterr().err


def test_a_small_load_needs_no_cluster(loaded: Path) -> None:
    remote = "clusters:\n  remote: {kind: emr-serverless, release: emr-7.12.0}\n"
    (loaded / "specs" / "demo.yaml").write_text(INSTANCE + remote, encoding="utf-8")
    assert run(["ingest", "air.t", "rows.parquet"]) == 0
    assert run(["ingest", "air.t", "rows.parquet", "--engine", "spark"]) == Refused.exit_code
