"""A bucket that a program has already, for a lake in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi

from deployer.errors import InvalidInput
from deployer.specs.model import AwsSettings


@dataclass(frozen=True, slots=True)
class ExistingBucket:
    """Its name, and what the lake waits for."""

    name: pulumi.Output[str]
    needs: tuple[pulumi.Resource, ...]


def existing_bucket(name: str, given: pulumi.Resource | pulumi.Input[str], address: str) -> ExistingBucket:
    """The bucket that the program gives. InvalidInput, as soon as its name is known, where that is not `name`."""
    resource = given if isinstance(given, pulumi.Resource) else None
    own: Any = getattr(given, "bucket") if resource is not None else given  # noqa: B009 -- of any bucket's class

    def checked(found: str) -> str:
        if found != name:
            raise InvalidInput(
                f"the root is in the bucket {name}, and the program gives the lake the bucket {found}",
                where=address,
                remedy=f"write `root: s3://{found}/…` in the specs, or give the lake its own bucket",
            )
        return found

    return ExistingBucket(pulumi.Output.from_input(own).apply(checked), () if resource is None else (resource,))


def refuse_settings_of_the_bucket(settings: AwsSettings, why: str) -> None:
    """Raises InvalidInput for settings of a bucket that the stack does not declare."""
    declared = {
        "object_lock": settings.object_lock is not None,
        "replicate_to": settings.replicate_to is not None,
        "only_from": settings.only_from != AwsSettings().only_from,
    }
    for name in (name for name, is_declared in declared.items() if is_declared):
        raise InvalidInput(
            f"aws.{name} is a setting of the bucket, and {why}: the stack leaves the bucket alone",
            remedy=f"remove aws.{name}, and set it up with the bucket; or let deployer declare the bucket",
        )
