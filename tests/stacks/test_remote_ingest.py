"""A load on EMR Serverless from end to end: the stack applied to moto, the job started by the command and run as it was
submitted, its rows in Lance on S3, its state in DynamoDB. And the ends that the runs of a command can come to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.cli.main import run as run_command
from deployer.cli.remote import run as remote_run
from deployer.compute.jobs.status import JobStatus, remembered, write_status
from deployer.compute.running import follow as following
from deployer.errors import Interrupted, Refused
from deployer.functions import udf
from deployer.platform.aws import calls as aws_calls
from deployer.platform.system.clock import Clock
from deployer.runs import remote
from deployer.runs import wait as waiting
from deployer.services import TableServicesClient
from deployer.specs.types.arrow import computed_of
from deployer.specs.types.computed import ComputedByUdf
from deployer.table import connect
from spark_jobs import service as service_program
from tests.aws_provider.install import install_aws_provider
from tests.cli.conftest import Deployer
from tests.compute.aws_runs import Hands, runs_of, set_state
from tests.compute.conftest import PutBetween, faulty  # noqa: F401 (fixture)
from tests.compute.runner import runner
from tests.projects import make_project, table
from tests.stacks.conftest import empty
from tests.wheelhouse import trust_wheelhouse

pytestmark = pytest.mark.full


@udf(version="1")
def twice(id: int) -> int:
    return id * 2


BUCKET = "remote-ingest-lakes"
ROOT = f"s3://{BUCKET}/demo"
INSTANCE = f"""kind: Instance
name: demo
root: {ROOT}
engine: embedded
clusters:
  small: {{kind: emr-serverless, release: emr-7.12.0, cores: 2, memory: 1g, max_workers: 2}}
  big: {{kind: emr, release: emr-7.12.0, instance_type: r7g.xlarge, lifetime: long}}
  once: {{kind: emr, release: emr-7.12.0, instance_type: r7g.xlarge}}
