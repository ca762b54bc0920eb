"""Services of a lake on AWS: schedules that start their jobs, alarms, Glue's databases, applied to moto's server."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import boto3
import pytest

from deployer.compute.schedules.landing import LandingPlaces, landing_policy
from deployer.platform.aws.names import name_on_aws, own_name, own_names
from deployer.services.kinds.metasync import metasync_table
from tests.cli.conftest import Deployer
from tests.projects import table
from tests.stacks.conftest import MakeProject, bucket_of
from tests.stacks.graph import graph_of, outputs_of

pytestmark = pytest.mark.full

CLUSTERS = """\
notify: [ops@example.com]
clusters:
  small: {kind: emr-serverless, release: emr-7.12.0, cores: 2, memory: 8g}
"""
SERVICES = """\
services:
  compact: {trigger: {schedule: "0 3 * * MON", timezone: Europe/Berlin}}
  clean: {trigger: {commits: 100}}
  autosavepoint: {trigger: {schedule: "0 0 13 * 5"}}
"""
FLIGHTS = table("flights", "delay: int32", more=SERVICES)


def applied(on_aws: MakeProject, deployer: Deployer, clusters: str = CLUSTERS, tables: str = FLIGHTS) -> Path:
    project = on_aws(clusters, tables=tables)
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    return project


def group_of(project: Path) -> str:
    return own_name(f"s3://{bucket_of(project)}/demo", "demo", "/services")


def schedules(project: Path) -> dict[str, Any]:
    """The schedules of the lake by their description."""
    scheduler = boto3.client("scheduler")
    listed = scheduler.list_schedules(GroupName=group_of(project))["Schedules"]
    found = [scheduler.get_schedule(GroupName=group_of(project), Name=each["Name"]) for each in listed]
    return {f"{each['Description']} {each['ScheduleExpression']}": each for each in found}


def test_each_service_with_a_schedule_is_started_by_one(on_aws: MakeProject, deployer: Deployer) -> None:
    project = applied(on_aws, deployer)
    found = schedules(project)
    assert sorted(found) == [
        "AUTOSAVEPOINT of table air.flights, by 0 0 13 * 5 cron(0 0 13 * ? *)",
        "AUTOSAVEPOINT of table air.flights, by 0 0 13 * 5 cron(0 0 ? * 6 *)",
        "COMPACT of table air.flights, by 0 3 * * MON cron(0 3 ? * 2 *)",
    ]
    compact = found["COMPACT of table air.flights, by 0 3 * * MON cron(0 3 ? * 2 *)"]
    assert compact["ScheduleExpressionTimezone"] == "Europe/Berlin"
    target = compact["Target"]
    assert target["Arn"] == "arn:aws:scheduler:::aws-sdk:emrserverless:startJobRun"
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 5}
    queue = boto3.client("sqs").get_queue_url(QueueName=group_of(project))["QueueUrl"]
    attributes = boto3.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
    assert target["DeadLetterConfig"] == {"Arn": attributes["QueueArn"]}
    assert deployer("preview", "--exit-code").code == 0


def test_a_table_with_retention_has_a_schedule_of_its_own(on_aws: MakeProject, deployer: Deployer) -> None:
    retention = "retention: {column: day, keep: 400d}\n"
    project = applied(on_aws, deployer, tables=table("flights", "day: date32", more=retention))
    [(name, expire)] = schedules(project).items()
    assert name == "EXPIRE of table air.flights, by 0 2 * * * cron(0 2 * * ? *)"
    said = json.loads(expire["Target"]["Input"])["JobDriver"]["SparkSubmit"]["EntryPointArguments"]
    assert {"--table=air.flights", "--service=EXPIRE"} <= {*said}
    assert expire["State"] == "ENABLED" and deployer("preview", "--exit-code").code == 0


def test_what_a_schedule_starts_is_a_job_that_aws_takes(on_aws: MakeProject, deployer: Deployer) -> None:
    """Its input, with what Scheduler puts in, is taken by botocore and by EMR Serverless."""
    project = applied(on_aws, deployer)
    for each in schedules(project).values():
        text = each["Target"]["Input"].replace("<aws.scheduler.execution-id>", "d32c5kddcf5bb8c3")
        sent = decapitalised(json.loads(text.replace("<aws.scheduler.scheduled-time>", "2027-03-22T18:59:43Z")))
        run = boto3.client("emr-serverless").start_job_run(**sent)
        driver = sent["jobDriver"]["sparkSubmit"]
        assert run["applicationId"] == sent["applicationId"]
        bucket, _, key = driver["entryPoint"].removeprefix("s3://").partition("/")
        code = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        assert "Run a service of a table" in code
        assert driver["entryPointArguments"][-1] == "--scheduled=2027-03-22T18:59:43Z"
        options = dict(each.split("=", 1) for each in shlex.split(driver["sparkSubmitParameters"]) if each != "--conf")
        assert options["spark.executor.cores"] == "2"
        assert options["spark.archives"].startswith(f"s3://{bucket_of(project)}/demo/_jobs/")


def decapitalised(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].lower() + name[1:]: decapitalised(each) for name, each in value.items()}
    return value


def test_who_is_to_know_is_subscribed_to_the_alarms(on_aws: MakeProject, deployer: Deployer) -> None:
    project = applied(on_aws, deployer)
    root = f"s3://{bucket_of(project)}/demo"
    sns = boto3.client("sns")
    [topic] = [
        each["TopicArn"]
        for each in sns.list_topics()["Topics"]
        if each["TopicArn"].endswith(own_name(root, "demo", "alarms"))
    ]
    [subscription] = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.com")
    names = [own_name(root, "demo", what) for what in ("not-started/demo", "throttled/demo")]
    alarms = boto3.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    assert {each["MetricName"] for each in alarms} == {
        "ApproximateNumberOfMessagesVisible", "WriteThrottleEvents"
    }  # fmt: skip
    assert all(each["AlarmActions"] == each["OKActions"] == [topic] for each in alarms)


def test_schedules_follow_their_services(on_aws: MakeProject, deployer: Deployer) -> None:
    project = applied(on_aws, deployer)
    file = project / "specs" / "flights.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("0 3 * * MON", "30 4 * * *").replace("  autosavepoint", "  # autosavepoint"))
    shown = {each["action"] for each in deployer("preview", "--json").json["foreign"]}
    assert shown == {"update", "delete", "create"}  # a daily one has an alarm on no success
    assert deployer("up", "--yes").code == 0
    assert list(schedules(project)) == ["COMPACT of table air.flights, by 30 4 * * * cron(30 4 * * ? *)"]
    assert deployer("preview", "--exit-code").code == 0
    file.write_text(text[: text.index("services:")])
    assert deployer("up", "--yes").code == 0
    assert group_of(project) not in {
        each["Name"] for each in boto3.client("scheduler").list_schedule_groups()["ScheduleGroups"]
    }


def test_what_was_changed_by_hand_is_found_and_mended(on_aws: MakeProject, deployer: Deployer) -> None:
    project = applied(on_aws, deployer)
    scheduler, group = boto3.client("scheduler"), group_of(project)
    [compact] = [each for name, each in schedules(project).items() if name.startswith("COMPACT")]
    kept = ("Name", "GroupName", "Description", "ScheduleExpressionTimezone", "FlexibleTimeWindow", "Target")
    changed = {name: compact[name] for name in kept} | {"ScheduleExpression": "cron(0 5 * * ? *)", "State": "DISABLED"}
    scheduler.update_schedule(**changed)
    boto3.client("sqs").delete_queue(QueueUrl=boto3.client("sqs").get_queue_url(QueueName=group)["QueueUrl"])
    names = [own_name(f"s3://{bucket_of(project)}/demo", "demo", "throttled/demo")]
    boto3.client("cloudwatch").delete_alarms(AlarmNames=names)
    found = {(each["action"], each["address"].split(" ")[0]) for each in deployer("preview", "--json").json["foreign"]}
    assert found >= {
        ("update", "aws:scheduler/schedule:Schedule"),
        ("create", "aws:sqs/queue:Queue"),
        ("create", "aws:cloudwatch/metricAlarm:MetricAlarm"),
    }
    assert deployer("up", "--yes").code == 0
    fixed = scheduler.get_schedule(GroupName=group, Name=compact["Name"])
    assert (fixed["ScheduleExpression"], fixed["State"]) == ("cron(0 3 ? * 2 *)", "ENABLED")
    assert deployer("preview", "--exit-code").code == 0


def test_metasync_has_its_database_and_the_jobs_may_fill_it(on_aws: MakeProject, deployer: Deployer) -> None:
    services = "services: {metasync: {options: {targets: [{type: glue}]}}}\n"
    project = applied(on_aws, deployer, tables=table("flights", "delay: int32", more=services))
    database = boto3.client("glue").get_database(Name="demo_air")["Database"]
    assert database["Description"] == "Tables of the lake demo"
    role = own_name(f"s3://{bucket_of(project)}/demo", "demo", "small")
    policy = boto3.client("iam").get_role_policy(RoleName=role, PolicyName="catalog")["PolicyDocument"]
    resources: Any = policy["Statement"][0]["Resource"]
    assert [each.split(":", 5)[5] for each in resources] == ["catalog", "database/demo_air", "table/demo_air/*"]
    root = f"s3://{bucket_of(project)}/demo"
    assert [each.action for each in metasync_table(root, "air.flights").targets] == ["created"]
    published = boto3.client("glue").get_table(DatabaseName="demo_air", Name="flights")["Table"]
    assert published["StorageDescriptor"]["Location"].startswith(f"{root}/air/flights-")
    assert deployer("preview", "--exit-code").code == 0
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32"), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    with pytest.raises(boto3.client("glue").exceptions.EntityNotFoundException):
        boto3.client("glue").get_database(Name="demo_air")


LONG = "clusters:\n  steps: {kind: emr, release: emr-7.12.0, instance_type: r7g.xlarge, lifetime: long}\n"


def test_a_cluster_on_emr_gets_a_step(on_aws: MakeProject, deployer: Deployer) -> None:
    project = applied(on_aws, deployer, LONG)
    [compact] = [each for name, each in schedules(project).items() if name.startswith("COMPACT")]
    assert compact["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:emr:addJobFlowSteps"
    sent = json.loads(compact["Target"]["Input"])
    [step] = boto3.client("emr").add_job_flow_steps(**sent)["StepIds"]
    found = boto3.client("emr").describe_step(ClusterId=sent["JobFlowId"], StepId=step)["Step"]
    assert found["Config"]["Args"][:2] == ["spark-submit", "--deploy-mode=cluster"]
    assert found["ActionOnFailure"] == "CONTINUE"
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        pytest.param(
            LONG.replace("lifetime: long", "lifetime: run"), "exists only during a run; give the cluster", id="run"
        ),
        pytest.param(
            CLUSTERS + "  other: {kind: emr-serverless, release: emr-7.12.0}\n",
            "names no cluster, and there are 2 on AWS; write `cluster:` and one of other, small",
            id="several",
        ),
    ],
)
def test_what_no_schedule_can_start_is_said(on_aws: MakeProject, deployer: Deployer, clusters: str, said: str) -> None:
    on_aws(clusters, tables=FLIGHTS)
    ran = deployer("preview")
    assert (ran.code, "table/air.flights: service compact" in ran.err and said in ran.err) == (1, True), ran.err


def test_services_of_local_clusters_are_nothing_to_aws(on_aws: MakeProject, deployer: Deployer) -> None:
    project = applied(on_aws, deployer, "clusters:\n  laptop: {kind: local}\n")
    assert not [each for each in graph_of(project) if each["type"].startswith(("aws:scheduler", "aws:sns", "aws:sqs"))]


BOTH = """\
notify: [ops@example.com]
clusters:
  steps: {kind: emr, release: emr-7.12.0, instance_type: r7g.xlarge, lifetime: long}
  once: {kind: emr, release: emr-7.12.0, instance_type: r7g.xlarge}
