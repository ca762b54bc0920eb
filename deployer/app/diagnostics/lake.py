"""Checks of `doctor` that ask AWS about the lake: its bucket, the permissions of the user who runs it, and quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from deployer.app.diagnostics.aws import (
    NO_ANSWER,
    Aws,
    aws_message,
    aws_partition,
    code_of,
    one_line,
    without_credentials,
)
from deployer.app.diagnostics.checks import Finding, not_applicable, ok, warning, wrong
from deployer.compute.iam.deploying import deploying_grants
from deployer.compute.iam.grants import Grant
from deployer.compute.iam.lake import LakeOnAws
from deployer.compute.schedules.schedules import declares_services
from deployer.platform.aws.error_codes import DENIED
from deployer.platform.text.formatting import count
from deployer.specs.model import Cluster, Lake

_NAMED = 6  #: calls that the text lists; the JSON form has all of them
_PAGE = "docs/aws-permissions.md"
_KINDS = ("emr-serverless", "emr")
_LISTS = ("cloudwatch:AlarmActions", "events:TargetArn")  #: context keys of a request that have several values


def lake_on_aws(aws: Aws, lake: Lake) -> LakeOnAws:
    """Returns the lake in the account of the caller."""
    account, _ = aws.identity
    region = str(lake.instance.state.options.get("region") or aws.region)
    return LakeOnAws.of(lake.instance, region, account, aws_partition(aws, region))


def unready(aws: Aws) -> str:
    """Returns why AWS cannot be asked about the lake; empty where it can be asked."""
    if why := without_credentials(aws):
        return why
    if not aws.region:
        return "there is no region"
    try:
        aws.identity  # noqa: B018 -- with bad credentials there is one finding instead of four
    except ClientError as error:
        return f"STS did not report the caller's identity: {code_of(error)}"
    except NO_ANSWER:
        return "STS did not answer"
    return ""


def bucket(aws: Aws, root: str, managed: str) -> Finding:
    """Checks whether the bucket exists, belongs to the caller, is in the region, keeps versions, and accepts an
    object. The check leaves no object in the bucket.

    `managed` names the AWS resources that the stack declares: all, table or none.
    """
    if why := unready(aws):
        return not_applicable(why)
    name = urlsplit(root).netloc
    s3 = aws.client("s3")
    try:
        place = s3.head_bucket(Bucket=name).get("BucketRegion")
    except ClientError as error:
        return _no_bucket(error, name, aws, managed)
    except NO_ANSWER as error:
        return wrong(one_line(error), "see the endpoints")
    if place and place != aws.region:
        return _elsewhere(name, place, aws)
    if refused := _refused(s3, name, urlsplit(root).path.strip("/")):
        return refused
    try:
        versions = s3.get_bucket_versioning(Bucket=name).get("Status") == "Enabled"
    except ClientError as error:
        return warning(
            f"{name}: whether it keeps versions is unknown: {aws_message(error)}", "allow s3:GetBucketVersioning"
        )
    if not versions:
        remedy = (
            "deployer up"
            if managed == "all"
            else "turn versions on, so that objects that are deleted by mistake can be restored"
        )
        return warning(f"{name} in {place or aws.region} keeps no versions", remedy, region=place, versioning=False)
    return ok(f"{name} in {place or aws.region}, with versions; it can be written to", region=place, versioning=True)


def _no_bucket(error: ClientError, name: str, aws: Aws, managed: str) -> Finding:
    headers: Mapping[str, str] = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    place = headers.get("x-amz-bucket-region")
    match error.response.get("ResponseMetadata", {}).get("HTTPStatusCode"):
        case 404 if managed == "all":
            return ok(f"{name} does not exist yet: `deployer up` creates it")
        case 404:
            remedy = f"create it: aws s3api create-bucket --bucket {name}, or set deployer:aws to all"
            return wrong(f"there is no bucket {name}", remedy)
        case 301 | 400 | 307 if place and place != aws.region:
            return _elsewhere(name, place, aws)
        case 403:
            what = f"{name} belongs to another account, or s3:ListBucket on it is not allowed"
            return wrong(what, f"choose another `root`, or allow what {_PAGE} lists")
        case _:
            return wrong(f"{name}: {aws_message(error)}", "see the AWS error")


def _elsewhere(name: str, place: str, aws: Aws) -> Finding:
    return wrong(f"{name} is in {place}, and the region is {aws.region}", f"set AWS_REGION={place}", region=place)


def _refused(s3: Any, name: str, prefix: str) -> Finding | None:
    """Returns why the lake's objects cannot be listed or written; None where they can. To test a write, an upload is
    begun and aborted, so nothing is written."""
    key = "/".join(part for part in (prefix, "_state", "doctor") if part)
    try:
        s3.list_objects_v2(Bucket=name, Prefix=f"{prefix}/" if prefix else "", MaxKeys=1)
        upload = s3.create_multipart_upload(Bucket=name, Key=key)["UploadId"]
        s3.abort_multipart_upload(Bucket=name, Key=key, UploadId=upload)
    except ClientError as error:
        if error.operation_name == "CreateMultipartUpload" and code_of(error) in DENIED:
            return warning(
                f"{name} can be read, and its objects cannot be written: {aws_message(error)}",
                f"enough for previews and queries; `up` needs what {_PAGE} lists",
            )
        return wrong(f"{name}: {error.operation_name} failed: {aws_message(error)}", f"allow what {_PAGE} lists")
    return None


def permissions(aws: Aws, lake: Lake, root: str, managed: str) -> Finding:
    """Checks whether IAM would allow what `up` needs. IAM simulates the calls; none of them is made."""
    if why := unready(aws):
        return not_applicable(why)
    account, arn = aws.identity
    where = lake_on_aws(aws, lake)
    iam = aws.client("iam")
    kind = arn.split(":")[5].partition("/")[0]
    if kind == "root":
        return warning("the account's root user may do everything", "use a role that may do no more than it needs")
    if kind not in ("user", "assumed-role"):
        return not_applicable(f"IAM does not simulate for {kind}")
    principal = arn if kind == "user" else _role(iam, arn, account, where.partition)
    parts = {"lake", "table", *(["bucket"] if managed == "all" else [])}
    if managed != "none":
        parts.update(part for kind in _KINDS if clusters_of(lake, kind) for part in ("clusters", kind))
        if where.kinds:
            parts.update({"alarms", *(["budget"] if lake.instance.aws.budget != 0 else [])})
        if declares_services(lake):
            parts.add("services")
        parts.add("key")
    wanted = [grant for grant in deploying_grants(where) if grant.part in parts]
    denied = simulated(iam, principal, wanted)
    if isinstance(denied, Finding):
        return denied
    number = sum(len(grant.calls) * len(grant.examples) for grant in wanted)
    if denied:
        what = f"{len(denied)} of {number} calls are denied to {principal}: {first_of(denied)}"
        return wrong(what, f"allow them; {_PAGE} has the whole policy", denied=denied, principal=principal)
    return ok(f"{number} calls that `up` makes are allowed to {principal}", principal=principal, calls=number)


def _role(iam: Any, arn: str, account: str, partition: str) -> str:
    """Returns the ARN of a session's role. IAM is asked, because the session's ARN lacks the role's path."""
    name = arn.split("/")[1]
    with suppress(ClientError, *NO_ANSWER):
        return str(iam.get_role(RoleName=name)["Role"]["Arn"])
    return f"arn:{partition}:iam::{account}:role/{name}"