"""


@pytest.fixture(scope="module")
def made(aws: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a cluster, applied."""
    empty(aws)
    folder = make_project(
        tmp_path_factory.mktemp("remote") / "project",
        {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32")},
    )
    install_aws_provider(folder)
    trust_wheelhouse(folder)
    assert run_command(["up", "--yes", "--project", str(folder)]) == 0
    return folder


@pytest.fixture
def project(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    """The clock of who follows; what happens to a run happens while that sleeps."""
    found = Hands()
    monkeypatch.setattr(remote_run, "Clock", found.clock)
    return found


@pytest.fixture
def running(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.setattr(following, "PAUSE", 0.2)
    failures: list[BaseException] = []

    def sleep(seconds: float) -> None:
        assert not failures, failures  # nothing would ever end
        time.sleep(seconds)

    monkeypatch.setattr(remote_run, "Clock", lambda: Clock(sleep=sleep))
    with runner(aws, tmp_path / "cluster", BUCKET, failures) as commands:
        yield commands


def put(name: str, text: str) -> str:
    boto3.client("s3").put_object(Bucket=BUCKET, Key=f"demo/incoming/{name}", Body=text.encode())
    return f"{ROOT}/incoming/{name}"


def load(job_id: str, source: str = f"{ROOT}/incoming/x.csv", *more: str) -> tuple[str, ...]:
    return ("ingest", "air.flights", source, "--cluster", "small", "--job-id", job_id, *more)


def runs() -> list[dict[str, Any]]:
    found = boto3.client("emr-serverless").list_applications()["applications"]
    return [run for each in found if each["name"].startswith("deployer-demo-small") for run in runs_of(each["id"])]


def run_of(job_id: str) -> dict[str, Any]:
    (found,) = [run for run in runs() if run["name"] == f"ingest air.flights {job_id}"]
    return found


def test_rows_are_loaded_there_and_found_here(project: Path, deployer: Deployer, running: list[str]) -> None:
    source = put("rows.csv", "id,delay\n1,5\n2,-3\n3,\n")
    ran = deployer(*load("monday", source, "--engine", "spark"))
    assert ran.code == 0, ran.err
    assert "air.flights: 3 rows added" in ran.out and "job monday" in ran.out
    assert "running (RUNNING)" in ran.err
    assert [tuple(row.values()) for row in deployer("query", "air.flights", "--json").json["rows"]] == [
        (1, 5),
        (2, -3),
        (3, None),
    ]
    again = deployer(*load("monday", source, "--engine", "spark"), "--json")
    assert (again.code, again.json["rows"]) == (0, 3)  # the same start is the same run
    followed = deployer("follow", "monday")
    assert followed.code == 0 and "air.flights: 3 rows added" in followed.out
    assert len(running) == 1 and "--engine=spark" in running[0]
    here = deployer("ingest", "air.flights", source, "--job-id", "monday")  # the state knows the job by its id
    assert "job monday was done before" in here.out

    bad = put("bad.csv", "id,delay\n4,x\n")
    there, here = deployer(*load("tuesday", bad)), deployer("ingest", "air.flights", bad)
    assert there.code == here.code == Refused.exit_code
    error = [line for line in here.err.splitlines() if line.startswith("error: ")]
    assert error and error[0] in there.err.splitlines()
    assert deployer("query", "air.flights", "--json").json["rows"] and run_of("tuesday")["state"] == "FAILED"


def test_a_cluster_of_the_run_loads_files_of_this_machine_and_sets_bad_rows_aside(
    project: Path, tmp_path: Path, deployer: Deployer, running: list[str]
) -> None:
    file = tmp_path / "own.csv"
    file.write_text("id,delay\n50,1\n51,x\n", encoding="utf-8")
    aside = f"{ROOT}/aside/bad.jsonl"
    command = ("ingest", "air.flights", str(file), "--cluster", "once", "--job-id", "wednesday")
    ran = deployer(*command, "--upload", "--bad-rows", aside)
    assert ran.code == 0, ran.err
    assert "air.flights: 1 row added" in ran.out and "1 bad row was set aside" in ran.out
    assert "(cluster once): running (RUNNING)" in ran.err
    s3 = boto3.client("s3")
    (problem,) = s3.get_object(Bucket=BUCKET, Key="demo/aside/bad.jsonl")["Body"].read().splitlines()
    assert json.loads(problem)["delay"] == "x" and f"{ROOT}/_uploads/" in running[0]
    assert not s3.list_objects_v2(Bucket=BUCKET, Prefix="demo/_uploads/").get("Contents")
    file.write_text("id,delay\n60,1\n", encoding="utf-8")
    changed = deployer(*command, "--upload")
    assert changed.code == 1 and "job wednesday was done before with other files: it loaded s3:" in changed.err
    assert len(running) == 1 and not s3.list_objects_v2(Bucket=BUCKET, Prefix="demo/_uploads/").get("Contents")


def test_rows_are_loaded_by_steps_of_emr(project: Path, deployer: Deployer, running: list[str]) -> None:
    source = put("big.csv", "id,delay\n100,1\n")
    command = ("ingest", "air.flights", source, "--cluster", "big", "--job-id", "on-big")
    ran = deployer(*command)
    assert ran.code == 0, ran.err
    assert "air.flights: 1 row added" in ran.out and "(cluster big): running (RUNNING)" in ran.err
    assert deployer("query", "air.flights", "--where", "id = 100", "--json").json["rows"]
    assert deployer(*command).code == 0 and len(running) == 1


def test_columns_are_loaded_there(project: Path, tmp_path: Path, deployer: Deployer, running: list[str]) -> None:
    """As a run of EMR Serverless that uses Spark, from a file of this machine, and followed by its id."""
    rows = put("more.csv", "".join(["id,delay\n", *(f"{i},1\n" for i in range(200, 230))]))
    assert deployer("ingest", "air.flights", rows).code == 0
    file = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"id": range(200, 230), "label": [f"l{i}" for i in range(200, 230)]}), file)
    command = ("column", "load", "air.flights", str(file), "--pk", "id", "--columns", "label", "--cluster", "small")
    refused = deployer(*command)
    assert refused.code == 1 and "cannot read files of this machine; add --upload" in refused.err
    ran = deployer(*command, "--upload", "--engine", "spark", "--job-id", "labels")
    assert ran.code == 0, ran.err
    assert "air.flights: loaded label of" in ran.out and "added label (job labels)" in ran.out
    assert deployer("query", "air.flights", "--where", "id = 217", "--json").json["rows"][0]["label"] == "l217"
    followed = deployer("follow", "labels")
    assert followed.code == 0 and followed.out == ran.out
    assert len(running) == 1 and "--engine=spark" in running[0] and f"{ROOT}/_uploads/" in running[0]
    s3 = boto3.client("s3")
    assert not s3.list_objects_v2(Bucket=BUCKET, Prefix="demo/_uploads/").get("Contents")
    assert not s3.list_objects_v2(Bucket=BUCKET, Prefix="demo/_work/").get("Contents")
    again = deployer(*command, "--upload", "--job-id", "labels", "--write-spec")
    assert again.code == 1 and "--write-spec is not for a load on a cluster on AWS" in again.err
    with connect(ROOT) as lake:  # the other tests load files without it
        lake.open_table("air.flights").drop_columns(["label"])


