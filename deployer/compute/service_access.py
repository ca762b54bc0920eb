"""What `deployer up` needs of IAM for table services on AWS: schedules, alarms and Glue's databases. Pure."""

from __future__ import annotations

import re

from deployer.compute.aws_access import readable
from deployer.compute.grants import Grant


def deploying_service_grants(instance: str, region: str, account: str, partition: str = "aws") -> tuple[Grant, ...]:
    """Of what has the instance's name alone, where AWS lets that be said."""
    own = f"deployer-{readable(instance)}-"

    def arn(service: str, resource: str) -> str:
        return f"arn:{partition}:{service}:{region}:{account}:{resource}"

    def grant(sid: str, actions: tuple[str, ...], place: str, **more: dict[str, str]) -> Grant:
        condition = {"StringEquals": more["keys"]} if "keys" in more else {}
        return Grant(sid, "services", actions, (f"{place}*",), (f"{place}example",), condition, more.get("keys", {}))

    groups, topics = arn("scheduler", f"schedule-group/{own}"), arn("sns", own)
    database = f"{re.sub('[^a-z0-9_]', '_', instance.lower())}_"
    # Who deletes a database deletes what METASYNC has put into it: Glue asks for a right to all kinds of that.
    inside = (f"{kind}/{database}*/*" for kind in ("table", "userDefinedFunction"))
    catalog = tuple(arn("glue", what) for what in ("catalog", f"database/{database}*", *inside))
    return (
        grant("ScheduleGroups", _of("scheduler", "ScheduleGroup", _CRD) + _of("scheduler", "", _TAGS), groups),
        grant("Schedules", _of("scheduler", "Schedule", (*_CRD, "Update")), arn("scheduler", f"schedule/{own}")),
        grant(
            "GiveSchedulerItsRole",
            ("iam:PassRole",),
            f"arn:{partition}:iam::{account}:role/{own}",
            keys={"iam:PassedToService": "scheduler.amazonaws.com"},
        ),
        grant("Queues", _of("sqs", "", _QUEUE), arn("sqs", own)),
        grant("Topics", _of("sns", "", _TOPIC), topics),
        Grant("Subscriptions", "services", _SUBSCRIPTION, ("*",), (f"{topics}example:00example",)),
        grant("Alarms", _of("cloudwatch", "", _ALARM), arn("cloudwatch", f"alarm:{own}")),
        grant("Rules", _of("events", "", _RULE), arn("events", f"rule/{own}")),
        Grant(
            "Catalog",
            "services",
            _of("glue", "", _DATABASE),
            catalog,
            (arn("glue", f"database/{database}example"),),
        ),
    )


def _of(service: str, what: str, actions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{service}:{action}{what}" for action in actions)


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
#: IAM knows no resources of these two.
_SUBSCRIPTION = ("sns:GetSubscriptionAttributes", "sns:Unsubscribe")
_ALARM = ("DeleteAlarms", "DescribeAlarms", "PutMetricAlarm", *_TAGS)
_RULE = ("DeleteRule", "DescribeRule", "ListTargetsByRule", "PutRule", "PutTargets", "RemoveTargets", *_TAGS)
_DATABASE = (
    "CreateDatabase",
    "DeleteDatabase",
    "GetDatabase",
    "GetTags",
    "TagResource",
    "UntagResource",
    "UpdateDatabase",
)