def simulated(iam: Any, principal: str, grants: Sequence[Grant]) -> list[str] | Finding:
    """Returns the calls that IAM would deny, such as `s3:PutObject on ARN`; a finding where IAM does not answer."""
    try:
        return [call for grant in grants for call in _denied(iam, principal, grant)]
    except ClientError as error:
        if code_of(error) in DENIED:
            what = f"not checked: {principal} may not simulate. `up` reports a denied action when it runs"
            return warning(what, "allow iam:SimulatePrincipalPolicy on this role or user, and iam:GetRole")
        return warning(f"not checked: {aws_message(error)}", "see the AWS error")
    except NO_ANSWER as error:
        return warning(f"not checked: {one_line(error)}", "check the network and the proxy")


def first_of(denied: Sequence[str]) -> str:
    """Returns the first calls as a text, with the number of the other ones."""
    return ", ".join(denied[:_NAMED]) + (f" and {len(denied) - _NAMED} more" if len(denied) > _NAMED else "")


def _denied(iam: Any, principal: str, grant: Grant) -> list[str]:
    """Returns the calls of a grant that IAM would not allow, as `s3:PutObject on ARN`."""
    context = [
        {
            "ContextKeyName": key,
            "ContextKeyValues": [value],
            "ContextKeyType": "stringList" if key in _LISTS else "string",
        }
        for key, value in grant.context.items()
    ]
    pages = iam.get_paginator("simulate_principal_policy").paginate(
        PolicySourceArn=principal,
        ActionNames=list(grant.calls),
        ResourceArns=list(grant.examples),
        ContextEntries=context,
    )
    return [
        f"{each['EvalActionName']} on {each.get('EvalResourceName', '*')}"
        for page in pages
        for each in page["EvaluationResults"]
        if each["EvalDecision"] != "allowed"
    ]


