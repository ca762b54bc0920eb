"""Parts of ARNs, and values derived from them. Pure."""

from __future__ import annotations


def partition_of(arn: str) -> str:
    """Returns the partition of an ARN, such as `aws`."""
    return arn.split(":")[1]


def account_of(arn: str) -> str:
    """Returns the account of an ARN."""
    return arn.split(":")[4]


def service_domain(partition: str) -> str:
    """Returns the domain in the names of AWS's services."""
    return "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"


def through(service: str, arn: str) -> str:
    """Returns the value of `kms:ViaService` of a service, in the partition and region of an ARN."""
    _, partition, _, region, _, _ = arn.split(":", 5)
    return f"{service}.{region}.{service_domain(partition)}"
