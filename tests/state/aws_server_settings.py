"""Settings that the stack declares and moto drops: of EMR Serverless release, architecture, monitoring and what is kept
ready, the keys of log groups, and the keys of tables that are there. Each is kept as the call said it.
"""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.dynamodb.responses import DynamoHandler
from moto.emrserverless.responses import EMRServerlessResponse
from moto.logs.responses import LogsResponse

_update_table = DynamoHandler.update_table
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


def associate_kms_key(self: LogsResponse) -> str:
    group: Any = self.logs_backend.groups[self._get_param("logGroupName")]
    group.kms_key_id = self._get_param("kmsKeyId")
    return ""


def disassociate_kms_key(self: LogsResponse) -> str:
    group: Any = self.logs_backend.groups[self._get_param("logGroupName")]
    group.kms_key_id = None
    return ""


def update_table(self: DynamoHandler) -> ActionResult:
    if encryption := self.body.get("SSESpecification"):
        table: Any = self.dynamodb_backend.get_table(self.body["TableName"])
        table.sse_specification = encryption if encryption["Enabled"] else None
    return _update_table(self)


def extend() -> None:
    """Keeps them from now on."""
    serverless: Any = EMRServerlessResponse
    serverless.create_application = _keeping_settings(serverless.create_application)
    serverless.update_application = _keeping_settings(serverless.update_application)
    logs: Any = LogsResponse
    logs.associate_kms_key = associate_kms_key
    logs.disassociate_kms_key = disassociate_kms_key
    tables: Any = DynamoHandler
    tables.update_table = update_table
