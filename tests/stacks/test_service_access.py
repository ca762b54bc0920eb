"""What Scheduler's role, the jobs' part in Glue and the queue of the golden stack allow and forbid, call by call."""

from __future__ import annotations

import json

import pytest

from tests.stacks.lakes import ACCOUNT, DEMO, deploying
from tests.stacks.policies import Call, is_allowed
from tests.stacks.test_access import inputs

QUEUE = f"arn:aws:sqs:eu-central-1:{ACCOUNT}:{inputs('not-started/demo')['name']}"
APPLICATION = f"arn:aws:emr-serverless:eu-central-1:{ACCOUNT}:/applications/ID"
JOBS = f"{DEMO.roles}{inputs('role/small')['name']}"
SCHEDULER = f"{DEMO.roles}{inputs('role/demo/scheduler')['name']}"
GROUP = f"arn:aws:scheduler:eu-central-1:{ACCOUNT}:schedule-group/{inputs('schedules/demo')['name']}"
TO_JOBS = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
GLUE = f"arn:aws:glue:eu-central-1:{ACCOUNT}"


def name(call: Call) -> str:
    return f"{call.action} {call.resource.rpartition(':')[2]}"


@pytest.mark.parametrize(
    "call",
    [
        Call("emr-serverless:StartJobRun", APPLICATION),
        Call("iam:PassRole", JOBS, TO_JOBS),
        Call("iam:PassRole", "arn:aws:iam::123456789012:role/jobs", TO_JOBS),
        Call("sqs:SendMessage", QUEUE),
    ],
    ids=name,
)
def test_scheduler_may(call: Call) -> None:
    assert is_allowed(call, [json.loads(inputs("start/demo/scheduler")["policy"])])


@pytest.mark.parametrize(
    "call",
    [
        Call("emr-serverless:StartJobRun", APPLICATION + "2"),
        Call("emr-serverless:CancelJobRun", APPLICATION),
        Call("emr-serverless:StartApplication", APPLICATION),
        Call("iam:PassRole", JOBS),
        Call("iam:PassRole", JOBS, {"iam:PassedToService": "ec2.amazonaws.com"}),
        Call("iam:PassRole", SCHEDULER, TO_JOBS),
        Call("sqs:SendMessage", QUEUE + "-2"),
        Call("sqs:ReceiveMessage", QUEUE),
        Call("s3:GetObject", "arn:aws:s3:::golden-lakes/demo/a"),
        Call("elasticmapreduce:AddJobFlowSteps", f"arn:aws:elasticmapreduce:eu-central-1:{ACCOUNT}:cluster/j-1"),
    ],
    ids=name,
)
def test_scheduler_may_not(call: Call) -> None:
    assert not is_allowed(call, [json.loads(inputs("start/demo/scheduler")["policy"])])


@pytest.mark.parametrize(
    ("context", "allowed"),
    [
        ({"aws:SourceAccount": ACCOUNT, "aws:SourceArn": GROUP}, True),
        ({"aws:SourceAccount": ACCOUNT, "aws:SourceArn": GROUP + "2"}, False),
        ({"aws:SourceAccount": "222222222222", "aws:SourceArn": GROUP}, False),
    ],
)
def test_who_may_act_in_schedulers_role(context: dict[str, str], allowed: bool) -> None:
    trust = json.loads(inputs("role/demo/scheduler")["assumeRolePolicy"])
    assert trust["Statement"][0]["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert is_allowed(Call("sts:AssumeRole", SCHEDULER, context), [trust]) is allowed


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        *(
            (Call(f"glue:{each}Table", f"{GLUE}:table/demo_air/flights"), True)
            for each in ("Create", "Delete", "Get", "Update")
        ),
        (Call("glue:CreateTable", f"{GLUE}:database/demo_air"), True),
        (Call("glue:UpdateTable", f"{GLUE}:table/demo_air2/flights"), False),
        (Call("glue:DeleteDatabase", f"{GLUE}:database/demo_air"), False),
        (Call("glue:CreateTable", f"{GLUE}:database/other"), False),
        (Call("glue:UpdateDatabase", f"{GLUE}:database/demo_air"), False),
    ],
)
def test_what_jobs_may_publish(call: Call, allowed: bool) -> None:
    assert is_allowed(call, [json.loads(inputs("catalog/small")["policy"])]) is allowed