"""


def test_what_fails_on_emr_is_told_to_the_topic(on_aws: MakeProject, deployer: Deployer) -> None:
    """Events as EMR sends them, of this lake's clusters and of others."""
    project = applied(on_aws, deployer, BOTH, tables="")
    root, sns, sqs = f"s3://{bucket_of(project)}/demo", boto3.client("sns"), boto3.client("sqs")
    outputs = outputs_of(project)
    queue = sqs.create_queue(QueueName="listening")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    raw = {"RawMessageDelivery": "true"}
    sns.subscribe(TopicArn=outputs["alarms"], Protocol="sqs", Endpoint=arn, Attributes=raw)

    def tell(kind: str, **detail: str) -> None:
        event = {"Source": "aws.emr", "DetailType": f"EMR {kind} Change", "Detail": json.dumps(detail)}
        boto3.client("events").put_events(Entries=[event])

    def told() -> list[str]:
        found = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
        for each in found:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=each["ReceiptHandle"])
        return [each["Body"] for each in found]

    cluster = outputs["clusters"]["steps"]["cluster"]
    step = {"stepId": "s-1", "name": "ingest air.flights", "message": "Step s-1 failed."}
    tell("Step Status", clusterId=cluster, state="COMPLETED", **step)
    tell("Step Status", clusterId="j-ANOTHER", state="FAILED", **step)
    names = {each: name_on_aws(root, "demo", each) for each in ("steps", "once")}
    for name in (f"{names['steps']}-0001", names["once"], "another"):
        tell("Cluster State", clusterId="j-1", name=name, state="TERMINATED_WITH_ERRORS", message="Ended.")
    tell("Cluster State", clusterId="j-1", name=names["steps"], state="TERMINATED", message="Ended.")
    assert told() == []
    tell("Step Status", clusterId=cluster, state="FAILED", **step)
    assert told() == [
        "A job failed on the cluster steps of the lake demo: step s-1, ingest air.flights. Step s-1 failed."
    ]
    tell("Cluster State", clusterId=cluster, name=names["steps"], state="TERMINATED_WITH_ERRORS", message="No role.")
    assert told() == [f"The cluster ended with errors: steps of the lake demo, {cluster}. No role."]
    run = f"{names['once']}-3f2a"  # as a job names its own
    tell("Cluster State", clusterId="j-2", name=run, state="TERMINATED_WITH_ERRORS", message="Shut down.")
    assert told() == [
        "A job failed on a cluster of its own, or the cluster ended with errors: once of the lake demo, j-2. Shut down."
    ]
    assert deployer("preview", "--exit-code").code == 0
    boto3.client("events").remove_targets(Rule=own_name(root, "demo", "failed-steps/steps"), Ids=["alarms"])
    sns.set_topic_attributes(TopicArn=outputs["alarms"], AttributeName="Policy", AttributeValue='{"Statement": []}')
    found = {(each["action"], each["address"].split(" ")[1]) for each in deployer("preview", "--json").json["foreign"]}
    assert found == {("create", "tells/failed-steps/steps"), ("update", "alarms-from/demo")}
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0


