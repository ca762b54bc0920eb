"""Changes of keys and builds of indexes on the cluster on AWS, from end to end: `up` against moto, the jobs run as they
were submitted."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from deployer.app.stack.engine import engine_for
from deployer.app.stack.state import stack_outputs
from deployer.app.workspace import open_workspace
from deployer.cli.console import progress_display
from deployer.cli.main import run as run_command
from deployer.cli.options import DEFAULT_STACK
from deployer.compute.running.published_clusters import FILE
from deployer.compute.running.remote_rewrite import rewrite_on
from deployer.compute.running.table_jobs import cluster_of, connected
from deployer.datasets.storage.options import objects_at
from deployer.engine import StackRef, read_project
from deployer.engine.embedded import EmbeddedEngine
from deployer.errors import EngineFailed, Interrupted, Refused
from deployer.plan.planning import work_places
from deployer.provider.resources.deletions import DELETIONS_VARIABLE
from deployer.provider.resources.run_context import OUTPUTS_VARIABLE
from deployer.runs.rewriting import index_builds
from deployer.state import open_store
from deployer.state.model.entities import TableState
from deployer.table import connect
from deployer.tables.inspect.recorded import recorded_table
from tests.aws_provider.install import install_aws_provider
from tests.cli.conftest import Deployer
from tests.compute.aws_runs import runs_of
from tests.compute.runner import runner
from tests.projects import make_project, table
from tests.stacks.conftest import empty
from tests.wheelhouse import trust_wheelhouse

pytestmark = pytest.mark.full  # each job starts a Java of its own

BUCKET = "remote-rewrite-lakes"
ROOT = f"s3://{BUCKET}/demo"
INSTANCE = f"""kind: Instance
name: demo
root: {ROOT}
engine: embedded
clusters:
  default: {{kind: emr-serverless, release: emr-7.12.0, cores: 2, memory: 1g, max_workers: 2}}
  big: {{kind: emr, release: emr-7.12.0, instance_type: r7g.xlarge, lifetime: long}}