def test_nothing_comes_to_the_queue_without_tls() -> None:
    everybody = {"Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": QUEUE}]}
    policies = [everybody, json.loads(inputs("not-started-tls-only/demo")["policy"])]
    assert is_allowed(Call("sqs:SendMessage", QUEUE, {"aws:SecureTransport": "true"}), policies)
    assert not is_allowed(Call("sqs:SendMessage", QUEUE, {"aws:SecureTransport": "false"}), policies)


ALARM_ARN = f"arn:aws:cloudwatch:eu-central-1:{ACCOUNT}:alarm:{DEMO.own}any"
BUDGET_ARN = f"arn:aws:budgets::{ACCOUNT}:budget/any"


@pytest.mark.parametrize(
    ("service", "context", "allowed"),
    [
        ("events", {}, False),
        ("events", {"aws:SourceAccount": ACCOUNT}, False),
        ("cloudwatch", {"aws:SourceArn": ALARM_ARN, "aws:SourceAccount": ACCOUNT}, True),
        ("cloudwatch", {"aws:SourceArn": ALARM_ARN, "aws:SourceAccount": "222222222222"}, False),
        (
            "cloudwatch",
            {"aws:SourceArn": ALARM_ARN.replace(DEMO.id, "0000000000"), "aws:SourceAccount": ACCOUNT},
            False,
        ),
        ("budgets", {"aws:SourceArn": BUDGET_ARN, "aws:SourceAccount": ACCOUNT}, True),
        ("budgets", {"aws:SourceArn": BUDGET_ARN, "aws:SourceAccount": "222222222222"}, False),
        ("lambda", {}, False),
    ],
)
def test_who_may_publish_to_the_topic(service: str, context: dict[str, str], allowed: bool) -> None:
    policy = json.loads(inputs("alarms-from/demo")["policy"])
    principals = ({"Service": f"{service}.amazonaws.com"}, "*")
    mine = {"Statement": [each for each in policy["Statement"] if each["Principal"] in principals]}
    [topic] = {each["Resource"] for each in policy["Statement"]}
    by_tls = {**context, "aws:SecureTransport": "true"}
    assert is_allowed(Call("sns:Publish", topic, by_tls), [mine]) is allowed
    assert not is_allowed(Call("sns:Publish", topic, {**context, "aws:SecureTransport": "false"}), [mine])
    assert not is_allowed(Call("sns:Publish", topic + "2", by_tls), [mine])
    assert not is_allowed(Call("sns:Subscribe", topic, by_tls), [mine])


RULE_ARN = f"arn:aws:events:eu-central-1:{ACCOUNT}:rule/{DEMO.own}any"


@pytest.mark.parametrize(
    ("context", "allowed"),
    [
        ({"aws:SourceAccount": ACCOUNT, "aws:SourceArn": RULE_ARN}, True),
        ({"aws:SourceAccount": ACCOUNT, "aws:SourceArn": RULE_ARN.replace(DEMO.id, "0000000000")}, False),
        ({"aws:SourceAccount": "222222222222", "aws:SourceArn": RULE_ARN}, False),
        ({}, False),
    ],
)
def test_whose_rules_tell_of_jobs(context: dict[str, str], allowed: bool) -> None:
    trust = json.loads(inputs("role/demo/events")["assumeRolePolicy"])
    assert trust["Statement"][0]["Principal"] == {"Service": "events.amazonaws.com"}
    assert is_allowed(Call("sts:AssumeRole", "", context), [trust]) is allowed


