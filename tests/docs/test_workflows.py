"""The workflows that `init` writes: commands that exist, and the trust that the documentation tells to give them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from deployer.app.starter.packaged import FILES, packaged
from deployer.cli.main import app
from tests.projects import REPOSITORY
from tests.stacks.policies import Call, is_allowed

WORKFLOWS: dict[str, dict[Any, Any]] = {
    Path(target).stem: yaml.safe_load(packaged(source))
    for source, target in FILES.items()
    if target.startswith(".github/workflows/")
}
COMMAND = re.compile(r'^ *(?:deployer|"\$RUNNER_TEMP/venv/bin/deployer") ([^|>\n]*)', re.MULTILINE)
GITHUB = "token.actions.githubusercontent.com"


def test_there_is_one_for_each_task() -> None:
    triggers = {name: workflow[True] for name, workflow in WORKFLOWS.items()}  # `on`, as YAML 1.1 has it
    assert {name: set(found) for name, found in triggers.items()} == {
        "preview": {"pull_request"},
        "preview-live": {"pull_request"},
        "comment": {"workflow_run"},
        "deploy": {"push", "workflow_dispatch"},
    }
    assert {name: workflow["name"] for name, workflow in WORKFLOWS.items()} == {name: name for name in WORKFLOWS}
    assert triggers["comment"]["workflow_run"]["workflows"] == ["preview", "preview-live"]


def commands() -> Iterator[object]:
    for name, workflow in WORKFLOWS.items():
        for about in workflow["jobs"].values():
            for step in about["steps"]:
                script = step.get("run", "").replace("\\\n", " ")
                for command in COMMAND.findall(script):
                    yield pytest.param(command, id=f"{name}: {command.strip()}")


@pytest.mark.parametrize("command", list(commands()))
def test_commands_exist_with_these_options(command: str) -> None:
    group: Any = typer.main.get_command(app)
    name, *arguments = shlex.split(command.replace('"${allowed[@]}"', "--allow-destroy table/demo.trips"))
    found = group.get_command(typer.Context(group), name)
    assert found is not None
    found.make_context(name, arguments)  # raises for an option that is not there


@pytest.mark.parametrize(
    ("environment", "claims", "allowed"),
    [
        ("production", {"sub": "repo:OWNER/REPOSITORY:environment:production"}, True),
        ("production", {"sub": "repo:OWNER/REPOSITORY:environment:preview"}, False),
        ("production", {"sub": "repo:OWNER/REPOSITORY:pull_request"}, False),
        ("production", {"sub": "repo:OWNER/REPOSITORY:ref:refs/heads/main"}, False),
        ("production", {"sub": "repo:OTHER/REPOSITORY:environment:production"}, False),
        ("production", {"sub": "repo:OWNER/REPOSITORY:environment:production", "aud": "others"}, False),
        ("preview", {"sub": "repo:OWNER/REPOSITORY:environment:preview"}, True),
        ("preview", {"sub": "repo:OWNER/REPOSITORY:environment:production"}, False),
        ("preview", {"sub": "repo:OWNER/REPOSITORY:pull_request"}, False),
    ],
)
def test_whom_the_documented_trust_lets_in(environment: str, claims: dict[str, str], allowed: bool) -> None:
    page = (REPOSITORY / "docs" / "aws-pipeline.md").read_text(encoding="utf-8")
    text = page.split("```json\n")[1].split("```")[0].replace("environment:production", f"environment:{environment}")
    context = {f"{GITHUB}:{name}": value for name, value in {"aud": "sts.amazonaws.com", **claims}.items()}
    assert is_allowed(Call("sts:AssumeRoleWithWebIdentity", "", context), [json.loads(text)]) is allowed
    assert {about.get("environment") for about in WORKFLOWS["deploy"]["jobs"].values()} == {"preview", "production"}