def test_a_column_is_computed_there(project: Path, deployer: Deployer, running: list[str]) -> None:
    """As a run of EMR Serverless that uses Spark, by a function that this process trusts and the lake has packaged."""
    rows = put("late.csv", "".join(["id,delay\n", *(f"{i},{i}\n" for i in range(300, 330))]))
    assert deployer("ingest", "air.flights", rows).code == 0
    with connect(ROOT) as lake:
        lake.open_table("air.flights").add_columns({"twice": (twice, ["id"])})
    command = ("column", "backfill", "air.flights", "twice", "--cluster", "small")
    refused = deployer(*command, "--job-id", "refused")
    assert refused.code == Refused.exit_code and "not trusted here, so it does not run" in refused.err
    with connect(ROOT) as lake:
        computed = computed_of(lake.open_table("air.flights").schema.field("twice"))
    assert isinstance(computed, ComputedByUdf)
    allowed = ("--trust-function", computed.function, "--engine", "spark", "--task-size", "8", "--job-id", "doubles")
    ran = deployer(*command, *allowed)
    assert ran.code == 0, ran.err
    assert "air.flights: computed twice of" in ran.out and "(job doubles)" in ran.out
    assert deployer("query", "air.flights", "--where", "id = 317", "--json").json["rows"][0]["twice"] == 634
    followed = deployer("follow", "doubles")
    assert followed.code == 0 and followed.out == ran.out
    assert "--engine=spark" in running[-1] and f"--trust-function={computed.function}" in running[-1]
    assert not boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="demo/_work/").get("Contents")
    with connect(ROOT) as lake:  # the other tests load files without it
        lake.open_table("air.flights").drop_columns(["twice"])


def moves(aws: str, job_id: str, *steps: tuple[str, str]) -> Callable[[], None]:
    """States that the run goes through, one each time that the follower sleeps."""
    coming = iter(steps)

    def step() -> None:
        state, details = next(coming, ("", ""))
        if state:
            set_state(aws, run_of(job_id)["jobRunId"], state, details)

    return step


def test_a_run_that_loses_its_driver_says_where_to_look(
    aws: str, project: Path, deployer: Deployer, hands: Hands
) -> None:
    hands.on_sleep = moves(aws, "lost", ("RUNNING", ""), ("FAILED", "The driver was lost"))
    ran = deployer(*load("lost"))
    run = run_of("lost")
    assert ran.code == 1
    assert (
        f"error: job run {run['jobRunId']} of EMR Serverless application {run['applicationId']} (cluster small): "
        in (ran.err)
    )
    assert "the run failed: The driver was lost; its job was ended before it could say why; read" in ran.err


def test_a_role_that_a_run_cannot_use_yet_is_tried_again(
    aws: str, project: Path, deployer: Deployer, hands: Hands
) -> None:
    def step() -> None:
        mine = [run for run in runs() if run["name"] == "ingest air.flights early"]
        if len(mine) == 1:
            set_state(aws, mine[0]["jobRunId"], "FAILED", "Could not assume runtime role arn:aws:iam::1:role/x")
        else:
            started = remembered(ROOT, "early")
            assert started is not None and started.run_id == mine[1]["jobRunId"]
            write_status(ROOT, started.key, JobStatus(result={**RESULT, "job_id": "early"}))
            set_state(aws, started.run_id, "SUCCESS")

    hands.on_sleep = step
    ran = deployer(*load("early"))
    assert ran.code == 0 and "the run is started again" in ran.err, ran.err


