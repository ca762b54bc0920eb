"""A server between a client and moto that notes each request as what IAM would be asked: action, resource, context.

The context has what conditions of this project's policies look at. A resource that AWS names by an id counts as having
the lake's tag, as the stack makes no other; what it has indeed, the tests of the stack look at.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from deployer.compute.iam.lake import LakeOnAws
from tests.stacks.policies import Call
from tests.state.faults import Proxy, _Handler

Request = Mapping[str, Any]


@contextmanager
def recording(target: str, lake: LakeOnAws) -> Iterator[tuple[str, list[Call]]]:
    """The URL of a server that hands on to `target`, and the calls that come through it, as they come."""
    calls: list[Call] = []

    class Handler(_Recording):
        proxy = Proxy(target, {}, 0, 1)
        told = staticmethod(lambda request: calls.extend(calls_of(request, lake)))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", calls
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Recording(_Handler):
    told: Callable[[Request], None]

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        url = urlsplit(self.path)
        asked = self._described(body)
        self.told(
            {
                "service": asked.service,
                "operation": asked.operation,
                "method": self.command,
                "path": unquote(url.path),
                "query": {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()},
                "body": body,
            }
        )
        return super()._forwarded(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _Handler.handle_any  # noqa: N815


def calls_of(request: Request, lake: LakeOnAws) -> list[Call]:
    """What IAM is asked for a request. KeyError for one that is unknown here."""
    service = request["service"]
    if service == "s3":
        return list(_s3(request, lake))
    if service in ("iam", "sns", "sts"):
        form = {key: values[0] for key, values in parse_qs(request["body"].decode()).items()}
        return list(_QUERY[service](request["operation"], form, lake))
    text = request["body"].decode() or "{}"
    body = json.loads(text) if text.startswith("{") else {}
    return list(_JSON[service](request, body, lake))


_SETTINGS = {
    "tagging": "BucketTagging",
    "versioning": "BucketVersioning",
    "encryption": "EncryptionConfiguration",
    "publicAccessBlock": "BucketPublicAccessBlock",
    "ownershipControls": "BucketOwnershipControls",
    "policy": "BucketPolicy",
    "lifecycle": "LifecycleConfiguration",
    "logging": "BucketLogging",
    "replication": "ReplicationConfiguration",
    "object-lock": "BucketObjectLockConfiguration",
    "location": "BucketLocation",
}


def _s3(request: Request, lake: LakeOnAws) -> Iterator[Call]:
    bucket, _, key = request["path"].lstrip("/").partition("/")
    arn, query, method = f"arn:aws:s3:::{bucket}", request["query"], request["method"]
    if not key:
        if setting := next((_SETTINGS[name] for name in query if name in _SETTINGS), None):
            yield Call(f"s3:{'Get' if method == 'GET' else 'Put'}{setting}", arn)
        elif "delete" in query:
            for each in re.findall(rb"<Key>(.*?)</Key>", request["body"]):
                yield Call("s3:DeleteObject", f"{arn}/{each.decode()}")
        elif method == "PUT":
            yield Call("s3:CreateBucket", arn)
        else:
            yield Call("s3:ListBucket", arn, {"s3:prefix": query.get("prefix", "")} if "prefix" in query else {})
        return
    action = {
        "GET": "GetObject",
        "HEAD": "GetObject",
        "PUT": "PutObject",
        "POST": "PutObject",
        "DELETE": "DeleteObject",
    }
    name = "AbortMultipartUpload" if method == "DELETE" and "uploadId" in query else action[method]
    yield Call(f"s3:{'GetObjectTagging' if 'tagging' in query else name}", f"{arn}/{key}")


def _request_tags(tags: Any, key: str = "Key", value: str = "Value") -> dict[str, str]:
    pairs = tags.items() if isinstance(tags, Mapping) else ((each[key], each[value]) for each in tags or ())
    return {f"aws:RequestTag/{name}": text for name, text in pairs}


#: Those whose context has the boundary
#: (https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsidentityandaccessmanagementiam.html).
_BOUNDED = (
    "AttachRolePolicy", "CreateRole", "DeleteRolePermissionsBoundary", "DeleteRolePolicy", "DetachRolePolicy",
    "PutRolePermissionsBoundary", "PutRolePolicy",
)  # fmt: skip


def _iam(operation: str, form: Mapping[str, str], lake: LakeOnAws) -> Iterator[Call]:
    arn = f"arn:aws:iam::{lake.account}:"
    bounded = {"iam:PermissionsBoundary": lake.boundary} if operation in _BOUNDED else {}  # of the role that is there
    if "InstanceProfileName" in form:
        yield Call(f"iam:{operation}", f"{arn}instance-profile/{form['InstanceProfileName']}")
        if operation == "AddRoleToInstanceProfile":
            yield Call("iam:PassRole", _role(form["RoleName"], lake), {"iam:PassedToService": "ec2.amazonaws.com"})
        return
    context = {**bounded, **({"iam:PolicyARN": form["PolicyArn"]} if "PolicyArn" in form else {})}
    if operation == "CreateRole":
        context = {"iam:PermissionsBoundary": form["PermissionsBoundary"]} if "PermissionsBoundary" in form else {}
        yield Call("iam:CreateRole", f"{arn}role{form['Path']}{form['RoleName']}", context)
        return
    yield Call(f"iam:{operation}", _role(form["RoleName"], lake), context)


def _role(name: str, lake: LakeOnAws) -> str:
    return next((each for each in lake.borrowed_roles if each.endswith(f"/{name}")), f"{lake.roles}{name}")


def _sns(operation: str, form: Mapping[str, str], lake: LakeOnAws) -> Iterator[Call]:
    arn = form.get("TopicArn") or form.get("ResourceArn") or form.get("SubscriptionArn") or ""
    yield Call(f"sns:{operation}", arn or lake.arn("sns", form["Name"]))
    if operation == "CreateTopic":
        yield Call("sns:TagResource", lake.arn("sns", form["Name"]))


def _kms(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    operation, keys = request["operation"], dict(lake.of_keys)
    if operation == "CreateKey":
        asked = _request_tags(body.get("Tags"), "TagKey", "TagValue")
        yield Call("kms:CreateKey", "*", asked)
        yield Call("kms:TagResource", lake.arn("kms", "key/new"), asked)
        return
    if operation == "ListAliases":
        yield Call("kms:ListAliases", "*")
        return
    if "AliasName" in body:
        yield Call(f"kms:{operation}", lake.arn("kms", body["AliasName"]))
    key = body.get("KeyId") or body.get("TargetKeyId") or "any"
    arn = key if key.startswith("arn:") else lake.arn("kms", f"key/{key}")
    yield Call(f"kms:{operation}", arn, {**keys, **_request_tags(body.get("Tags"), "TagKey", "TagValue")})


def _dynamodb(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    operation = request["operation"]
    names = {
        "TransactWriteItems": {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"},
        "TransactGetItems": {"Get": "GetItem"},
    }
    if operation in names:
        checks = {**names[operation], "ConditionCheck": "ConditionCheckItem"}
        for item in body["TransactItems"]:
            for kind, about in item.items():
                yield Call(f"dynamodb:{checks[kind]}", lake.arn("dynamodb", f"table/{about['TableName']}"))
        return
    if operation == "BatchGetItem" or operation == "BatchWriteItem":
        for table in body["RequestItems"]:
            yield Call(f"dynamodb:{operation}", lake.arn("dynamodb", f"table/{table}"))
        return
    arn = body.get("ResourceArn") or lake.arn("dynamodb", f"table/{body['TableName']}")
    yield Call(f"dynamodb:{operation}", f"{arn}/index/{body['IndexName']}" if "IndexName" in body else arn)
    if body.get("Tags") and operation == "CreateTable":
        yield Call("dynamodb:TagResource", arn)


def _emr(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    operation, cluster = request["operation"], lake.arn("elasticmapreduce", "cluster/")
    if "SecurityConfiguration" in operation:
        yield Call(f"elasticmapreduce:{operation}", "*")
    elif operation == "RunJobFlow":
        asked = _request_tags(body.get("Tags"))
        yield Call("elasticmapreduce:RunJobFlow", f"{cluster}*", asked)
        yield Call("elasticmapreduce:AddTags", f"{cluster}*", asked)
        for role, service in ((body["ServiceRole"], "elasticmapreduce"),):
            yield Call("iam:PassRole", role, {"iam:PassedToService": f"{service}.amazonaws.com"})
    elif operation == "ListClusters":
        yield Call("elasticmapreduce:ListClusters", "*")
    else:
        [*ids] = body.get("JobFlowIds") or [body.get("ClusterId") or body.get("ResourceId") or "j-1"]
        for each in ids:
            yield Call(
                f"elasticmapreduce:{operation}", f"{cluster}{each}", {**lake.tagged, **_request_tags(body.get("Tags"))}
            )


_SERVERLESS = {
    ("GET", "applications"): "GetApplication",
    ("PATCH", "applications"): "UpdateApplication",
    ("DELETE", "applications"): "DeleteApplication",
    ("GET", "tags"): "ListTagsForResource",
    ("POST", "tags"): "TagResource",
    ("DELETE", "tags"): "UntagResource",
}


def _serverless(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    first, *rest = request["path"].strip("/").split("/")
    if first == "applications" and not rest:
        asked = _request_tags(body.get("tags"))
        yield Call("emr-serverless:CreateApplication", lake.arn("emr-serverless", "/*"), asked)
        yield Call("emr-serverless:TagResource", lake.arn("emr-serverless", "/*"), asked)
        return
    arn = "/".join(rest) if first == "tags" else lake.arn("emr-serverless", f"/applications/{rest[0]}")
    operation = {"stop": "StopApplication", "start": "StartApplication"}.get(
        rest[-1], _SERVERLESS.get((request["method"], first), "")
    )
    yield Call(f"emr-serverless:{operation}", arn, {**lake.tagged, **_request_tags(body.get("tags"))})


def _logs(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    if request["operation"] == "DescribeLogGroups":
        yield Call("logs:DescribeLogGroups", lake.arn("logs", "log-group::log-stream:"))
        return
    arn = body.get("resourceArn") or lake.arn("logs", f"log-group:{body['logGroupName']}")
    yield Call(f"logs:{request['operation']}", arn)
    if body.get("tags") and request["operation"] == "CreateLogGroup":
        yield Call("logs:TagResource", arn)


_REST_NAMES = {"GET": "Get", "POST": "Create", "PUT": "Update", "DELETE": "Delete"}


def _scheduler(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    kind, *rest = request["path"].strip("/").split("/")
    verb = _REST_NAMES[request["method"]]
    if kind == "tags":
        name = {"Get": "ListTagsForResource", "Create": "TagResource", "Delete": "UntagResource"}[verb]
        yield Call(f"scheduler:{name}", "/".join(rest))
    elif kind == "schedule-groups":
        arn = lake.arn("scheduler", f"schedule-group/{rest[0]}")
        yield Call(f"scheduler:{verb}ScheduleGroup", arn)
        if body.get("Tags"):
            yield Call("scheduler:TagResource", arn)
    else:
        group = body.get("GroupName") or request["query"].get("groupName")
        yield Call(f"scheduler:{verb}Schedule", lake.arn("scheduler", f"schedule/{group}/{rest[0]}"))
        if target := body.get("Target"):
            yield Call("iam:PassRole", target["RoleArn"], {"iam:PassedToService": "scheduler.amazonaws.com"})


def _sqs(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    name = body.get("QueueName") or body["QueueUrl"].rpartition("/")[2]
    yield Call(f"sqs:{request['operation']}", lake.arn("sqs", name))
    if body.get("tags"):
        yield Call("sqs:TagQueue", lake.arn("sqs", name))


def _events(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    operation = request["operation"]
    name = body.get("Rule") or body.get("Name")
    arn = body.get("ResourceARN") or lake.arn("events", f"rule/{name}")
    targets = body.get("Targets", [])
    yield Call(f"events:{operation}", arn, {"events:TargetArn": [each["Arn"] for each in targets]} if targets else {})
    if body.get("Tags") and operation == "PutRule":
        yield Call("events:TagResource", arn)
    for each in targets:
        if "RoleArn" in each:
            yield Call("iam:PassRole", each["RoleArn"], {"iam:PassedToService": "events.amazonaws.com"})


def _cloudwatch(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    operation = request["operation"]
    names = [body["AlarmName"]] if "AlarmName" in body else body.get("AlarmNames", ())
    arns = (
        [body["ResourceARN"]] if "ResourceARN" in body else [lake.arn("cloudwatch", f"alarm:{each}") for each in names]
    )
    actions = [*body.get("AlarmActions", ()), *body.get("OKActions", ())]
    for arn in arns:
        yield Call(f"cloudwatch:{operation}", arn, {"cloudwatch:AlarmActions": actions} if actions else {})
        if body.get("Tags") and operation == "PutMetricAlarm":
            yield Call("cloudwatch:TagResource", arn)


_BUDGETS = {
    "CreateBudget": "ModifyBudget",
    "UpdateBudget": "ModifyBudget",
    "DeleteBudget": "ModifyBudget",
    "DescribeBudget": "ViewBudget",
    "DescribeNotificationsForBudget": "ViewBudget",
    "DescribeSubscribersForNotification": "ViewBudget",
}


def _budgets(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    operation = request["operation"]
    name = body.get("BudgetName") or (body.get("Budget") or body.get("NewBudget") or {}).get("BudgetName")
    arn = body.get("ResourceARN") or f"arn:aws:budgets::{lake.account}:budget/{name}"
    yield Call(f"budgets:{_BUDGETS.get(operation, operation)}", arn)
    if body.get("ResourceTags") and operation == "CreateBudget":
        yield Call("budgets:TagResource", arn)


def _glue(request: Request, body: Mapping[str, Any], lake: LakeOnAws) -> Iterator[Call]:
    operation = request["operation"]
    name = body.get("Name") or (body.get("DatabaseInput") or {}).get("Name")
    arn = body.get("ResourceArn") or lake.arn("glue", f"database/{name}")
    tags = _request_tags(body.get("Tags"))
    if "Database" in operation:
        yield Call(f"glue:{operation}", lake.arn("glue", "catalog"))
    if operation == "DeleteDatabase":
        yield Call("glue:DeleteDatabase", lake.arn("glue", f"table/{name}/any"))
        yield Call("glue:DeleteDatabase", lake.arn("glue", f"userDefinedFunction/{name}/any"))
    new = operation == "CreateDatabase"
    yield Call(f"glue:{operation}", arn, {**tags, **({} if new else lake.tagged)})
    if new and tags:
        yield Call("glue:TagResource", arn, {**tags, **lake.tagged})  # Glue has the tags of what is to be


_QUERY: Mapping[str, Any] = {"iam": _iam, "sns": _sns, "sts": lambda operation, form, lake: iter(())}
_JSON: Mapping[str, Any] = {
    "kms": _kms,
    "dynamodb": _dynamodb,
    "elasticmapreduce": _emr,
    "emr-serverless": _serverless,
    "logs": _logs,
    "scheduler": _scheduler,
    "sqs": _sqs,
    "events": _events,
    "monitoring": _cloudwatch,
    "budgets": _budgets,
    "glue": _glue,
}


def own(calls: list[Call]) -> dict[str, Call]:
    """One call of each action and kind of resource."""
    return {f"{each.action} {each.resource} {sorted(each.context)}": each for each in calls}
