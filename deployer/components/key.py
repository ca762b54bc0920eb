"""The KMS key of a lake that has one of its own."""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from deployer.compute.key_access import key_alias, key_policy
from deployer.specs.model import InstanceSpec

#: Without the key the data is lost: it is kept as long as AWS allows, should somebody schedule its end.
DELETION_DAYS = 30


class LakeKey(pulumi.ComponentResource):
    """A key that AWS renews each year, found by its alias. `arn` is there once the key's policy is."""

    def __init__(
        self,
        instance: InstanceSpec,
        tags: Mapping[str, str],
        kept: pulumi.ResourceOptions,
        guard: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("deployer:aws:LakeKey", instance.name)
        own = pulumi.ResourceOptions(parent=self)
        guard = pulumi.ResourceOptions.merge(guard, own)
        key = aws.kms.Key(
            f"key/{instance.name}",
            description=f"Data, state and logs of the lake {instance.name}",
            enable_key_rotation=True,
            deletion_window_in_days=DELETION_DAYS,
            tags=tags,
            opts=pulumi.ResourceOptions.merge(kept, own),
        )
        policy = aws.kms.KeyPolicy(
            f"key-policy/{instance.name}",
            key_id=key.key_id,
            policy=key.arn.apply(lambda arn: json.dumps(key_policy(arn, instance.root, instance.name))),
            opts=guard,
        )
        aws.kms.Alias(
            f"key-alias/{instance.name}",
            name=key_alias(instance.root, instance.name),
            target_key_id=key.key_id,
            opts=guard,
        )
        self.arn: Any = pulumi.Output.all(key.arn, policy.id).apply(lambda found: found[0])
        self.register_outputs({"arn": self.arn})