RESULT = {
    "table": "air.flights", "rows": 0, "files": 0, "bytes": 0, "bad_rows": 0, "lance_version": 1, "engine": "driver",
    "reason": "", "seconds": 1.0, "already_done": False, "splits": None,
    "indexes": {"built": [], "updated": [], "failure": ""},
}  # fmt: skip


def test_ctrl_c_cancels_where_nobody_can_be_asked(aws: str, project: Path, deployer: Deployer, hands: Hands) -> None:
    def interrupt() -> None:
        hands.on_sleep = lambda: None
        raise KeyboardInterrupt

    hands.on_sleep = interrupt
    ran = deployer(*load("stopped"))
    assert ran.code == Interrupted.exit_code and "the run was cancelled" in ran.err
    assert run_of("stopped")["state"] == "CANCELLED"


def test_a_second_ctrl_c_leaves_the_run_alone(aws: str, project: Path, deployer: Deployer, hands: Hands) -> None:
    def interrupt() -> None:
        if run_of("left")["state"] == "SUBMITTED":
            hands.on_sleep = again
        raise KeyboardInterrupt

    def again() -> None:
        raise KeyboardInterrupt

    def cancelling(self: object, run_id: str) -> None:
        set_state(aws, run_id, "CANCELLING")  # as AWS does, which takes its time

    hands.on_sleep = interrupt
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deployer.compute.emr.serverless.EmrServerless.cancel", cancelling)
        ran = deployer(*load("left"))
    assert ran.code == Interrupted.exit_code
    assert "the run continues; follow it: deployer follow left" in ran.err


@pytest.mark.parametrize(("answer", "code"), [(True, Interrupted.exit_code), (False, 0), (None, Interrupted.exit_code)])
def test_ctrl_c_asks_somebody_at_a_terminal(
    aws: str,
    project: Path,
    deployer: Deployer,
    hands: Hands,
    monkeypatch: pytest.MonkeyPatch,
    answer: bool | None,
    code: int,
) -> None:
    job_id = f"asked-{answer}"

    def confirm(question: str, **_: object) -> bool:
        assert question.startswith("cancel job run ")
        if answer is None:
            raise KeyboardInterrupt
        return answer

    def end() -> None:
        started = remembered(ROOT, job_id)
        assert started is not None
        write_status(ROOT, started.key, JobStatus(result=RESULT))
        set_state(aws, started.run_id, "SUCCESS")

    def interrupt() -> None:
        hands.on_sleep = end
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", confirm)
    hands.on_sleep = interrupt
    ran = deployer(*load(job_id, "s3://x/y.csv", "--json"))
    assert ran.code == code
    assert (run_of(job_id)["state"] == "CANCELLED") is (answer is True)


def test_a_start_without_waiting_is_followed_later(aws: str, project: Path, deployer: Deployer, hands: Hands) -> None:
    ran = deployer(*load("detached"), "--detach")
    assert ran.code == 0 and "has started; follow it: deployer follow detached" in ran.err
    started = remembered(ROOT, "detached")
    assert started is not None
    write_status(ROOT, started.key, JobStatus(error=Refused("bad rows", where="table/air.flights")))
    set_state(aws, started.run_id, "FAILED")
    ran = deployer("follow", "detached")
    assert ran.code == Refused.exit_code and "table/air.flights: bad rows" in ran.err


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("expired", "GetJobRun was rejected: the credentials are expired"),
        (
            "deny",
            "GetJobRun was denied (AccessDeniedException: refused by the test's rule); allow this identity the action",
        ),
    ],
)
def test_who_may_not_look_any_more_is_told_how_to_follow(
    aws: str,
    project: Path,
    deployer: Deployer,
    hands: Hands,
    faulty: PutBetween,  # noqa: F811
    fault: Any,
    said: str,
) -> None:
    between = faulty({}, only=("GET",))

    def refuse() -> None:
        between.rates = {fault: 1.0}

    hands.on_sleep = refuse
    ran = deployer(*load(f"mid-{fault}"))
    assert ran.code == 1 and said in ran.err
    assert f"The run continues; follow it: deployer follow mid-{fault}" in ran.err


