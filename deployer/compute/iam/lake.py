"""The facts about a lake that policies need: its location, the names of its resources, and resources of others that it
uses. All functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from deployer.compute.jobs.code import REMOTE_KINDS
from deployer.platform.aws.names import LAKE_TAG, lake_id, log_bucket_name, own_names, role_path
from deployer.specs.model import AwsSettings, InstanceSpec
from deployer.state.backends.dynamodb.table import table_name


@dataclass(frozen=True, slots=True)
class LakeOnAws:
    """A lake on AWS. `root` is s3://…, `instance` is the instance's name, and `kinds` are the kinds of its clusters on
    AWS.

    `borrowed_roles` and `log_folders` are the declared `execution_role` and `log_uri` of the clusters.
    """

    root: str
    instance: str
    region: str
    account: str
    partition: str = "aws"
    table: str | None = None  #: the declared name of the state's table
    settings: AwsSettings = field(default_factory=AwsSettings)
    borrowed_roles: tuple[str, ...] = ()
    log_folders: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset(REMOTE_KINDS)

    @property
    def id(self) -> str:
        return lake_id(self.root, self.instance)

    @property
    def own(self) -> str:
        """The prefix of the names of the lake's own resources."""
        return own_names(self.root, self.instance)

    @property
    def bucket(self) -> str:
        """The ARN of the lake's bucket."""
        return f"arn:{self.partition}:s3:::{urlsplit(self.root).netloc}"

    @property
    def log_bucket(self) -> str:
        """The ARN of the bucket that the stack makes for access logs."""
        return f"arn:{self.partition}:s3:::{log_bucket_name(self.root, self.instance)}"

    @property
    def below(self) -> str:
        """The prefix of the lake's objects with a slash at its end; empty for the bucket's root."""
        prefix = urlsplit(self.root).path.strip("/")
        return f"{prefix}/" if prefix else ""

    @property
    def table_arn(self) -> str:
        return self.arn("dynamodb", f"table/{self.table or table_name(self.root, self.instance)}")

    @property
    def roles(self) -> str:
        """The prefix of the ARNs of the lake's own roles, up to the role's name."""
        return f"arn:{self.partition}:iam::{self.account}:role{role_path(self.root, self.instance)}"

    @property
    def boundary(self) -> str:
        """The ARN of the permissions boundary: the declared one, or else the ARN with the name in the docs."""
        named = f"arn:{self.partition}:iam::{self.account}:policy/{self.own}boundary"
        return self.settings.permissions_boundary or named

    @property
    def keys(self) -> str:
        """The ARN of the lake's KMS key, or a pattern for all keys of the account and region where the ARN is
        unknown."""
        key = self.settings.kms_key
        return key if key not in (None, "managed") else self.arn("kms", "key/*")

    @property
    def of_keys(self) -> Mapping[str, str]:
        """The condition that selects this lake's key among `keys`: the lake's tag; empty where the ARN is known."""
        return {} if self.settings.kms_key not in (None, "managed") else self.tagged

    @property
    def tagged(self) -> Mapping[str, str]:
        """The condition that a resource has the lake's tag."""
        return {f"aws:ResourceTag/{LAKE_TAG}": self.id}

    @property
    def asked(self) -> Mapping[str, str]:
        """The condition that a request gives the lake's tag to a new resource."""
        return {f"aws:RequestTag/{LAKE_TAG}": self.id}

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    @classmethod
    def of(cls, spec: InstanceSpec, region: str, account: str, partition: str = "aws") -> LakeOnAws:
        """Returns the lake that `spec` declares, in an account and a region."""
        remote = [cluster for cluster in spec.clusters if cluster.kind in REMOTE_KINDS]
        table = spec.state.options.get("table")
        return cls(
            spec.root,
            spec.name,
            str(spec.state.options.get("region") or region),
            account,
            partition,
            str(table) if table else None,
            spec.aws,
            _named(each.options for each in remote)("execution_role"),
            _named(each.options for each in remote)("log_uri"),
            frozenset(each.kind for each in remote),
        )


def _named(options: Iterable[Mapping[str, Any]]) -> Any:
    listed = list(options)
    return lambda name: tuple(sorted({str(each[name]) for each in listed if name in each}))
