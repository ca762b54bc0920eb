"""The JSON Schema that editors have agrees with what is read: it takes what is sound and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from deployer.errors import InvalidSpecs
from deployer.policy.load import load_policies
from deployer.policy.schema import policies_schema
from tests.policy.test_bad_policies import CASES
from tests.projects import REPOSITORY

VALIDATOR = jsonschema.Draft202012Validator(policies_schema())
DOCUMENTED = re.findall(
    r"```yaml\n(.*?)```", (REPOSITORY / "docs" / "policy.md").read_text(encoding="utf-8"), re.DOTALL
)
STARTER = (REPOSITORY / "deployer" / "app" / "starter" / "files" / "policies" / "rules.yaml.txt").read_text(
    encoding="utf-8"
)
#: What only reading finds: names across documents, days, addresses and regular expressions.
NOT_SHAPE = {"two_of_a_name", "approval_of_no_rule", "approval_until_no_day", "no_expression", "not_yaml"}
BAD = [
    name
    for name, files in CASES.items()
    if name not in NOT_SHAPE and all(file.endswith((".yaml", ".yml")) for file in files)
]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(policies_schema())


@pytest.mark.parametrize("text", [*DOCUMENTED, STARTER], ids=[*map(str, range(len(DOCUMENTED))), "starter"])
def test_what_is_read_is_taken(text: str, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "rules.yaml").write_text(text, encoding="utf-8")
    assert load_policies(tmp_path).rules
    for document in yaml.load_all(text, yaml.BaseLoader):
        VALIDATOR.validate(_typed(document))


def _typed(document: object) -> object:
    """The values that YAML 1.2 has of texts."""
    match document:
        case dict():
            return {key: _typed(value) for key, value in document.items()}
        case list():
            return [_typed(value) for value in document]
        case "true" | "false":
            return document == "true"
        case str() if document.isdigit():
            return int(document)
    return document


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_is_not_taken(name: str, tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    for file, text in CASES[name].items():
        (tmp_path / "policies" / file).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSpecs):
        load_policies(tmp_path)
    documents = [_typed(document) for text in CASES[name].values() for document in yaml.load_all(text, yaml.BaseLoader)]
    assert not all(VALIDATOR.is_valid(document) for document in documents)