def test_a_service_runs_there_as_here(aws: str, project: Path, deployer: Deployer, hands: Hands) -> None:
    for number in (900, 901):
        assert deployer("ingest", "air.flights", put(f"{number}.csv", f"id,delay\n{number},1\n")).code == 0

    def execute() -> None:
        (run,) = [each for each in runs() if each["name"].startswith("COMPACT air.flights ")]
        code = service_program.main(run["jobDriver"]["sparkSubmit"]["entryPointArguments"])
        set_state(aws, run["jobRunId"], "FAILED" if code else "SUCCESS")

    command = ("service", "run", "air.flights", "compact", "--cluster", "small", "-o", "min_files=2", "--job-id", "svc")
    ran = deployer(*command, "--detach")
    assert ran.code == 0 and "has started; follow it: deployer follow svc" in ran.err, ran.err
    assert len([each for each in runs() if each["name"].startswith("COMPACT air.flights ")]) == 1
    hands.on_sleep = execute  # which finds the one run
    ran = deployer(*command)
    assert ran.code == 0, ran.err
    assert "air.flights: " in ran.out and "1 file" in ran.out and "in this process" in ran.out
    assert deployer("service", "run", "air.none", "compact", "--cluster", "small").code == 1


@pytest.mark.parametrize(("cluster", "kind"), [("small", "serverless"), ("big", "steps")])
def test_the_client_runs_a_service_there_as_the_command_does(
    aws: str,
    project: Path,
    deployer: Deployer,
    monkeypatch: pytest.MonkeyPatch,
    cluster: str,
    kind: str,
) -> None:
    for number in (700, 701):
        rows = put(f"{cluster}-{number}.csv", f"id,delay\n{number},1\n")
        assert deployer("ingest", "air.flights", rows).code == 0
    table: dict[str, Any] = {"lake": "demo", "database": "air", "service": "COMPACT"}
    done: list[str] = []

    def execute(_: float = 0.0) -> None:
        """What the cluster does while the client waits: the one job that it was given."""
        for job in _jobs_on(kind, "COMPACT air.flights "):
            if job.run_id not in done:
                done.append(job.run_id)
                code = service_program.main(job.arguments)
                set_state(aws, job.run_id, job.failed if code else job.succeeded)

    _without_waiting(monkeypatch, execute)
    with TableServicesClient(ROOT) as client:
        client.create_table_service(table="flights", trigger_mode="ON_DEMAND", options={"min_files": "2"}, **table)
        moved = client.alter_services_cluster_in_table("flights", lake="demo", database="air", services_cluster=cluster)
        assert [each.cluster for each in moved] == [cluster]
        earlier = [job.run_id for job in _jobs_on(kind, "COMPACT air.flights ")]
        done += earlier
        run = client.run_service_in_table("flights", **table)
        assert (run.status, run.reason, run.cluster, run.figures.after["files"]) == ("SUCCEEDED", "", cluster, 1)
        assert len(done) == len(earlier) + 1
        started = remembered(ROOT, run.run_id)
        assert started is not None and started.cluster == cluster  # `deployer follow RUN` finds it
        with pytest.raises(TimeoutError, match="is queued after 0 s, and continues"):
            client.run_service_in_table("flights", timeout=0, **table)
        execute()
        newest = client.describe_table_service(table="flights", **table)
        assert newest.last_run is not None and newest.last_run.status == "SKIPPED"
        client.detach_table_service(table="flights", **table)


