"""The provider for tests fails loudly for whatever it does not have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.aws_provider.kinds import misfits
from tests.aws_provider.provider import KINDS, _kind

TABLE = "aws:dynamodb/table:Table"
OBJECT = "aws:s3/bucketObjectv2:BucketObjectv2"
EMR = "aws:emr/cluster:Cluster"
LIFECYCLE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"


@pytest.mark.parametrize(
    ("type_", "inputs", "path"),
    [
        (TABLE, {"name": "a", "ttl": {"enabled": True}}, "ttl"),
        (TABLE, {"attributes": [{"name": "a", "kind": "S"}]}, "attributes[0].kind"),
        (TABLE, {"deletionProtectionEnabled": "yes"}, "deletionProtectionEnabled"),
        (TABLE, {"attributes": {}}, "attributes"),
        (LIFECYCLE, {"rules": [{"filter": {"tag": {}}}]}, "rules[0].filter.tag"),
        (LIFECYCLE, {"rules": [{"noncurrentVersionExpiration": {"noncurrentDays": True}}]},
         "rules[0].noncurrentVersionExpiration.noncurrentDays"),
        (EMR, {"coreInstanceGroup": {"instanceType": "r7g.xlarge", "bidPrice": "0.1"}}, "coreInstanceGroup.bidPrice"),
        (EMR, {"coreInstanceFleet": {"instanceTypeConfigs": [{"instanceType": 4}]}},
         "coreInstanceFleet.instanceTypeConfigs[0].instanceType"),
        ("aws:emr/managedScalingPolicy:ManagedScalingPolicy", {"computeLimits": [{"a": 4}]}, "computeLimits[0].a"),
        ("aws:iam/instanceProfile:InstanceProfile", {"path": "/"}, "path"),
        ("aws:kms/key:Key", {"multiRegion": True}, "multiRegion"),
        ("aws:kms/alias:Alias", {"namePrefix": "alias/a"}, "namePrefix"),
        (OBJECT, {"bucket": "a", "acl": "private"}, "acl"),
        (OBJECT, {"bucket": "a", "source": "a.txt"}, "source"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_property_outside_of_it_is_named(type_: str, inputs: dict[str, Any], path: str) -> None:
    assert [each for each, _ in misfits(inputs, KINDS[type_].shape)] == [path]


def test_a_type_outside_of_it_is_named() -> None:
    with pytest.raises(ValueError, match="does not have the type aws:ec2/instance:Instance"):
        _kind("urn:pulumi:dev::lakes::aws:ec2/instance:Instance::jobs")
