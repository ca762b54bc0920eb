"""Settings of AWS as JSON: they come back, and what is no such form is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deployer.specs.loading.known import find_known, known_as_json, known_lake, learn
from deployer.specs.model import AwsSettings, InstanceSpec, Lake
from deployer.specs.serialized.aws import aws_from_json, aws_to_json
from tests.projects import REPOSITORY

SETTINGS = {
    "as_unless_said": AwsSettings(),
    "key": AwsSettings(kms_key="managed"),
    "capacity": AwsSettings(state_capacity=(5, 3)),
    "all": AwsSettings(kms_key="arn:aws:kms:eu-central-1:123456789012:key/x", state_capacity=(1, 1)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_come_back(name: str) -> None:
    form = json.loads(json.dumps(aws_to_json(SETTINGS[name])))
    assert aws_from_json(form) == SETTINGS[name]


BROKEN: dict[str, Any] = {
    "no_mapping": [],
    "unknown": {"kms_keys": "managed"},
    "another_type": {"kms_key": 3},
    "one_of_two": {"state_capacity": [1]},
    "truth": {"state_capacity": [True, 1]},
    "text": {"state_capacity": ["1", "1"]},
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_form_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        aws_from_json(BROKEN[name])


def test_a_program_gets_the_settings_that_the_command_read() -> None:
    lake = Lake(InstanceSpec("demo", "s3://lakes/demo", aws=SETTINGS["all"]))
    with known_lake(REPOSITORY, REPOSITORY / "specs", lake, "dev"):
        handed_over = json.loads(json.dumps(known_as_json()))
    assert find_known(REPOSITORY, REPOSITORY / "specs", "dev") is None
    learn(handed_over)
    found = find_known(REPOSITORY, REPOSITORY / "specs", "dev")
    with known_lake(REPOSITORY, REPOSITORY / "specs", lake, "dev"):
        pass  # nothing is known afterwards
    assert found is not None and (found, found.instance.aws) == (lake, SETTINGS["all"])
