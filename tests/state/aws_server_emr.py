"""What moto's EMR lacks of clusters that the stack declares: instance fleets, managed scaling and idle termination.

Each is kept as `RunJobFlow` or its own call said it, and told as the API documents
(https://docs.aws.amazon.com/emr/latest/APIReference/).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.emr.models import Ec2InstanceAttributes, emr_backends
from moto.emr.responses import ElasticMapReduceResponse
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend

_run_job_flow = ElasticMapReduceResponse.run_job_flow
_attributes = Ec2InstanceAttributes.__init__
_SERVICE_POLICY = "AmazonEMRServicePolicy_v2"
_POLICIES = {"managed_scaling_policy": "ManagedScalingPolicy", "auto_termination_policy": "AutoTerminationPolicy"}


def _plain(value: Any) -> Any:
    """moto's parsed parameters as they were sent."""
    if hasattr(value, "original_dict"):
        value = value.original_dict()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _cluster(response: ElasticMapReduceResponse) -> Any:
    return response.backend.describe_cluster(response._get_param("ClusterId"))


def run_job_flow(self: ElasticMapReduceResponse) -> ActionResult:
    result = _run_job_flow(self)
    made: Any = result.result
    cluster: Any = emr_backends[self.current_account][self.region].clusters[made["JobFlowId"]]
    if cluster.log_uri:
        cluster.log_uri = cluster.log_uri.rstrip("/") + "/"
    cluster.fleets = _plain(self._get_param("Instances.InstanceFleets", []))
    cluster.requested_subnets = _plain(self._get_param("Instances.Ec2SubnetIds", []))
    cluster.log_encryption_kms_key_id = self._get_param("LogEncryptionKmsKeyId")
    for name, parameter in _POLICIES.items():
        setattr(cluster, name, _plain(self._get_param(parameter)))
    return result


def _with_subnets(self: Ec2InstanceAttributes, cluster: Any) -> None:
    _attributes(self, cluster)
    more: Any = self
    more.requested_ec2_subnet_ids = cluster.requested_subnets


def list_instance_fleets(self: ElasticMapReduceResponse) -> ActionResult:
    cluster = _cluster(self)
    fleets = [
        {
            "Id": f"if-{number}",
            "InstanceTypeSpecifications": fleet["InstanceTypeConfigs"],
            **{name: item for name, item in fleet.items() if name != "InstanceTypeConfigs"},
        }
        for number, fleet in enumerate(cluster.fleets)
    ]
    return ActionResult({"InstanceFleets": fleets})


def modify_instance_fleet(self: ElasticMapReduceResponse) -> ActionResult:
    change = _plain(self._get_param("InstanceFleet"))
    number = int(change.pop("InstanceFleetId").removeprefix("if-"))
    _cluster(self).fleets[number].update(change)
    return EmptyResult()


def _put(name: str) -> Any:
    def put(self: ElasticMapReduceResponse) -> ActionResult:
        setattr(_cluster(self), name, _plain(self._get_param(_POLICIES[name])))
        return EmptyResult()

    return put


def _get(name: str) -> Any:
    def get(self: ElasticMapReduceResponse) -> ActionResult:
        found = getattr(_cluster(self), name)
        return ActionResult({_POLICIES[name]: found} if found else {})

    return get


def _remove(name: str) -> Any:
    def remove(self: ElasticMapReduceResponse) -> ActionResult:
        setattr(_cluster(self), name, None)
        return EmptyResult()

    return remove


@cache
def _service_policy() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(aws_managed_policies_data)[_SERVICE_POLICY]
    return found


def aws_policies(self: IAMBackend) -> list[AWSManagedPolicy]:
    """The one of AWS's own policies that the stack names. All 1,600 take two seconds each time that moto is emptied."""
    return [AWSManagedPolicy.from_data(_SERVICE_POLICY, self.account_id, self.region_name, _service_policy())]


def extend() -> None:
    """Puts the calls in, and AWS's own policy that EMR's role has."""
    iam: Any = IAMBackend
    iam._init_aws_policies = aws_policies
    response: Any = ElasticMapReduceResponse
    attributes: Any = Ec2InstanceAttributes
    attributes.__init__ = _with_subnets
    response.run_job_flow = run_job_flow
    response.list_instance_fleets = list_instance_fleets
    response.modify_instance_fleet = modify_instance_fleet
    for name in _POLICIES:
        setattr(response, f"put_{name}", _put(name))
        setattr(response, f"get_{name}", _get(name))
        setattr(response, f"remove_{name}", _remove(name))