def test_a_job_that_dies_before_its_run_begins_ends_the_run(
    aws: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_: float) -> None:
        for job in _jobs_on("serverless", "CLEAN air.flights "):
            set_state(aws, job.run_id, "FAILED", "The driver was lost")

    _without_waiting(monkeypatch, lose)
    table: dict[str, Any] = {"lake": "demo", "database": "air", "service": "CLEAN"}
    with TableServicesClient(ROOT) as client:
        client.create_table_service(table="flights", trigger_mode="ON_DEMAND", **table)
        client.alter_services_cluster_in_table("flights", lake="demo", database="air", services_cluster="small")
        run = client.run_service_in_table("flights", **table)
        assert run.status == "FAILED" and run.reason.endswith("before the run began: The driver was lost"), run.reason

        def interrupt(_: float) -> None:
            raise KeyboardInterrupt

        _without_waiting(monkeypatch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.run_service_in_table("flights", **table)
        newest, _ = client.show_runs_in_table_service(table="flights", **table)
        assert newest.status == "CANCELLED"
        client.detach_table_service(table="flights", **table)
    assert {each["state"] for each in runs() if each["name"].startswith("CLEAN")} == {"FAILED", "CANCELLED"}


@dataclass(frozen=True)
class Job:
    """A job that a cluster was given, and what the cluster calls its ends."""

    run_id: str
    arguments: list[str]
    succeeded: str
    failed: str


def _jobs_on(kind: str, name: str) -> list[Job]:
    if kind == "serverless":
        found = [each for each in runs() if each["name"].startswith(name) and each["state"] == "SUBMITTED"]
        return [
            Job(each["jobRunId"], each["jobDriver"]["sparkSubmit"]["entryPointArguments"], "SUCCESS", "FAILED")
            for each in found
        ]
    emr = boto3.client("emr")
    steps = [each for made in emr.list_clusters()["Clusters"] for each in emr.list_steps(ClusterId=made["Id"])["Steps"]]
    mine = [each for each in steps if each["Name"].startswith(name)]
    arguments = [each["Config"]["Args"] for each in mine]
    return [
        Job(each["Id"], [*dropwhile(lambda arg: not arg.startswith("--tell="), args)], "COMPLETED", "FAILED")
        for each, args in zip(mine, arguments, strict=True)
    ]


def _without_waiting(monkeypatch: pytest.MonkeyPatch, on_sleep: Callable[[float], None]) -> None:
    """The client looks at the cluster each time, and `on_sleep` happens instead of a pause."""
    monkeypatch.setattr(remote, "PAUSE", 0.0)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=time.monotonic, sleep=on_sleep))


def test_a_busy_service_at_the_start_is_said(
    project: Path,
    deployer: Deployer,
    faulty: PutBetween,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aws_calls, "ATTEMPTS", 1)
    faulty({"throttle": 1.0}, only=("POST",))
    ran = deployer(*load("busy"))
    assert ran.code == 1 and "StartJobRun was throttled once (ThrottlingException" in ran.err


def test_what_cannot_run_there_is_said_before_anything_is_started(project: Path, deployer: Deployer) -> None:
    before = len(runs())
    for arguments, said in (
        (load("x", "rows.csv"), "rows.csv: a cluster on AWS cannot read files of this machine; add --upload"),
        (load("x", "s3://b/x.csv", "--bad-rows", "bad.csv"), "cannot write files of this machine"),
        (("ingest", "air.none", "s3://b/x.csv", "--cluster", "small"), "air.none"),
        (("ingest", "air.flights", "x.csv", "--detach"), "--detach is for clusters on AWS"),
        (("service", "run", "air.flights", "compact", "--detach"), "--detach is for clusters on AWS"),
        (("service", "run", "air.flights", "compact", "--job-id", "x"), "--job-id is for clusters on AWS"),
        (("service", "run", "--all", "--job-id", "x"), "--job-id is for clusters on AWS"),
        (load("x", "no.csv", "--upload"), "no.csv: no such file, folder or glob"),
        (("follow", "nothing"), "no job nothing was started on a cluster"),
    ):
        ran = deployer(*arguments)
        assert ran.code == 1 and said in ran.err, ran.err
    assert len(runs()) == before


def test_a_stack_without_the_cluster_is_said(project: Path, deployer: Deployer) -> None:
    specs = project / "specs" / "demo.yaml"
    text = specs.read_text(encoding="utf-8")
    try:
        specs.write_text(text + "  other: {kind: emr-serverless, release: emr-7.12.0}\n", encoding="utf-8")
        ran = deployer("ingest", "air.flights", "s3://b/x.csv", "--cluster", "other")
    finally:
        specs.write_text(text, encoding="utf-8")
    assert ran.code == 1
    assert "stack dev: the stack has made no cluster other yet; run `deployer up`" in ran.err
