"""The workflows that `init` writes: valid, with commands that exist, and no more rights than they use."""

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

from deployer.cli.main import app
from deployer.starter.write import FILES, packaged
from tests.projects import REPOSITORY
from tests.stacks.policies import Call, is_allowed

WORKFLOWS: dict[str, dict[Any, Any]] = {
    Path(target).stem: yaml.safe_load(packaged(source))
    for source, target in FILES.items()
    if target.startswith(".github/workflows/")
}
STEPS = [
    pytest.param(step, id=f"{name} {job} {number}")
    for name, workflow in WORKFLOWS.items()
    for job, about in workflow["jobs"].items()
    for number, step in enumerate(about["steps"])
]
GITHUB = "token.actions.githubusercontent.com"


def test_there_is_one_that_previews_and_one_that_deploys() -> None:
    assert WORKFLOWS.keys() == {"preview", "deploy"}
    deploy = WORKFLOWS["deploy"]
    triggers = deploy[True]  # `on`, as YAML 1.1 has it
    assert triggers == {"pull_request": None, "push": {"branches": ["main"]}}
    said = {job: [step.get("run", "") for step in about["steps"]] for job, about in deploy["jobs"].items()}
    assert any(run.startswith("gh pr comment") for run in said["preview"])
    assert [run for run in said["up"] if run.startswith("deployer")] == [
        "deployer up --stack prod --yes --lock-timeout 30m"
    ]


@pytest.mark.parametrize("step", STEPS)
def test_steps_are_whole(step: dict[str, Any]) -> None:
    assert step.keys() <= {"uses", "with", "run", "env", "if", "name"}
    assert ("uses" in step) != ("run" in step)
    if "uses" in step:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@v\d+", step["uses"])


def commands() -> Iterator[object]:
    for name, workflow in WORKFLOWS.items():
        for about in workflow["jobs"].values():
            for step in about["steps"]:
                for command in re.findall(r"^deployer [^|>\n]*", step.get("run", ""), re.MULTILINE):
                    yield pytest.param(command, id=f"{name}: {command.strip()}")


@pytest.mark.parametrize("command", list(commands()))
def test_commands_exist_with_these_options(command: str) -> None:
    group: Any = typer.main.get_command(app)
    name, *arguments = shlex.split(command)[1:]
    found = group.get_command(typer.Context(group), name)
    assert found is not None
    found.make_context(name, arguments)  # raises for an option that is not there


@pytest.mark.parametrize("job", ["preview", "up"])
def test_jobs_have_the_rights_that_they_use(job: str) -> None:
    about = WORKFLOWS["deploy"]["jobs"][job]
    wanted = {"contents": "read", "id-token": "write"} | ({"pull-requests": "write"} if job == "preview" else {})
    assert about["permissions"] == wanted and WORKFLOWS["deploy"]["permissions"] == {"contents": "read"}
    (credentials,) = (step for step in about["steps"] if "configure-aws-credentials" in step.get("uses", ""))
    role = "AWS_PREVIEW_ROLE" if job == "preview" else "AWS_DEPLOY_ROLE"
    assert credentials["with"] == {"role-to-assume": f"${{{{ vars.{role} }}}}", "aws-region": "${{ vars.AWS_REGION }}"}
    assert f"vars.{role} != ''" in about["if"]  # nothing runs in a project that is not on AWS
    text = packaged("workflows/deploy.yaml.txt").decode()
    assert "aws-access-key" not in text.lower() and "aws_secret" not in text.lower()


@pytest.mark.parametrize(
    ("claims", "allowed"),
    [
        ({"aud": "sts.amazonaws.com", "sub": "repo:OWNER/REPOSITORY:environment:production"}, True),
        ({"aud": "sts.amazonaws.com", "sub": "repo:OWNER/REPOSITORY:pull_request"}, False),
        ({"aud": "sts.amazonaws.com", "sub": "repo:OWNER/REPOSITORY:ref:refs/heads/main"}, False),
        ({"aud": "sts.amazonaws.com", "sub": "repo:OTHER/REPOSITORY:environment:production"}, False),
        ({"aud": "others", "sub": "repo:OWNER/REPOSITORY:environment:production"}, False),
    ],
    ids=["production", "a pull request", "a branch", "another repository", "another audience"],
)
def test_whom_the_documented_trust_lets_in(claims: dict[str, str], allowed: bool) -> None:
    page = (REPOSITORY / "docs" / "aws.md").read_text(encoding="utf-8").split("## From a pipeline\n")[1]
    trust = json.loads(page.split("```json\n")[1].split("```")[0])
    context = {f"{GITHUB}:{name}": value for name, value in claims.items()}
    assert is_allowed(Call("sts:AssumeRoleWithWebIdentity", "", context), [trust]) is allowed
    assert WORKFLOWS["deploy"]["jobs"]["up"]["environment"] == "production"
