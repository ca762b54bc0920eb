"""The permissions that `deployer up` needs for table services on AWS: schedules, alarms, budgets and Glue's databases.
All functions are pure.

Where the stack chooses a resource's name, the name begins with the lake's id, and a pattern of names identifies the
lake's resources. Databases in Glue have names for people (`INSTANCE_DATABASE`), and two lakes may have the same name:
there the lake's tag decides.
"""

from __future__ import annotations

import re

from deployer.compute.iam.grants import Condition, Grant, Part, equals, of
from deployer.compute.iam.lake import LakeOnAws


def deploying_service_grants(lake: LakeOnAws) -> tuple[Grant, ...]:
    """Returns the grants, which cover only resources of this lake where IAM can express that."""
    own = lake.own

    def grant(sid: str, actions: tuple[str, ...], place: str, part: Part = "services") -> Grant:
        return Grant(sid, part, actions, (f"{place}*",), (f"{place}example",))

    def limited(sid: str, action: str, place: str, kind: str, key: str, to: tuple[str, ...]) -> Grant:
        condition: Condition = {f"ForAllValues:{kind}": {key: tuple(f"{each}*" for each in to)}}
        return Grant(
            sid, "alarms", (action,), (f"{place}*",), (f"{place}example",), condition, {key: f"{to[0]}example"}
        )

    groups = lake.arn("scheduler", f"schedule-group/{own}")
    topics, queues = lake.arn("sns", own), lake.arn("sqs", own)
    alarms, rules = lake.arn("cloudwatch", f"alarm:{own}"), lake.arn("events", f"rule/{own}")
    to_services: Condition = {"StringEquals": {"iam:PassedToService": _PASSED_TO}}
    return (
        grant("ScheduleGroups", of("scheduler", _CRD, "ScheduleGroup") + of("scheduler", _TAGS), groups),
        grant("Schedules", of("scheduler", (*_CRD, "Update"), "Schedule"), lake.arn("scheduler", f"schedule/{own}")),
        Grant(
            "GiveServicesTheirRoles",
            "alarms",
            ("iam:PassRole",),
            (f"{lake.roles}*",),
            (f"{lake.roles}example",),
            to_services,
            {"iam:PassedToService": _PASSED_TO[0]},
        ),
        grant("Queues", of("sqs", _QUEUE), queues, "alarms"),
        grant("Topics", of("sns", _TOPIC), topics, "alarms"),
        Grant("Subscriptions", "alarms", of("sns", _SUBSCRIPTION), ("*",), (f"{topics}example:00example",)),
        grant("Alarms", of("cloudwatch", _ALARM), alarms, "alarms"),
        # an alarm can stop instances, and a rule can send events to many targets: only the lake's own are allowed
        limited("NewAlarms", "cloudwatch:PutMetricAlarm", alarms, "StringLike", "cloudwatch:AlarmActions", (topics,)),
        grant("Rules", of("events", _RULE), rules, "alarms"),
        limited("RuleTargets", "events:PutTargets", rules, "ArnLike", "events:TargetArn", (topics, queues)),
        grant("Budget", of("budgets", _BUDGET), f"arn:{lake.partition}:budgets::{lake.account}:budget/{own}", "budget"),
        *_catalog(lake),
    )


def glue_names(instance: str) -> str:
    """Returns the prefix of the names of a lake's databases in Glue, for targets of METASYNC without a database."""
    return f"{re.sub('[^a-z0-9_]', '_', instance.lower())}_"


def _catalog(lake: LakeOnAws) -> tuple[Grant, ...]:
    """Returns the grants for Glue. A database is deleted with its content by METASYNC; Glue requires permissions for
    all kinds of content, and for the catalog in each call. The database itself is identified by its tag."""
    begins = glue_names(lake.instance)
    databases, catalog = lake.arn("glue", f"database/{begins}"), lake.arn("glue", "catalog")
    inside = tuple(lake.arn("glue", f"{kind}/{begins}") for kind in ("table", "userDefinedFunction"))
    example = (f"{databases}example",)
    return (
        Grant("Catalog", "services", of("glue", _CHANGES), (catalog,), (catalog,)),
        Grant(
            "InsideDatabases",
            "services",
            ("glue:DeleteDatabase",),
            tuple(f"{place}*/*" for place in inside),
            tuple(f"{place}example/example" for place in inside),
        ),
        Grant(
            "NewDatabase",
            "services",
            ("glue:CreateDatabase",),
            (f"{databases}*",),
            example,
            equals(lake.asked),
            lake.asked,
        ),
        Grant(
            "Databases",
            "services",
            of("glue", _DATABASE),
            (f"{databases}*",),
            example,
            equals(lake.tagged),
            lake.tagged,
        ),
        Grant("LookAtDatabases", "services", of("glue", ("GetDatabase", "GetTags")), (f"{databases}*",), example),
    )


#: The services to which roles of the lake are passed: Scheduler starts jobs, EventBridge reports events, S3 replicates.
_PASSED_TO = ("scheduler.amazonaws.com", "events.amazonaws.com", "s3.amazonaws.com")
_CRD = ("Create", "Delete", "Get")
_TAGS = ("ListTagsForResource", "TagResource", "UntagResource")
_QUEUE = (
    "CreateQueue",
    "DeleteQueue",
    "GetQueueAttributes",
    "GetQueueUrl",
    "ListQueueTags",
    "SetQueueAttributes",
    "TagQueue",
    "UntagQueue",
)
_TOPIC = ("CreateTopic", "DeleteTopic", "GetTopicAttributes", "SetTopicAttributes", "Subscribe", *_TAGS)
#: IAM has no resource types for these two actions.
_SUBSCRIPTION = ("GetSubscriptionAttributes", "Unsubscribe")
_ALARM = ("DeleteAlarms", "DescribeAlarms", *_TAGS)
_RULE = ("DeleteRule", "DescribeRule", "ListTargetsByRule", "PutRule", "RemoveTargets", *_TAGS)
_BUDGET = ("ModifyBudget", "ViewBudget", *_TAGS)
_CHANGES = ("CreateDatabase", "DeleteDatabase", "GetDatabase", "UpdateDatabase")
_DATABASE = ("DeleteDatabase", "TagResource", "UntagResource", "UpdateDatabase")
