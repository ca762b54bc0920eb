"""The permissions of jobs to load files automatically: to read the places and the queues that the tables' `ingest`
names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from deployer.compute.iam.jobs import POLICY_VERSION, Policy
from deployer.compute.jobs.code import REMOTE_KINDS
from deployer.compute.schedules.schedules import default_cluster
from deployer.errors import InvalidInput
from deployer.specs.model import Lake

_URL = re.compile(r"https://sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?/(?P<account>[0-9]{12})/(?P<name>[\w-]+)")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class LandingPlaces:
    """The places that the runs on one cluster read: s3:// addresses of files, and ARNs of queues."""

    files: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


def landing_places(lake: Lake) -> dict[str, LandingPlaces]:
    """Returns the places that runs of INGEST read, by the name of the cluster on AWS that runs them. Raises
    InvalidInput for the URL of a queue that does not contain the queue's ARN."""
    remote = {cluster.name: cluster for cluster in lake.instance.clusters if cluster.kind in REMOTE_KINDS}
    usual = default_cluster(remote.values())
    files, queues = dict[str, list[str]](), dict[str, list[str]]()
    for table in sorted(lake.tables, key=lambda each: each.full_name):
        for service in table.services:
            cluster = service.cluster or (usual.name if usual else None)
            if service.kind != "INGEST" or cluster not in remote:
                continue
            named: Any = service.options.get("files", ())
            places = [each for each in ((named,) if isinstance(named, str) else named) if each.startswith("s3://")]
            if not places:
                continue
            files.setdefault(cluster, []).extend(places)
            if queue := service.options.get("queue"):
                queues.setdefault(cluster, []).append(queue_arn(str(queue), table.address))
    return {
        cluster: LandingPlaces(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(queues.get(cluster, ()))))
        for cluster, found in files.items()
    }


def queue_arn(queue: str, where: str) -> str:
    """Returns the ARN of a queue from its ARN or URL. Raises InvalidInput for a URL from which the ARN cannot be
    derived."""
    if queue.startswith("arn:"):
        return queue
    if (found := _URL.fullmatch(queue)) is None:
        raise InvalidInput(
            f"the URL {queue} does not show the queue's ARN, which the role of its runs needs",
            where=where,
            remedy="write the ARN: arn:aws:sqs:REGION:ACCOUNT:NAME",
        )
    partition = "aws-cn" if found["region"].startswith("cn-") else "aws"
    return f"arn:{partition}:sqs:{found['region']}:{found['account']}:{found['name']}"


def landing_policy(places: LandingPlaces, partition: str) -> Policy:
    """Returns the permissions to list and read these places, and to receive messages from these queues, but not to
    write."""
    statements = [_listing(bucket, prefixes, partition) for bucket, prefixes in _by_bucket(places.files).items()]
    statements.append(
        {
            "Sid": "ReadLandedFiles",
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": sorted(
                f"arn:{partition}:s3:::{bucket}/{prefix}*"
                for bucket, prefixes in _by_bucket(places.files).items()
                for prefix in prefixes
            ),
        }
    )
    if places.queues:
        statements.append(
            {
                "Sid": "TakeNotifications",
                "Effect": "Allow",
                "Action": ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                "Resource": sorted(places.queues),
            }
        )
    return {"Version": POLICY_VERSION, "Statement": statements}


def _listing(bucket: str, prefixes: Sequence[str], partition: str) -> dict[str, Any]:
    statement: dict[str, Any] = {
        "Sid": f"ListLandedFiles{re.sub('[^0-9A-Za-z]', '', bucket.title())}",
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": f"arn:{partition}:s3:::{bucket}",
    }
    if "" not in prefixes:
        statement["Condition"] = {"StringLike": {"s3:prefix": [f"{prefix}*" for prefix in prefixes]}}
    return statement


def _by_bucket(places: Iterable[str]) -> dict[str, list[str]]:
    """Returns the folders of places by bucket. A folder ends with `/`; an empty folder is the whole bucket."""
    found: dict[str, list[str]] = {}
    for place in places:
        bucket, _, key = place.removeprefix("s3://").partition("/")
        parts = [part for part in key.split("/") if part]
        fixed = next((i for i, part in enumerate(parts) if _GLOB.search(part)), len(parts))
        prefix = "".join(f"{part}/" for part in parts[:fixed])
        if prefix not in found.setdefault(bucket, []):
            found[bucket].append(prefix)
    return {bucket: sorted(prefixes) for bucket, prefixes in sorted(found.items())}