def clusters_of(lake: Lake | None, kind: str) -> list[Cluster]:
    """Returns the declared clusters of a kind; an empty list where the specs cannot be read."""
    return [each for each in lake.instance.clusters if each.kind == kind] if lake else []


def quotas(aws: Aws, lake: Lake) -> Finding:
    """Compares the account's quota of EMR Serverless vCPUs with the largest declared cluster."""
    clusters = clusters_of(lake, "emr-serverless")
    if not clusters:
        return not_applicable("no cluster of kind emr-serverless is declared")
    if why := unready(aws):
        return not_applicable(why)
    try:
        most = _most_cpus(aws.client("service-quotas"))
    except ClientError as error:
        what = f"the vCPU quota of EMR Serverless is unknown: {aws_message(error)}"
        return warning(what, "allow servicequotas:ListServiceQuotas, or check Service Quotas in the console")
    except NO_ANSWER as error:
        return warning(f"Service Quotas did not answer: {one_line(error)}", "check Service Quotas in the console")
    if most is None:
        return warning("Service Quotas has no vCPUs of EMR Serverless", "check Service Quotas in the console")
    return judged_quota(most, clusters)


def judged_quota(most: float, clusters: Sequence[Cluster]) -> Finding:
    """Judges the quota of `most` concurrent vCPUs in the account. A cluster needs vCPUs for its workers and a
    driver."""
    over = [f"{each.name} ({need:g})" for each in clusters if (need := _cpus(each)) is not None and need > most]
    what_is_there = f"{most:g} vCPUs of EMR Serverless at a time"
    if over:
        what = f"{what_is_there}, and {', '.join(over)} may take more"
        return warning(what, "request a higher quota in Service Quotas, or lower `max_workers`", vcpus=most)
    return ok(f"{what_is_there}; {count(len(clusters), 'cluster')} within it", vcpus=most)


def _cpus(cluster: Cluster) -> int | None:
    from deployer.compute.clusters import most_workers
    from deployer.compute.iam.jobs import CORES

    cores = cluster.options.get("cores", CORES)
    return (most_workers(cluster.options) + 1) * cores if isinstance(cores, int) else None


def _most_cpus(quotas: Any) -> float | None:
    for page in quotas.get_paginator("list_service_quotas").paginate(ServiceCode="emr-serverless"):
        for quota in page["Quotas"]:
            if "vcpu" in quota["QuotaName"].lower():
                return float(quota["Value"])
    return None
