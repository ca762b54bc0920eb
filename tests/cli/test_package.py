"""`deployer package`: what it builds, where, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deployer.compute.packaging.wheel import NAME
from tests.cli.conftest import Deployer
from tests.projects import make_project
from tests.wheelhouse import make_wheelhouse, trust_wheelhouse, use_wheelhouse

INSTANCE = """\
kind: Instance
name: demo
root: s3://lakes/demo
clusters:
  laptop: {kind: local}
  small: {kind: emr-serverless, release: emr-spark-8.0.0, architecture: x86_64}
"""


@pytest.fixture
def on_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_wheelhouse(make_wheelhouse(tmp_path / "wheels"), monkeypatch)
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE})
    trust_wheelhouse(folder)
    monkeypatch.chdir(folder)
    return folder


def test_it_builds_for_the_clusters_of_the_stack(on_aws: Path, deployer: Deployer) -> None:
    ran = deployer("package")
    assert ran.code == 0, ran.err
    lines = [line.split() for line in ran.out.splitlines()]
    sizes = {line[0]: (line[-1], len(line[-2])) for line in lines if line[-1] == "built"}
    assert sizes.keys() >= {NAME, "ingest.py", "environment-x86_64.tar.gz"}
    assert all(digits == 12 for _, digits in sizes.values())
    assert f"for Python 3.11, in {on_aws / 'build' / 'jobs'}" in ran.out
    assert (on_aws / "build" / "jobs" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    again = deployer("package", "--json").json
    assert {each["kind"] for each in again["files"]} == {"wheel", "script", "packages"}
    assert not any(each["built"] for each in again["files"])


def test_it_builds_what_is_asked_for(on_aws: Path, deployer: Deployer, tmp_path: Path) -> None:
    out = tmp_path / "there"
    ran = deployer("package", "--out", str(out), "-a", "arm64", "-a", "x86_64", "--python", "3.12", "--json").json
    archives = [each["name"] for each in ran["files"] if each["kind"] == "packages"]
    assert (archives, ran["python"]) == (["environment-arm64.tar.gz", "environment-x86_64.tar.gz"], "3.12")
    assert json.loads((out / "package.json").read_text(encoding="utf-8"))["python"] == "3.12"
    assert not (on_aws / "build").exists()


def test_a_package_that_pip_does_not_find_is_said(
    on_aws: Path, deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    use_wheelhouse(tmp_path / "empty", monkeypatch)
    ran = deployer("package")
    assert ran.code == 1 and "error: there is no wheel of " in ran.err
    assert " for Python 3.11 on manylinux2014_x86_64; install another version of it here" in ran.err
    assert not list((on_aws / "build" / "jobs").glob("*.tar.gz"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--architecture", "sparc"), "'sparc' is not one of 'arm64', 'x86_64'"),
        (("--python", "eleven"), "'eleven' is not a valid version of Python; write it as 3.11"),
    ],
)
def test_bad_words_are_said(on_aws: Path, deployer: Deployer, arguments: tuple[str, ...], said: str) -> None:
    ran = deployer("package", *arguments)
    assert (ran.code, said in ran.err) == (1, True), ran.err