"""
FRESH = "  fresh: {kind: emr-serverless, release: emr-7.12.0, cores: 2, memory: 1g, max_workers: 2}\n"


@pytest.fixture(scope="module")
def made(aws: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with clusters and a table of 300 rows, applied."""
    empty(aws)
    folder = make_project(
        tmp_path_factory.mktemp("remote") / "project",
        {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32")},
    )
    install_aws_provider(folder)
    trust_wheelhouse(folder)
    assert run_command(["up", "--yes", "--project", str(folder)]) == 0
    file = folder / "rows.csv"
    file.write_text("id,delay\n" + "".join(f"{i},{i * 7 % 300}\n" for i in range(300)), encoding="utf-8")
    assert run_command(["ingest", "air.flights", str(file), "--project", str(folder)]) == 0
    return folder


@pytest.fixture
def project(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def running(aws: str, tmp_path: Path) -> Iterator[list[str]]:
    failures: list[BaseException] = []
    with runner(aws, tmp_path / "cluster", BUCKET, failures) as commands:
        yield commands
    assert not failures


def declare(project: Path, *splits: int) -> None:
    """Sorts the table by its delays, and parts it by the row key at these points."""
    points = "".join(f"    - [{point}]\n" for point in splits)
    more = f"sort_keys: [delay]\npartitions:\n  split_points:\n{points}"
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", more=more), encoding="utf-8")


def state() -> TableState:
    with closing(open_store(ROOT)) as store:
        [entry] = store.instance().tables.values()
        return store.table(entry.table_id)


def states_of_runs(title: str = "rewrite air.flights") -> list[str]:
    [application] = [
        each for each in boto3.client("emr-serverless").list_applications()["applications"] if "default" in each["name"]
    ]
    found = [run for run in runs_of(application["id"]) if run["name"].startswith(title)]
    return [str(run["state"]) for run in sorted(found, key=lambda run: run["createdAt"])]


def check_rows(deployer: Deployer) -> None:
    rows: list[Any] = deployer("query", "air.flights", "--limit", "1000", "--json").json["rows"]
    assert sorted((row["id"], row["delay"]) for row in rows) == [(i, i * 7 % 300) for i in range(300)]
    assert deployer("preview", "--exit-code").code == 0


def test_a_rewrite_that_is_killed_there_is_resumed_by_the_next_up(
    project: Path, deployer: Deployer, running: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(project, 100, 200)
    why = [change["why"] for change in deployer("preview", "--json").json["resources"][0]["changes"]]
    assert why and all(each.endswith(", on cluster default (emr-serverless)") for each in why), why
    before = state().dataset
    with monkeypatch.context() as patched:
        patched.setenv("DEPLOYER_FAILPOINT", "tables.rewrite.range-written@2")  # of the driver: the process of the job
        ran = deployer("up", "--yes")
    assert ran.code == 1 and "the run failed" in ran.err, ran.err
    [unfinished] = [each for each in state().datasets if each.status == "writing"]
    assert states_of_runs() == ["FAILED"] and state().dataset == before
    written = objects(unfinished.location)
    monkeypatch.setattr(progress_display, "INTERVAL", 0.0)  # each step is shown, however short the job is
    ran = deployer("up", "--yes", "--json")
    assert ran.code == 0, ran.err
    assert '"doing": "job run' in ran.err and '(RUNNING)"' in ran.err
    assert state().dataset == unfinished.number and written and written <= objects(unfinished.location)
    assert states_of_runs() == ["FAILED", "SUCCESS"] and len(running) == 2
    check_rows(deployer)


def objects(location: str) -> set[str]:
    """The data files of a dataset."""
    listed = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"demo/{location}/data/").get("Contents", [])
    return {each["Key"] for each in listed}


@pytest.mark.slow
def test_ctrl_c_cancels_the_job_and_the_next_up_runs_it_again(
    aws: str, project: Path, deployer: Deployer, tmp_path: Path
) -> None:
    declare(project, 150)
    before = len(states_of_runs())

    over = threading.Event()

    def interrupt() -> None:
        while len(states_of_runs()) == before:
            if over.wait(0.1):
                return
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    ran = deployer("up", "--yes")
    over.set()
    thread.join()
    assert ran.code == Interrupted.exit_code and "was asked to end; the table is unchanged" in ran.err, ran.err
    assert states_of_runs()[before:] == ["CANCELLED"]
    assert deployer("preview", "--exit-code").code == 2
    failures: list[BaseException] = []
    with runner(aws, tmp_path / "cluster", BUCKET, failures) as commands:
        ran = deployer("up", "--yes")
    assert ran.code == 0 and not failures, ran.err
    assert len(commands) == 1 and states_of_runs()[before:] == ["CANCELLED", "SUCCESS"]
    check_rows(deployer)


@pytest.mark.slow
def test_a_rewrite_runs_as_a_step_of_emr(project: Path, running: list[str]) -> None:
    workspace = open_workspace(project, DEFAULT_STACK, None)
    lake = workspace.lake()
    outputs = stack_outputs(workspace, engine_for(workspace, lake))
    [big] = [each for each in lake.instance.clusters if each.name == "big"]
    told: list[str] = []
    with closing(open_store(ROOT)) as store:
        [entry] = store.instance().tables.values()
        spec = recorded_table(store, ROOT, entry).spec
        wanted = replace(spec, row_keys=("delay", "id"), sort_keys=(), split_points=((50, 0),))
        rewrite_on(
            connected(lake.instance, big, outputs),
            store,
            ROOT,
            entry.table_id,
            wanted,
            lambda now: told.append(now.doing),
        )
        assert recorded_table(store, ROOT, store.instance().tables[entry.table_id]).spec.row_keys == ("delay", "id")
    assert len(running) == 1 and any("(cluster big): running (RUNNING)" in each for each in told)


def test_a_cluster_that_the_stack_has_not_made_yet_rewrites_nothing(project: Path) -> None:
    instance = open_workspace(project, DEFAULT_STACK, None).lake().instance
    assert cluster_of(instance, {}) is None and cluster_of(None, {"clusters": {"default": {}}}) is None
    found = cluster_of(instance, {"clusters": {"default": {}, "big": {}}})
    assert found is not None and found.name == "default"


def test_a_run_without_a_plan_rewrites_on_the_published_cluster(
    project: Path, deployer: Deployer, running: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain `pulumi up`, by the engine that runs here: its provider is a process that knows no plan."""
    for variable in (DELETIONS_VARIABLE, OUTPUTS_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    declare(project, 120)
    stack, before = StackRef(read_project(project), DEFAULT_STACK), state().dataset
    published = objects_at(ROOT).get(FILE)
    objects_at(ROOT).delete([FILE])
    with pytest.raises(
        EngineFailed, match="to be rewritten on cluster default, and the address of that cluster is not published"
    ):
        EmbeddedEngine({}).up(stack)
    assert state().dataset == before
    objects_at(ROOT).put(FILE, published)
    EmbeddedEngine({}).up(stack)
    assert state().dataset != before and states_of_runs()[-1] == "SUCCESS" and len(running) == 1
    check_rows(deployer)


@pytest.mark.slow
def test_indexes_of_a_large_table_are_built_there(
    project: Path, deployer: Deployer, running: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table has 300 rows, and is large beyond ten."""
    monkeypatch.setattr(index_builds, "SMALL_ROWS", 10)
    monkeypatch.setattr(work_places, "SMALL_ROWS", 10)
    file = project / "specs" / "flights.yaml"
    before = file.read_text(encoding="utf-8")
    file.write_text(before + "indexes:\n  - {columns: [delay], kind: btree}\n", encoding="utf-8")
    found = deployer("preview", "--json").json["resources"]
    [why] = [change["why"] for each in found for change in each["changes"]]
    assert why == "300 rows are indexed; none is written, on cluster default (emr-serverless)"
    with monkeypatch.context() as patched:
        patched.setenv("DEPLOYER_FAILPOINT", "tables.index.begun")
        ran = deployer("up", "--yes")
    assert ran.code == 1 and "the run failed" in ran.err, ran.err
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    assert states_of_runs("build index delay_btree of air.flights") == ["FAILED", "SUCCESS"] and len(running) == 2
    with connect(ROOT) as connection:
        flights = connection.open_table("air.flights")
        flights.add(pa.table({"id": pa.array(range(300, 310), pa.int64()), "delay": pa.array([1] * 10, pa.int32())}))
        flights.create_scalar_index("delay", parts=2)
        stats = flights.index_stats("delay_btree")
        assert stats is not None and (stats.num_indices, stats.num_unindexed_rows) == (2, 0)
        flights.delete("id >= 300")
        published = objects_at(ROOT).get(FILE)
        objects_at(ROOT).delete([FILE])
        with pytest.raises(
            Refused, match="an index of the table is to be built on cluster default, and the address of that cluster"
        ):
            flights.create_scalar_index("delay")
        objects_at(ROOT).put(FILE, published)
    assert len(running) == 3
    check_rows(deployer)
    file.write_text(before, encoding="utf-8")
    assert deployer("up", "--yes").code == 0


def test_a_plan_says_what_makes_the_cluster_before_a_rewrite(project: Path, deployer: Deployer) -> None:
    (project / "specs" / "demo.yaml").write_text(INSTANCE.partition("  default:")[0] + FRESH, encoding="utf-8")
    declare(project, 140)

    def reasons() -> set[str]:
        found = deployer("preview", "--json").json["resources"]
        changes = [change for each in found if each["address"] == "table/air.flights" for change in each["changes"]]
        return {change["why"].partition(", on ")[2] for change in changes}

    assert reasons() == {
        "this machine, as the stack has not made the declared cluster yet; "
        "`deployer up --target instance/demo` makes it first"
    }
    ran = deployer("up", "--yes", "--target", "instance/demo")
    assert ran.code == 0, ran.err
    assert reasons() == {"cluster fresh (emr-serverless)"}
