"""F7, F15, F21: the workflow that applies what is merged: a plan, its approval by digest, and exactly that plan."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.app.live_state import read_live
from deployer.tables.append import open_appender
from tests.security.repository import PASSPHRASE, VARIABLES, Repository, make_template
from tests.security.workflow_runner import Run

pytestmark = pytest.mark.full

TRIPS = "specs/trips.yaml"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_template(tmp_path_factory.mktemp("repository"))


@pytest.fixture
def repository(template: Path, tmp_path: Path) -> Repository:
    """The lake and Pulumi's state are outside of the runners, as a bucket is."""
    shutil.copytree(template, tmp_path / "github", symlinks=True)
    (tmp_path / "state").mkdir()
    found = Repository(tmp_path / "github", {"PULUMI_BACKEND_URL": (tmp_path / "state").as_uri()})
    instance = (found.work / "specs" / "instance.yaml").read_text(encoding="utf-8")
    found.commit({"specs/instance.yaml": instance.replace("root: lakes/prod", f"root: {tmp_path / 'lake'}")})
    return found


def lake(repository: Repository) -> Path:
    return repository.folder.parent / "lake"


def tables(repository: Repository) -> list[str]:
    return sorted(read_live(str(lake(repository))).tables)


def add_a_row(repository: Repository) -> None:
    row = {"trip_id": [1], "started_at": [datetime(2026, 1, 1, tzinfo=UTC)], "origin": ["a"], "distance": [1.0]}
    with closing(open_appender(str(lake(repository)), "demo.trips")) as appender:
        appender.append(pa.table(row))


def plan_of(repository: Repository, deployment: Run) -> Path:
    return repository.runner.artifacts(deployment.id, "plan") / "prod.plan"


def test_the_plan_is_made_by_a_role_that_reads_and_shown_with_its_digest(repository: Repository) -> None:
    deployment = repository.push(stop_after="plan")
    plan = deployment.jobs["plan"]
    assert plan.result == "success", plan.log
    assert (plan.environment, plan.roles) == ("preview", [VARIABLES["AWS_PREVIEW_ROLE"]])
    assert plan.outputs["changes"] == "true" and plan.outputs["digest"].startswith("sha256:")
    assert "demo.trips" in plan.summary and plan.outputs["digest"] in plan.summary
    assert not any(PASSPHRASE in step.environment.values() for step in plan.steps)
    assert "up" not in deployment.jobs and not lake(repository).exists()


def test_exactly_the_approved_plan_is_applied_by_the_deploying_role(repository: Repository) -> None:
    deployment = repository.push(stop_after="plan")
    repository.approve(deployment)
    up = deployment.jobs["up"]
    assert up.result == "success", up.log
    assert (up.environment, up.roles) == ("production", [VARIABLES["AWS_DEPLOY_ROLE"]])
    assert [step.name for step in up.steps if PASSPHRASE in step.environment.values()] == [
        "Apply the plan that was approved"
    ]
    assert tables(repository) == ["table/demo.trips"]

    again = repository.push()  # nothing is left to do, so nobody is asked
    assert (again.jobs["plan"].outputs["changes"], again.jobs["up"].result) == ("false", "skipped")


def tampered(plan: Path) -> None:
    """Another plan of the same project, valid in itself."""
    from deployer.plan.saved import file as plan_file

    document = json.loads(plan.read_text(encoding="utf-8"))
    document["desired"]["tables"] = []
    document["checksum"] = plan_file._checksum(document)
    plan.write_text(json.dumps(document), encoding="utf-8")


def other_bytes(plan: Path) -> None:
    plan.write_bytes(plan.read_bytes() + b"\n")


@pytest.mark.parametrize("change", [tampered, other_bytes, Path.unlink], ids=["another plan", "other bytes", "gone"])
def test_another_plan_than_the_approved_one_is_not_applied(
    repository: Repository, change: Callable[[Path], None]
) -> None:
    deployment = repository.push(stop_after="plan")
    change(plan_of(repository, deployment))
    repository.approve(deployment)
    assert deployment.jobs["up"].result == "failure" and not lake(repository).exists(), deployment.jobs["up"].log


def test_a_plan_that_moved_is_not_applied(repository: Repository) -> None:
    first, second = repository.push(stop_after="plan"), repository.push(stop_after="plan")
    repository.approve(first)
    assert tables(repository) == ["table/demo.trips"]
    repository.approve(second)
    up = second.jobs["up"]
    assert up.result == "failure" and "changed since it was made; nothing was applied" in up.log
    assert "run all jobs again" in up.summary


def test_destroying_takes_a_run_by_hand_that_names_the_address(repository: Repository) -> None:
    repository.commit({"policies/rules.yaml": "kind: Policy\nrule: descriptions\nenforcement: advisory\n"})
    repository.approve(repository.push(stop_after="plan"))
    add_a_row(repository)
    repository.commit({TRIPS: None})
    refused = repository.push()
    assert refused.jobs["plan"].result == "failure" and "refused" in refused.jobs["plan"].summary
    assert refused.jobs["up"].result == "skipped" and tables(repository) == ["table/demo.trips"]
    allowed = repository.dispatch(allow_destroy="table/demo.trips")
    assert allowed.conclusion == "success" and tables(repository) == [], allowed.jobs["up"].log


@pytest.mark.parametrize(
    "given",
    ["$(touch {0}) `touch {0}`", "'; touch {0} #\"; touch {0}", "--help *", "x\n::set-output name=digest::y"],
)
def test_the_addresses_are_words_and_never_code(repository: Repository, tmp_path: Path, given: str) -> None:
    deployment = repository.dispatch(allow_destroy=given.format(tmp_path / "trace"))
    plan = deployment.jobs["plan"]
    assert not (tmp_path / "trace").exists() and deployment.jobs["up"].result == "skipped"
    assert plan.result == "failure" and not [line for step in plan.steps for line in step.commands], plan.log


@pytest.mark.parametrize("missing", ["AWS_PREVIEW_ROLE", "AWS_DEPLOY_ROLE", "main"])
def test_nothing_runs_without_roles_or_from_another_branch(repository: Repository, missing: str) -> None:
    repository.runner.variables = {name: value for name, value in VARIABLES.items() if name != missing}
    deployment = repository.dispatch("refs/heads/other" if missing == "main" else "refs/heads/main", allow_destroy="")
    assert {job.result for job in deployment.jobs.values()} == {"skipped"}
