"""The JSON form of a stack's AWS settings. The JSON form of an instance, which live state also uses, omits them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from deployer.platform.files.dataclass_json import from_asdict
from deployer.specs.model import AwsSettings


def aws_to_json(settings: AwsSettings) -> dict[str, Any]:
    """Returns the settings that differ from their defaults, in the form that `aws_from_json` reads."""
    usual = asdict(AwsSettings())
    return {name: value for name, value in asdict(settings).items() if value != usual[name]}


def aws_from_json(form: Any) -> AwsSettings:
    """Returns the settings from the form that `aws_to_json` returns. Raises ValueError for an invalid form."""
    return from_asdict(AwsSettings, form)
