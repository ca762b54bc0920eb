"""The AWS provider from Pulumi's plug-in folder: `up` offers to install it, and runs it from there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer
from tests.engine.plugins.releases import Releases, archive, aws, program, release_server
from tests.stacks.conftest import MakeProject


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Releases]:
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    with release_server() as server:
        yield server


def without_provider(project: Path) -> bytes:
    """Takes the provider out of the project; returns its archive."""
    settings = project / "Pulumi.yaml"
    settings.write_text(settings.read_text().replace("    - name: aws\n      path: bin\n", ""))
    script = project / "bin" / "pulumi-resource-aws"
    content = script.read_bytes()
    script.unlink()
    return archive(program(content))


@pytest.mark.full
def test_up_offers_the_provider_and_runs_it_from_pulumis_folder(
    on_aws: MakeProject, deployer: Deployer, releases: Releases, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = on_aws()
    releases.publish(without_provider(project))
    command = f"deployer plugin install aws {aws().version}"
    ran = deployer("up", "--yes")
    assert ran.code == 1 and f"pulumi-resource-aws is not installed; run `{command}`" in ran.err
    checked = deployer("doctor", "--json", "--timeout", "120").json["checks"]
    [found] = [each for each in checked if each["check"] == "aws-provider"]
    assert found["status"] == "wrong" and f"run `{command}`" in found["remedy"]
    assert not releases.requests

    questions: list[str] = []
    answers = [False, True, True]
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)

    def answer(question: str) -> bool:
        questions.append(question)
        return answers.pop(0)

    monkeypatch.setattr("deployer.cli.console.output.ask_yes_or_no", answer)
    monkeypatch.setattr("deployer.engine.plugins.sources._PULUMI", releases.url)
    monkeypatch.setattr("deployer.engine.plugins.sources._GITHUB", f"{releases.url}/nothing")
    ran = deployer("up")
    assert ran.code == 1 and f"run `{command}`" in ran.err
    ran = deployer("up")
    assert (ran.code, answers) == (0, []), ran.err
    assert [each.partition(" ")[0] for each in questions] == ["pulumi-resource-aws", "pulumi-resource-aws", "Apply"]
    ran = deployer("preview", "--exit-code")
    assert ran.code == 0, ran.out
