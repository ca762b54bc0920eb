"""Programs and what becomes of them: each case is one program after another on the same stack."""

from __future__ import annotations

import pytest

from deployer.engine import PlanResult, UpResult
from tests.engine.conftest import Lab

TWO = """
a = File("a", content="hello")
b = File("b", content=a.size.apply(lambda size: f"a has {size}"))
pulumi.export("path", b.path)
"""


def ops(result: PlanResult | UpResult) -> dict[str, str]:
    return {operation.name: operation.op for operation in result.operations if operation.name != "demo-dev"}


@pytest.mark.parametrize("plugin", [False, True], ids=["in-process", "plugin"])
def test_two_resources_are_previewed_created_and_then_left_alone(lab: Lab, plugin: bool) -> None:
    if plugin:
        lab.install_plugin()
    plan = lab.preview(TWO)
    assert ops(plan) == {"a": "create", "b": "create"}
    assert lab.log() == []
    result = lab.up()
    assert lab.files() == {"a.txt": "hello", "b.txt": "a has 5"}
    assert result.outputs["path"] == str(lab.root / "files" / "b.txt")
    assert ops(lab.preview()) == {"a": "same", "b": "same"}
    assert ops(lab.up()) == {"a": "same", "b": "same"}
    assert lab.log() == ["create a.txt", "create b.txt"]
