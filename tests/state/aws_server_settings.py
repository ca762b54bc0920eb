"""Settings that the stack declares and moto drops: of EMR Serverless release, architecture, monitoring and what is kept
ready; the keys of log groups, and of tables that are there; ceilings of tables; rules of replication;
tags and subscribers of budgets. Each is kept as the call said it.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from moto.budgets.responses import BudgetsResponse
from moto.core.responses import ActionResult
from moto.dynamodb.models.table import Table
from moto.dynamodb.responses import DynamoHandler
from moto.emrserverless import urls as serverless_urls
from moto.emrserverless.responses import EMRServerlessResponse
from moto.logs.responses import LogsResponse
from moto.s3.responses import S3Response

_update_table = DynamoHandler.update_table
_create_table = DynamoHandler.create_table
_describe_table = Table.describe
_replication, _get_bucket_replication = S3Response._replication_config_from_xml, S3Response.get_bucket_replication
_create_budget = BudgetsResponse.create_budget
_SETTINGS = {
    "releaseLabel": "release_label",
    "architecture": "architecture",
    "monitoringConfiguration": "monitoring_configuration",
    "initialCapacity": "initial_capacity",
}


def _keeping_settings(call: Any) -> Any:
    """The call of EMR Serverless, with what moto drops of it kept with the application."""

    def keeping(self: EMRServerlessResponse) -> ActionResult:
        result: ActionResult = call(self)
        made: Any = result.result
        known = self.emrserverless_backend.applications
        application: Any = made["application"] if "application" in made else known[made["applicationId"]]
        for parameter, name in _SETTINGS.items():
            if (value := self._get_param(parameter)) is not None:
                setattr(application, name, value)
        return result

    return keeping


def _application_of(self: EMRServerlessResponse) -> Any:
    arn = unquote(self.path).partition("/tags/")[2]
    known: Any = self.emrserverless_backend.applications
    return known[arn.rpartition("/")[2]]


def tag_application(self: EMRServerlessResponse) -> ActionResult:
    application = _application_of(self)
    application.tags = {**application.tags, **self._get_param("tags")}
    return ActionResult({})


def untag_application(self: EMRServerlessResponse) -> ActionResult:
    application = _application_of(self)
    gone = self.querystring["tagKeys"]
    application.tags = {name: value for name, value in application.tags.items() if name not in gone}
    return ActionResult({})


def associate_kms_key(self: LogsResponse) -> str:
    group: Any = self.logs_backend.groups[self._get_param("logGroupName")]
    group.kms_key_id = self._get_param("kmsKeyId")
    return ""


def disassociate_kms_key(self: LogsResponse) -> str:
    group: Any = self.logs_backend.groups[self._get_param("logGroupName")]
    group.kms_key_id = None
    return ""


def create_table(self: DynamoHandler) -> ActionResult:
    result: ActionResult = _create_table(self)
    _keep_ceiling(self)
    return result


def _keep_ceiling(self: DynamoHandler) -> None:
    if ceiling := self.body.get("OnDemandThroughput"):
        table: Any = self.dynamodb_backend.get_table(self.body["TableName"])
        kept = {name: value for name, value in ceiling.items() if value != -1}
        table.on_demand_throughput = {**getattr(table, "on_demand_throughput", {}), **kept} if kept else {}


def describe_table(self: Table, base_key: str = "TableDescription") -> dict[str, Any]:
    found: dict[str, Any] = _describe_table(self, base_key)
    if ceiling := getattr(self, "on_demand_throughput", None):
        found[base_key]["OnDemandThroughput"] = ceiling
    return found


def replication_config_from_xml(self: S3Response, xml: str) -> dict[str, Any]:
    bucket: Any = self.backend.get_bucket(self.bucket_name)
    bucket.replication_as_put = xml
    found: dict[str, Any] = _replication(self, xml)
    return found


def get_bucket_replication(self: S3Response) -> Any:
    answer = _get_bucket_replication(self)  # raises where there is none
    return getattr(self.backend.get_bucket(self.bucket_name), "replication_as_put", answer)


def create_budget(self: BudgetsResponse) -> str:
    answer: str = _create_budget(self)
    account, name = self._get_param("AccountId"), self._get_param("Budget")["BudgetName"]
    budget: Any = self.backend.budgets[account][name]
    budget.tags = {each["Key"]: each["Value"] for each in self._get_param("ResourceTags", [])}
    return answer


def _budget_of(self: BudgetsResponse, arn: str) -> Any:
    return self.backend.budgets[arn.split(":")[4]][arn.rpartition("/")[2]]


def list_budget_tags(self: BudgetsResponse) -> str:
    tags = _budget_of(self, self._get_param("ResourceARN")).tags
    return json.dumps({"ResourceTags": [{"Key": key, "Value": value} for key, value in tags.items()]})


def tag_budget(self: BudgetsResponse) -> str:
    budget = _budget_of(self, self._get_param("ResourceARN"))
    budget.tags |= {each["Key"]: each["Value"] for each in self._get_param("ResourceTags")}
    return "{}"


def untag_budget(self: BudgetsResponse) -> str:
    budget = _budget_of(self, self._get_param("ResourceARN"))
    budget.tags = {key: value for key, value in budget.tags.items() if key not in self._get_param("ResourceTagKeys")}
    return "{}"


def budget_subscribers(self: BudgetsResponse) -> str:
    budget = self.backend.budgets[self._get_param("AccountId")][self._get_param("BudgetName")]
    wanted = self._get_param("Notification")["NotificationType"]
    found: Any = next(each.subscribers for each in budget.notifications if each.details["NotificationType"] == wanted)
    return json.dumps({"Subscribers": found})


def update_budget(self: BudgetsResponse) -> str:
    wanted = self._get_param("NewBudget")
    self.backend.budgets[self._get_param("AccountId")][wanted["BudgetName"]].budget |= wanted
    return "{}"


def update_table(self: DynamoHandler) -> ActionResult:
    _keep_ceiling(self)
    if encryption := self.body.get("SSESpecification"):
        table: Any = self.dynamodb_backend.get_table(self.body["TableName"])
        table.sse_specification = encryption if encryption["Enabled"] else None
    return _update_table(self)


def extend() -> None:
    """Keeps them from now on."""
    serverless: Any = EMRServerlessResponse
    serverless.create_application = _keeping_settings(serverless.create_application)
    serverless.update_application = _keeping_settings(serverless.update_application)
    serverless.tag_resource = tag_application
    serverless.untag_resource = untag_application
    serverless_urls.url_paths["{0}/tags/(?P<resourceArn>.+)$"] = EMRServerlessResponse.dispatch
    logs: Any = LogsResponse
    logs.associate_kms_key = associate_kms_key
    logs.disassociate_kms_key = disassociate_kms_key
    tables: Any = DynamoHandler
    tables.update_table = update_table
    tables.create_table = create_table
    table: Any = Table
    table.describe = describe_table
    buckets: Any = S3Response
    buckets._replication_config_from_xml = replication_config_from_xml
    buckets.get_bucket_replication = get_bucket_replication
    budgets: Any = BudgetsResponse
    budgets.create_budget = create_budget
    budgets.update_budget = update_budget
    budgets.list_tags_for_resource = list_budget_tags
    budgets.tag_resource = tag_budget
    budgets.untag_resource = untag_budget
    budgets.describe_subscribers_for_notification = budget_subscribers
