"""A stack's settings of AWS as JSON. The instance's own JSON form, which is that of live state, leaves them out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from deployer.platform.files.dataclass_json import from_asdict
from deployer.specs.model import AwsSettings


def aws_to_json(settings: AwsSettings) -> dict[str, Any]:
    """Returns what `aws_from_json` reads: the settings that differ from their defaults."""
    usual = asdict(AwsSettings())
    return {name: value for name, value in asdict(settings).items() if value != usual[name]}


def aws_from_json(form: Any) -> AwsSettings:
    """Returns the inverse of `aws_to_json`. Raises ValueError for an invalid form."""
    return from_asdict(AwsSettings, form)