def test_what_events_may() -> None:
    policy = json.loads(inputs("tell/demo/events")["policy"])
    topic, counted = (
        f"arn:aws:{each}" for each in (f"sns:eu-central-1:{ACCOUNT}:{DEMO.own}", f"sqs:eu-central-1:{ACCOUNT}:")
    )
    assert is_allowed(Call("sns:Publish", topic + inputs("alarms/demo")["name"].removeprefix(DEMO.own)), [policy])
    assert is_allowed(Call("sqs:SendMessage", counted + inputs("successes/demo")["name"]), [policy])
    assert not is_allowed(Call("sqs:SendMessage", QUEUE), [policy])
    assert not is_allowed(Call("sns:Publish", f"arn:aws:sns:eu-central-1:{ACCOUNT}:others"), [policy])


SCHEDULE = f"{GROUP.replace('schedule-group', 'schedule')}/{inputs('schedule/air.flights/compact')['name']}"
ALARM = f"arn:aws:cloudwatch:eu-central-1:{ACCOUNT}:alarm:{inputs('alarm/throttled/demo')['name']}"
TOPIC = f"arn:aws:sns:eu-central-1:{ACCOUNT}:{inputs('alarms/demo')['name']}"
RULE = f"arn:aws:events:eu-central-1:{ACCOUNT}:rule/{inputs('rule/failed-steps/steady')['name']}"
TO_SCHEDULER = {"iam:PassedToService": "scheduler.amazonaws.com"}


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        *((Call(f"scheduler:{each}ScheduleGroup", GROUP), True) for each in ("Create", "Get", "Delete")),
        *((Call(f"scheduler:{each}Schedule", SCHEDULE), True) for each in ("Create", "Get", "Update", "Delete")),
        (Call("iam:PassRole", SCHEDULER, TO_SCHEDULER), True),
        *((Call(f"sqs:{each}", QUEUE), True) for each in ("CreateQueue", "SetQueueAttributes", "DeleteQueue")),
        *((Call(f"sns:{each}", TOPIC), True) for each in ("CreateTopic", "Subscribe", "DeleteTopic")),
        *((Call(f"cloudwatch:{each}", ALARM), True) for each in ("PutMetricAlarm", "DescribeAlarms", "DeleteAlarms")),
        (Call("glue:CreateDatabase", f"{GLUE}:database/demo_air", DEMO.asked), True),
        (Call("glue:CreateDatabase", f"{GLUE}:database/demo_air"), False),
        (Call("glue:GetDatabase", f"{GLUE}:database/demo_air"), True),
        (Call("glue:DeleteDatabase", f"{GLUE}:database/demo_air", DEMO.tagged), True),
        (Call("glue:DeleteDatabase", f"{GLUE}:database/demo_air"), False),
        *((Call(f"events:{each}", RULE), True) for each in ("PutRule", "PutTargets", "RemoveTargets", "DeleteRule")),
        (Call("events:PutRule", RULE.replace(DEMO.id, "0000000000")), False),
        *(
            (Call("glue:DeleteDatabase", f"{GLUE}:{what}"), True)  # with all that is in it
            for what in ("catalog", "table/demo_air/flights", "userDefinedFunction/demo_air/any")
        ),
        (Call("glue:DeleteDatabase", f"{GLUE}:table/orders/flights"), False),
        (Call("iam:PassRole", SCHEDULER), False),
        (Call("iam:PassRole", "arn:aws:iam::123456789012:role/admin", TO_SCHEDULER), False),
        (Call("scheduler:DeleteSchedule", SCHEDULE.replace(DEMO.id, "0000000000")), False),
        (Call("sqs:ReceiveMessage", QUEUE), False),
        (Call("sns:Publish", TOPIC), False),
        (Call("cloudwatch:DeleteAlarms", ALARM.replace(DEMO.id, "0000000000")), False),
        (Call("glue:DeleteDatabase", f"{GLUE}:database/orders"), False),
    ],
)
def test_the_deploying_role(call: Call, allowed: bool) -> None:
    assert is_allowed(call, deploying()) is allowed
