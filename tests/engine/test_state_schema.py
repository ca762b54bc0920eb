"""States are held against Pulumi's published schemas, which find what is wrong: the state of a lake too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from deployer.cli.main import run
from tests.engine.conftest import Lab, check_schema
from tests.projects import INSTANCE, make_project, table

Deployment = dict[str, Any]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        pytest.param(lambda found: found["resources"][2].update(id=7), "7 is not of type 'string'", id="type"),
        pytest.param(lambda found: found["resources"][2].update(of=1), "unexpected", id="field"),
        pytest.param(lambda found: found["resources"][0].pop("urn"), "'urn' is a required property", id="missing"),
        pytest.param(lambda found: found.pop("manifest"), "'manifest' is a required property", id="manifest"),
    ],
)
def test_a_state_that_is_none_of_pulumi_is_found(lab: Lab, damage: Callable[[Deployment], Any], said: str) -> None:
    lab.up('File("a", content="1")')
    found = lab.deployment()
    check_schema(found)
    damage(found)
    with pytest.raises(jsonschema.ValidationError) as wrong:
        check_schema(found)
    assert said in str(wrong.value) or any(said in each.message for each in wrong.value.context or ())


def test_the_state_of_a_lake_is_one_of_pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32")}
    project = make_project(tmp_path / "project", specs)
    monkeypatch.chdir(project)
    assert run(["up", "--yes"]) == 0
    state = json.loads((project / ".pulumi" / "stacks" / "lakes" / "dev.json").read_text(encoding="utf-8"))
    check_schema(state["checkpoint"]["latest"])
    kinds = [each["type"] for each in state["checkpoint"]["latest"]["resources"]]
    assert kinds[-2:] == ["lake:index:Instance", "lake:index:Table"]
