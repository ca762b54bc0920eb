"""What editors check with takes the documents that are read, those with variables too."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from deployer.specs.schema.editor import editor_schema
from deployer.specs.yaml.nodes import parse_yaml

REPOSITORY = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(editor_schema())
TABLE = (
    "{kind: Table, database: air, name: %s, columns: [{name: id, type: int64}], online: %s, "
    "storage: {max_rows_per_file: %s}}"
)


@pytest.mark.parametrize(
    ("values", "valid"),
    [
        pytest.param(("trips", "true", "1000"), True, id="plain"),
        pytest.param(('"trips_${env}"', '"${on}"', '"${rows}"'), True, id="variables"),
        pytest.param(("trips", '"yes"', "1000"), False, id="text-for-a-flag"),
        pytest.param(('"a b"', "true", "1000"), False, id="bad-name"),
        pytest.param(("trips", "true", "0"), False, id="out-of-range"),
    ],
)
def test_values_may_be_variables(values: tuple[str, str, str], valid: bool) -> None:
    assert VALIDATOR.is_valid(yaml.safe_load(TABLE % values)) is valid


def test_it_is_a_schema_and_takes_the_specs_of_the_repository() -> None:
    jsonschema.Draft202012Validator.check_schema(editor_schema())
    packaged = (REPOSITORY / "deployer" / "starter" / "files" / "specs").glob("*.txt")
    for file in (*(REPOSITORY / "specs" / "nyc" / "tables").glob("*.yaml"), *packaged):
        text = file.read_text(encoding="utf-8").replace("@NAME@", "lake")
        for document in parse_yaml(text.encode(), file.name).documents:
            VALIDATOR.validate(document.plain())
