"""The service BACKFILL: what its runs compute, when triggers start it, and what it excludes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import pytest

from deployer.cli.summaries.service_run import print_done
from deployer.columns.backfill import admission
from deployer.columns.fill import run as fill_run
from deployer.compute.running.published_clusters import publish_clusters
from deployer.errors import Conflict, InvalidInput, Refused, ResourcesUnavailable
from deployer.functions import udf
from deployer.live.services import service_spec
from deployer.platform.files.dataclass_json import from_asdict
from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, VARIABLE, TrustedFunctions
from deployer.runs.records import begin_runs, runs_of
from deployer.services.api import management
from deployer.services.kinds.backfill import BACKFILL, on_cluster
from deployer.services.kinds.backfill.on_cluster import require_computable, require_runnable
from deployer.services.kinds.backfill.results import BackfillResult
from deployer.services.kinds.compact import compact_table
from deployer.services.registry import forecast, run_service
from deployer.services.triggers.due import due_services
from deployer.specs.model import Cluster
from deployer.table import Table
from spark_jobs.service import run_scheduled
from tests.columns.backfill.conftest import TRUSTED, with_computed
from tests.columns.backfill.functions import tenfold
from tests.columns.rows import rows, values
from tests.tables.lakes import Lake

SCORE = {i: i * 2 + 1.0 for i in range(30)}


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(VARIABLE, ",".join(TRUSTED))
    yield


def run(lake: Lake, options: dict[str, Any] | None = None) -> BackfillResult:
    return BACKFILL.run(lake.root, "flights", options, engine="driver")


def test_a_run_computes_all_columns(lake: Lake, table: Table) -> None:
    assert "computes km of up to 30 rows in 3 files; computes score of" in forecast(table._newest(), "BACKFILL")
    done = run(lake)
    assert [(each.column, each.rows, each.fragments) for each in done.columns] == [("km", 30, 3), ("score", 30, 3)]
    assert values(table, "score") == SCORE and values(table, "km")[10] == 16.09344
    again = run(lake)
    assert (again.status, again.why) == ("SKIPPED", "all rows are computed")
    assert forecast(table._newest(), "BACKFILL") == "nothing: all rows are computed"
    table.add(with_computed(rows(30, 35)))
    assert [each.rows for each in run(lake).columns] == [5, 5]
    job = table.list_jobs()[0]
    assert (job.job_id, job.columns, job.rows) == (job.run_id, ("km", "score"), 10)
    plan = table.plan_backfill("km", where="1=1")
    assert plan.seconds is not None and plan.seconds > 0
    figures = runs_of(table._newest().state, "BACKFILL")[0].figures
    assert figures.rows_out == 10 and figures.after["columns"] == ["km", "score"]


def test_columns_are_chosen(lake: Lake, table: Table) -> None:
    assert [each.column for each in run(lake, {"columns": ["score"]}).columns] == ["score"]
    assert set(values(table, "km").values()) == {None}
    for names, words in ((["rating"], "column rating, which BACKFILL names, is not a computed column"),):
        with pytest.raises(InvalidInput, match=words):
            run(lake, {"columns": names})


def test_values_of_another_version_stay_unless_they_are_to_be_recomputed(lake: Lake, table: Table) -> None:
    table.backfill("score", udf=tenfold)
    table.add(with_computed(rows(30, 40)))
    options = {"columns": ["score"]}
    assert run(lake, options).columns[0].rows == 10
    then = {i: i * 10.0 if i < 30 else i * 2 + 1.0 for i in range(40)}
    assert values(table, "score") == then and run(lake, options).status == "SKIPPED"
    assert run(lake, options | {"on_change": "recompute"}).columns[0].rows == 30
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(40)}


def test_of_a_merged_file_the_values_of_another_version_stay(lake: Lake, table: Table) -> None:
    table.backfill("score", udf=tenfold)
    table.add(with_computed(rows(30, 40)))
    compact_table(lake.root, "flights", {"min_files": 2})
    assert run(lake, {"columns": ["score"]}).columns
    assert values(table, "score") == {i: i * 10.0 if i < 30 else i * 2 + 1.0 for i in range(40)}
    run(lake, {"columns": ["score"], "on_change": "recompute"})
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(40)}


def test_rows_that_were_written_start_it(lake: Lake, table: Table) -> None:
    management.attach(table._newest(), "BACKFILL", "AUTOMATIC", {"rows": "25", "columns": "score"})
    service = service_spec(table._newest().state.services["BACKFILL"])
    assert (service.options, service.trigger and service.trigger.rows) == ({"columns": ["score"]}, 25)
    due = [each for each in due_services(table._newest()) if each.service == "BACKFILL"]
    assert [each.why for each in due] == ["30 rows written"]
    done = run_service(lake.root, "flights", "backfill", engine="driver")
    assert isinstance(done, BackfillResult) and [each.column for each in done.columns] == ["score"]
    assert not [each for each in due_services(table._newest()) if each.service == "BACKFILL"]


def test_it_does_not_run_beside_a_restore_nor_another_backfill(lake: Lake, table: Table) -> None:
    table_id = table._newest().entry.table_id
    [held] = begin_runs(lake.store, [table_id], "RESTORE", cause="a test")
    with pytest.raises(Conflict, match="of RESTORE is RUNNING"):
        run(lake)
    with pytest.raises(Conflict, match="of RESTORE is RUNNING"):
        table.backfill("km")
    held.finish()
    [held] = begin_runs(lake.store, [table_id], "BACKFILL", cause="a test", target=("km",))
    with pytest.raises(Conflict, match="of BACKFILL for km is RUNNING"):
        run(lake)
    with pytest.raises((Conflict, Refused), match="BACKFILL"):
        run_service(lake.root, "flights", "RESTORE")
    held.finish()


def test_a_function_that_is_not_trusted_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(Refused, match="and not trusted here") as raised:
        run(lake, {"columns": ["score"]})
    assert VARIABLE in raised.value.remedy


SCORED = TRUSTED[0]
ON_CLUSTER = {
    "nothing is trusted": ({}, [SCORED], f"function `{SCORED}` is named by the lake and not trusted on clusters"),
    "its module is not uploaded": (
        {"trusted_functions": SCORED},
        ["features:speed"],
        f"the code of jobs does not have the module of function `{SCORED}`",
    ),
    "it can run": ({"trusted_functions": SCORED}, [SCORED], ""),
}
SMALL = Cluster("small", "emr-serverless", {})


@pytest.mark.parametrize("case", ON_CLUSTER)
def test_a_run_on_a_cluster_is_checked_before_a_job_is_started(case: str, lake: Lake, table: Table) -> None:
    """By what the stack published when it was applied, or by its settings of now."""
    settings, uploaded, message = ON_CLUSTER[case]
    code = {"python": "3.11", "wheel": "w", "archive": "a", "scripts": {}, "functions": uploaded}
    publish_clusters(lake.root, {"clusters": {"small": {}}, "jobs": {"arm64": code}}, settings)
    opened = table._newest()
    require_runnable(opened, SMALL, {"columns": ("km",)})  # SQL needs no trust
    for given in (None, settings):
        if not message:
            require_runnable(opened, SMALL, settings=given)
            continue
        with pytest.raises(Refused, match=message) as raised:
            require_runnable(opened, SMALL, settings=given)
        assert raised.value.remedy


@pytest.mark.parametrize("case", ON_CLUSTER)
def test_a_backfill_of_a_column_on_a_cluster_is_checked_too(case: str, lake: Lake, table: Table) -> None:
    """By what this process trusts, as the job gets that along; nothing is imported."""
    settings, uploaded, _ = ON_CLUSTER[case]
    code = {"python": "3.11", "wheel": "w", "archive": "a", "scripts": {}, "functions": uploaded}
    publish_clusters(lake.root, {"clusters": {"small": {}}, "jobs": {"arm64": code}}, {})
    trusted, opened = TrustedFunctions(frozenset(settings.values())), table._newest()
    require_computable(opened, SMALL, "km", NONE_TRUSTED)  # SQL needs no trust
    message = {"nothing is trusted": f"`{SCORED}` is named by the lake and not trusted here", "it can run": ""}
    if not (words := message.get(case, f"the code of jobs does not have the module of function `{SCORED}`")):
        require_computable(opened, SMALL, "score", trusted)
        return
    with pytest.raises(Refused, match=words) as raised:
        require_computable(opened, SMALL, "score", trusted)
    assert raised.value.remedy
    for name, words in (("rating", "column rating is not computed"), ("scor", "there is no column 'scor'")):
        with pytest.raises(InvalidInput, match=words):
            require_computable(opened, SMALL, name, trusted)


def test_a_packaged_function_for_a_cluster_is_trusted_complete_and_fits(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(UserWarning, match="no types of rating"):
        near = udf(data_type="float64", num_gpus=1)(lambda rating: 1.0)
        table.add_columns({"far": (tenfold, ["rating"]), "near": near})
    monkeypatch.setattr(admission, "live_instance", lambda _: SimpleNamespace(clusters=(SMALL,)))
    every = TrustedFunctions(all_packages=True)
    with pytest.raises(Refused, match="packaged in the lake, and not trusted here"):
        require_computable(table._newest(), SMALL, "far", NONE_TRUSTED)
    require_computable(table._newest(), SMALL, "far", every)
    with pytest.raises(ResourcesUnavailable, match="a worker of cluster small has: 1 GPUs"):
        require_computable(table._newest(), SMALL, "near", every)
    needs = SimpleNamespace(modules=("pluggy",), name="far", num_cpus=1.0, num_gpus=0.0, memory=None)
    monkeypatch.setattr(on_cluster, "function_info", lambda *_: (needs, "ana"))
    with pytest.raises(Refused, match="imports pluggy, which the packages of jobs on clusters do not have") as raised:
        require_computable(table._newest(), SMALL, "far", every)
    assert "`requirements` of the cluster" in raised.value.remedy
    require_computable(table._newest(), replace(SMALL, options={"requirements": ["pluggy"]}), "far", every)


def test_a_packaged_function_is_checked_before_a_job_is_started(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: dict[str, Any] = {"clusters": {"small": {}}}
    options = {"columns": ("far",)}
    table.add_columns({"far": (tenfold, ["rating"])})
    publish_clusters(lake.root, published, {})
    with pytest.raises(Refused, match="not trusted on clusters") as raised:
        require_runnable(table._newest(), SMALL, options)
    assert "deployer:trusted_functions: " in raised.value.remedy
    publish_clusters(lake.root, published, {"trust_udfs": "true"})
    require_runnable(table._newest(), SMALL, options)
    monkeypatch.setattr(on_cluster, "function_info", lambda *_: (SimpleNamespace(modules=("polars_of_no_one",)), "ana"))
    with pytest.raises(Refused, match="imports polars_of_no_one, which the packages of jobs on clusters do not have"):
        require_runnable(table._newest(), SMALL, options)


def test_its_result_is_printed_and_stored(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(lake)
    assert from_asdict(BackfillResult, json.loads(json.dumps(asdict(done)))) == done
    print_done(done)
    assert "air.flights: computed km of 30 rows in 3 fragments" in capsys.readouterr().out


def test_the_job_of_a_schedule_runs_it_once(lake: Lake, table: Table) -> None:
    management.attach(table._newest(), "BACKFILL", "AUTOMATIC", {"schedule": "0 3 * * *", "columns": "km"})
    at = "2027-03-22T03:00:00Z"
    first = run_scheduled(lake.root, "air.flights", "BACKFILL", cluster="nightly", scheduled=at)
    assert first == {"run_id": "backfill-20270322T030000Z", "status": "SUCCEEDED", "why": ""}
    assert values(table, "km")[10] == 16.09344
    again = run_scheduled(lake.root, "air.flights", "BACKFILL", scheduled=at)
    assert again["why"] == "run backfill-20270322T030000Z of this time is SUCCEEDED"


def test_a_run_that_was_cut_off_is_resumed_by_the_next(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It uses the checkpoints of the one before, which had another id."""

    class Stopped(Exception):
        pass

    def fail(*_: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(fill_run, "commit_columns", fail)
        with pytest.raises(Stopped):
            run(lake, {"columns": ["score"]})
    assert set(values(table, "score").values()) == {None}
    monkeypatch.setattr("deployer.columns.backfill.values.ComputedValues.of_fragment", fail)
    assert run(lake, {"columns": ["score"]}).columns[0].rows == 30
    assert values(table, "score") == SCORE