DAILY = table("flights", "delay: int32", more='services: {compact: {trigger: {schedule: "0 3 * * *"}}}\n')


def test_what_fails_on_emr_serverless_is_told_and_what_succeeds_is_counted(
    on_aws: MakeProject, deployer: Deployer
) -> None:
    """F8: the alarm had a metric with dimensions that AWS does not fill, and silence counted as success."""
    project = applied(on_aws, deployer, CLUSTERS, tables=DAILY)
    root, sns, sqs = f"s3://{bucket_of(project)}/demo", boto3.client("sns"), boto3.client("sqs")
    outputs = outputs_of(project)
    queue = sqs.create_queue(QueueName="hearing")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    raw = {"RawMessageDelivery": "true"}
    sns.subscribe(TopicArn=outputs["alarms"], Protocol="sqs", Endpoint=arn, Attributes=raw)
    successes = sqs.get_queue_url(QueueName=own_name(root, "demo", "/successes"))["QueueUrl"]

    def counted() -> tuple[int, int]:
        found = [sqs.receive_message(QueueUrl=each, MaxNumberOfMessages=10) for each in (queue, successes)]
        told, succeeded = (each.get("Messages", []) for each in found)
        return len(told), len(succeeded)

    def tell(application: str, state: str) -> None:
        detail = {"applicationId": application, "jobRunId": "r-1", "jobRunName": "compact", "state": state}
        event = {
            "Source": "aws.emr-serverless",
            "DetailType": "EMR Serverless Job Run State Change",
            "Detail": json.dumps(detail),
        }
        boto3.client("events").put_events(Entries=[event])

    own = outputs["clusters"]["small"]["application"]
    for application, state in (("00other", "FAILED"), ("00other", "SUCCESS"), (own, "RUNNING"), (own, "SUBMITTED")):
        tell(application, state)
    assert counted() == (0, 0)
    tell(own, "FAILED")
    assert counted() == (1, 0)
    tell(own, "SUCCESS")
    assert counted() == (0, 1)
    name = own_name(root, "demo", "no-success/demo")
    [alarm] = boto3.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    assert (alarm["MetricName"], alarm["TreatMissingData"]) == ("NumberOfMessagesSent", "breaching")
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": own_name(root, "demo", "/successes")}]


