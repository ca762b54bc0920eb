"""The KMS key of a lake with its own key."""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from deployer.components.context import GUARD, KEPT, LakeContext, below
from deployer.compute.iam.key import key_alias, key_policy

#: Without the key the data is lost, so a key that is scheduled for deletion is kept for as long as AWS allows.
DELETION_DAYS = 30


class LakeKey(pulumi.ComponentResource):
    """A key that AWS rotates each year, with an alias. `arn` resolves once the key has its policy."""

    arn: pulumi.Output[str]

    def __init__(self, name: str, args: LakeContext, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("deployer:aws:LakeKey", name, None, opts)
        instance, guard = args.instance, below(self, GUARD)
        key = aws.kms.Key(
            f"key/{name}",
            description=f"Data, state and logs of the lake {instance.name}",
            enable_key_rotation=True,
            deletion_window_in_days=DELETION_DAYS,
            tags=args.tags,
            opts=below(self, KEPT),
        )
        policy = aws.kms.KeyPolicy(
            f"key-policy/{name}",
            key_id=key.key_id,
            policy=key.arn.apply(lambda arn: json.dumps(key_policy(arn, instance.root, instance.name))),
            opts=guard,
        )
        aws.kms.Alias(
            f"key-alias/{name}",
            name=key_alias(instance.root, instance.name),
            target_key_id=key.key_id,
            opts=guard,
        )
        self.arn = pulumi.Output.all(key.arn, policy.id).apply(lambda found: str(found[0]))
        self.register_outputs({"arn": self.arn})
