"""F7, F10, F21: what every workflow keeps to, those that `init` writes and the repository's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployer.app.starter.packaged import FILES, packaged
from deployer.compute.packaging.lock_file import PACKAGES, lock_text, version_in
from tests.projects import REPOSITORY

STARTER = {Path(target).name: packaged(source).decode() for source, target in FILES.items() if "/workflows/" in target}
OWN = {path.name: path.read_text(encoding="utf-8") for path in (REPOSITORY / ".github" / "workflows").iterdir()}
TEXTS = {**STARTER, **{f"own/{name}": text for name, text in OWN.items()}}
WORKFLOWS: dict[str, dict[Any, Any]] = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
#: The only job that may have a secret, and the only one that may write to pull requests.
WITH_SECRET, WITH_COMMENTS = ("deploy.yaml", "up"), ("comment.yaml", "comment")
RIGHTS = {
    ("preview.yaml", "specs"): {"contents": "read"},
    ("preview-live.yaml", "live"): {"contents": "read", "id-token": "write"},
    ("comment.yaml", "comment"): {"actions": "read", "contents": "read", "pull-requests": "write"},
    ("deploy.yaml", "plan"): {"contents": "read", "id-token": "write"},
    ("deploy.yaml", "up"): {"contents": "read", "id-token": "write"},
    ("own/test.yaml", "test"): {"contents": "read"},
}


def jobs() -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for name, workflow in WORKFLOWS.items():
        for job, about in workflow["jobs"].items():
            yield (name, job), about


def steps() -> Iterator[Any]:
    for (name, job), about in jobs():
        for number, step in enumerate(about["steps"]):
            yield pytest.param(name, step, id=f"{name} {job} {number}")


def test_actions_are_pinned_by_commit_with_their_release_beside() -> None:
    pinned: dict[str, set[str]] = {}
    for name, text in TEXTS.items():
        used = re.findall(r"uses: *(.*)", text)
        assert used, name
        for line in used:
            match = re.fullmatch(r"([\w.-]+/[\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", line)
            assert match, line
            pinned.setdefault(match[1], set()).add(f"{match[2]} {match[3]}")
    assert {action for action, pins in pinned.items() if len(pins) > 1} == set()  # the same everywhere


@pytest.mark.parametrize(("name", "step"), list(steps()))
def test_steps_take_nothing_on_trust(name: str, step: dict[str, Any]) -> None:
    assert step.keys() <= {"uses", "with", "run", "env", "if", "name", "id", "working-directory", "continue-on-error"}
    assert ("uses" in step) != ("run" in step)
    given = step.get("with", {})
    if step.get("uses", "").startswith("actions/checkout@"):
        assert given["persist-credentials"] is False
    assert "cache" not in given and "actions/cache" not in step.get("uses", "")  # no run leaves anything for another
    if "uses" in step:
        return
    assert "${{" not in step["run"]  # the value would be code
    for line in step["run"].splitlines():
        if "pip install" in line:
            assert "--require-hashes" in line
    if re.search(r"\bdeployer\" |^deployer ", step["run"], re.MULTILINE):
        assert step["run"].startswith('echo "::stop-commands::$(< /proc/sys/kernel/random/uuid)"\n')


def test_jobs_have_the_rights_that_they_use_and_no_more() -> None:
    assert {key: about["permissions"] for key, about in jobs()} == RIGHTS
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {} and "env" not in workflow, name
        assert workflow["defaults"] == {"run": {"shell": "bash"}}, name  # with pipefail
    assert all(about["timeout-minutes"] <= 120 for _, about in jobs())


def test_secrets_are_in_the_one_step_that_applies() -> None:
    """F7: a passphrase for the whole workflow is one for the code of every branch."""
    for key, about in jobs():
        assert "env" not in about and "secrets" not in str({**about, "steps": []})
        with_secret = [step for step in about["steps"] if "secrets." in str(step)]
        assert len(with_secret) == (key == WITH_SECRET), key
    assert sum(text.count("secrets.") for text in TEXTS.values()) == 1
    assert WORKFLOWS["deploy.yaml"]["jobs"]["up"]["environment"] == "production"


def test_no_job_runs_the_code_of_a_branch_and_writes_to_its_pull_request() -> None:
    """F11: who writes comments runs from the default branch, and never on the event of the pull request."""
    for name, workflow in WORKFLOWS.items():
        triggers = workflow[True]  # `on`, as YAML 1.1 has it
        assert "pull_request_target" not in triggers and "issue_comment" not in triggers, name
        for job, about in workflow["jobs"].items():
            writes = about["permissions"].get("pull-requests") == "write"
            assert writes == ((name, job) == WITH_COMMENTS)
            if writes:
                assert set(triggers) == {"workflow_run"}
                assert not any("head" in str(step.get("with", {}).get("ref", "")) for step in about["steps"])


def test_roles_are_bound_to_environments() -> None:
    found = {}
    for key, about in jobs():
        for step in about["steps"]:
            if "configure-aws-credentials" in step.get("uses", ""):
                assert step["with"]["aws-region"] == "${{ vars.AWS_REGION }}"
                found[key] = (about["environment"], step["with"]["role-to-assume"])
                later = about["steps"][about["steps"].index(step) + 1 :]
                assert not any("pip install" in each.get("run", "") for each in later)  # it has no credentials
    preview = ("preview", "${{ vars.AWS_PREVIEW_ROLE }}")
    assert found == {
        ("preview-live.yaml", "live"): preview,
        ("deploy.yaml", "plan"): preview,
        ("deploy.yaml", "up"): ("production", "${{ vars.AWS_DEPLOY_ROLE }}"),
    }
    assert "aws-access-key" not in "".join(TEXTS.values()).lower()


def test_one_deployment_after_the_other() -> None:
    deploy = WORKFLOWS["deploy.yaml"]
    assert deploy["concurrency"] == {"group": "deploy-prod", "cancel-in-progress": False}
    assert deploy["jobs"]["up"]["needs"] == "plan"


def test_the_pulumi_cli_is_of_the_release_that_the_lock_pins() -> None:
    version = version_in(lock_text(PACKAGES), "pulumi")
    for name in ("deploy.yaml", "preview-live.yaml"):
        text = STARTER[name]
        assert text.count("uses: pulumi/actions@") == text.count('pulumi-version: "@PULUMI@"')
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_dependabot_watches_what_is_pinned() -> None:
    for text in (packaged("github/dependabot.yml.txt").decode(), (REPOSITORY / ".github/dependabot.yml").read_text()):
        updates = yaml.safe_load(text)["updates"]
        assert {each["package-ecosystem"] for each in updates} == {"github-actions", "pip"}