ALL = BOTH.replace("clusters:\n", "clusters:\n  small: {kind: emr-serverless, release: emr-spark-8.0.0}\n")
ALL_SERVICES = """\
services:
  compact: {trigger: {schedule: "0 3 * * *"}, cluster: small}
  clean: {trigger: {schedule: "0 4 * * *"}, cluster: steps}
  metasync: {options: {targets: [{type: glue}]}}
"""


def left_in_aws(root: str, group: str, outputs: dict[str, Any]) -> set[str]:
    """Which kinds of resources of the lake are there."""
    own = own_names(root, "demo")
    client: Any = boto3.client
    clusters = client("emr").list_clusters(ClusterStates=["STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING"])
    found = {
        "cluster": [each for each in clusters["Clusters"] if each["Id"] == outputs["clusters"]["steps"]["cluster"]],
        "application": [
            each for each in client("emr-serverless").list_applications()["applications"]
            if each["name"] == name_on_aws(root, "demo", "small") and each["state"] != "TERMINATED"
        ],
        "log group": client("logs").describe_log_groups(logGroupNamePrefix=f"/emr-serverless/{own}")["logGroups"],
        "role": [each for each in client("iam").list_roles()["Roles"] if each["RoleName"].startswith(own)],
        "profile": client("iam").list_instance_profiles()["InstanceProfiles"],
        "schedule": client("scheduler").list_schedules()["Schedules"],
        "queue": client("sqs").list_queues(QueueNamePrefix=own).get("QueueUrls", []),
        "topic": client("sns").list_topics()["Topics"],
        "subscription": client("sns").list_subscriptions()["Subscriptions"],
        "alarm": client("cloudwatch").describe_alarms()["MetricAlarms"],
        "rule": client("events").list_rules()["Rules"],
        "database": client("glue").get_databases()["DatabaseList"],
        "state's table": client("dynamodb").list_tables()["TableNames"],
        "bucket": client("s3").list_buckets()["Buckets"],
    }  # fmt: skip
    groups = [each["Name"] for each in client("scheduler").list_schedule_groups()["ScheduleGroups"]]
    return {kind for kind, listed in found.items() if listed} | ({"schedule group"} if group in groups else set())


