"""The documents' examples are true: specs load, commands exist with those options, generated pages are current."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml
from typer.core import TyperGroup

from deployer.cli.main import app
from deployer.cli.reference import groups, reference
from deployer.cost.prices import read_prices
from deployer.engine.project.backend_url import s3_place
from deployer.engine.secrets.aws_kms import parse_kms
from deployer.policy.load import load_policies
from deployer.specs import load_lake
from tests.projects import INSTANCE, REPOSITORY

PAGES = (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md")))


def blocks(language: str) -> Iterator[object]:
    for page in PAGES:
        if page.stem in ("tutorial", "tables", "recovery", "compact", "savepoints", "clean"):
            continue  # test_tutorial, test_tables_page and test_service_pages run them
        for number, block in enumerate(
            re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
        ):
            yield pytest.param(block, id=f"{page.parent.name}-{page.stem}-{number}")


@pytest.mark.parametrize("text", list(blocks("yaml")))
def test_specs_in_the_documents_load(text: str, tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all(text))
    if isinstance(documents[0], list):  # steps of a workflow with the action
        action = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
        assert all(step["with"].keys() <= action["inputs"].keys() for step in documents[0])
        return
    if "config" in documents[0]:  # a stack's configuration
        assert all(key.startswith(("deployer:", "aws:")) for key in documents[0]["config"])
        return
    if "secretsprovider" in documents[0]:  # a stack's configuration too
        assert parse_kms(documents[0]["secretsprovider"]).key.startswith("alias/")
        return
    if documents[0].keys() == {"backend"}:  # a part of Pulumi.yaml
        assert s3_place(documents[0]["backend"]["url"])[0].startswith("s3://")
        return
    if documents[0].get("kind") == "Policy":
        (tmp_path / "policies").mkdir()
        (tmp_path / "policies" / "rules.yaml").write_text(text, encoding="utf-8")
        assert load_policies(tmp_path).rules
        return
    if "dated" in documents[0]:  # prices
        (tmp_path / "prices.yaml").write_text(text, encoding="utf-8")
        assert read_prices(tmp_path / "prices.yaml")
        return
    if documents[0].keys() <= {"aws", "clusters"}:  # a part of an instance
        text = INSTANCE.replace("lakes/demo", "s3://lakes/demo") + text
        documents = list(yaml.safe_load_all(text))
    if "kind" not in documents[0]:  # a part of a table
        text = "kind: Table\ndatabase: air\nname: example\n" + text
        documents = list(yaml.safe_load_all(text))
    instance = "" if any(document["kind"] == "Instance" for document in documents) else INSTANCE
    for blueprint in (document["default_blueprint"] for document in documents if "default_blueprint" in document):
        (tmp_path / blueprint).parent.mkdir(parents=True)
        (tmp_path / blueprint).write_bytes(b"of the project")
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "instance.yaml").write_text(instance, encoding="utf-8")
    assert load_lake(tmp_path, tmp_path).instance.name


@pytest.mark.parametrize("text", list(blocks("console")))
def test_commands_in_the_documents_exist(text: str) -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    targets = re.findall(r"^([a-z0-9.-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
        command, *arguments = shlex.split(line, comments=True)
        if command == "deployer":
            with group.make_context("deployer", list(arguments), resilient_parsing=True) as context:
                name, found, rest = group.resolve_command(context, [*context._protected_args, *context.args])
                assert found is not None
                found.make_context(name, rest, parent=context).close()
        elif command == "make":
            assert set(arguments) <= set(targets)
        else:
            assert (REPOSITORY / command).is_file() or command in (
                "git",
                "cd",
                "export",
                "openssl",
                "python",
                "python3",
            ), line


def test_the_pages_of_commands_have_the_groups_of_the_help() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    shown = groups(group, typer.Context(group, info_name="deployer"))
    assert list(shown) == ["Specs", "Plan and apply", "Data", "Tables and services", "Machines and clusters", "State"]
    commands = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
    for title, names in shown.items():
        rows = commands.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `deployer ([a-z]+)", rows, re.MULTILINE)) <= set(names)
        assert [name for name in names if not re.search(rf"^\|[^|]*`(deployer )?{name}\b", rows, re.MULTILINE)] == []

    headings = re.findall(r"^## (.*)$", reference()["cli.md"], re.MULTILINE)
    assert headings == list(shown)