def test_a_whole_stack_goes_but_for_what_holds_data(on_aws: MakeProject, deployer: Deployer) -> None:
    project = applied(on_aws, deployer, ALL, tables=table("flights", "delay: int32", more=ALL_SERVICES))
    bucket, group, outputs = bucket_of(project), group_of(project), outputs_of(project)
    root, s3 = f"s3://{bucket}/demo", boto3.client("s3")
    (project / "rows.csv").write_text("id,delay\n1,10\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0
    everything = left_in_aws(root, group, outputs)
    assert len(everything) == 15
    keys = {each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]}
    [state_table] = boto3.client("dynamodb").list_tables()["TableNames"]
    guarded = [f"bucket/{bucket}", f"state-table/{state_table}"]
    tables = ["table/air.flights"]
    for allowed, named in (([], tables), (guarded, tables), (tables, guarded), ([*tables, guarded[0]], guarded[1:])):
        refused = deployer("destroy", "--yes", *(f"--allow-destroy={name}" for name in allowed))
        assert refused.code == 3 and "nothing was changed" in refused.err, refused.err
        assert all(name in refused.out + refused.err for name in named), refused.out + refused.err
    assert left_in_aws(root, group, outputs) == everything
    assert {each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]} == keys
    gone = deployer("destroy", "--yes", *(f"--allow-destroy={name}" for name in [*guarded, *tables]))
    assert gone.code == 0, gone.err
    assert "still in AWS, and no longer part of the stack: " in gone.err
    assert all(name in gone.err for name in guarded), gone.err
    assert left_in_aws(root, group, outputs) == {"bucket", "state's table"}
    left = {each["Key"].split("/")[1] for each in s3.list_objects_v2(Bucket=bucket).get("Contents", [])}
    assert left == {"_jobs"}  # of jobs that may still run
    kept = s3.list_object_versions(Bucket=bucket)["Versions"]
    assert {each["Key"] for each in kept} >= keys  # for as long as the bucket keeps old versions


def test_ingest_is_started_by_a_schedule_and_its_role_may_read_the_place_alone(
    on_aws: MakeProject, deployer: Deployer
) -> None:
    queue = "arn:aws:sqs:eu-central-1:123456789012:landing"
    places = ("s3://landing/trips/*.csv", "s3://other/trips/")
    ingest = f"ingest: {{files: {list(places)}, trigger: {{queue: '{queue}'}}}}\n"
    project = applied(on_aws, deployer, tables=table("flights", "delay: int32", more=ingest))
    # A queue is read at the usual times, as nothing looks at it between them.
    usual = "INGEST of table air.flights, by */15 * * * * cron(0,15,30,45 * * * ? *)"
    assert [*schedules(project)] == [usual]
    role = own_name(f"s3://{bucket_of(project)}/demo", "demo", "small")
    policy = boto3.client("iam").get_role_policy(RoleName=role, PolicyName="landing")["PolicyDocument"]
    assert policy == landing_policy(LandingPlaces(places, (queue,)), "aws")
    assert deployer("preview", "--exit-code").code == 0
    daily = ingest.replace("trigger: {", "trigger: {schedule: '0 3 * * *', ")
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", more=daily), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert [*schedules(project)] == ["INGEST of table air.flights, by 0 3 * * * cron(0 3 * * ? *)"]
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32"), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    with pytest.raises(boto3.client("iam").exceptions.NoSuchEntityException):
        boto3.client("iam").get_role_policy(RoleName=role, PolicyName="landing")
