"""Explanations of errors, services and changes: there is one of each, and the pages say the same."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest

from deployer import errors
from deployer.app.operations.explain import errors_page, explain, topics
from deployer.cli.main import run
from deployer.engine.secrets.crypter import WrongKey
from deployer.errors import DeployerError, NotFound
from deployer.plan.changes import Change
from deployer.runs.runner import RunCancelled
from deployer.services.registry import SERVICES
from deployer.state.model.services import EXCLUDES
from deployer.views.refresh.results import NoStableRowIds
from tests.projects import REPOSITORY
from tests.test_public_kinds import kinds_of_errors

ROW = re.compile(r"^\| [^|]* \| `(\w+)` \| [^|]* \|.*$", re.MULTILINE)


def names(kind: str) -> set[str]:
    return {each.name for each in topics()[kind]}  # type: ignore[index]


def test_there_is_one_of_each_error_service_and_change() -> None:
    assert names("error") == {*kinds_of_errors()}
    assert names("service") == {*SERVICES, *EXCLUDES}
    assert names("change") == {each.kind for each in get_args(Change)}


def test_exit_codes_are_those_of_the_errors() -> None:
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, DeployerError)]
    own: list[type[DeployerError]] = [*found, RunCancelled, NoStableRowIds, WrongKey]
    for error in own:
        assert explain(error.kind).facts["exit code"] == str(error.exit_code), error


def test_the_pages_say_the_same() -> None:
    assert (REPOSITORY / "docs" / "errors.md").read_text(encoding="utf-8") == errors_page()
    page = (REPOSITORY / "docs" / "changes.md").read_text(encoding="utf-8")
    rows = {found[1]: found[0] for found in ROW.finditer(page)}
    assert rows.keys() == names("change")
    for name, row in rows.items():
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", row)
        facts, text = explain(name).facts, explain(name).text
        assert shown == f"| {facts['change']} | `{name}` | {facts['risk']} | {text} |".replace("|  |", "| |")


def test_pages_that_are_named_are_there() -> None:
    for several in topics().values():
        for each in several:
            assert (REPOSITORY / "docs" / each.page.partition("#")[0]).is_file()


def test_a_topic_is_found_in_any_case_and_another_is_refused() -> None:
    assert explain("addCOLUMN").name == "AddColumn"
    with pytest.raises(NotFound, match="there is no topic 'Conflct'; did you mean Conflict"):
        explain("Conflct")


def test_the_command_lists_and_explains(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("OutcomeUnknown", "COMPACT", "RenameColumn"))
    assert run(["explain", "Refused"]) == 0
    assert "--allow-destroy" in capsys.readouterr().out
    assert run(["explain", "compact", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"] == {"never runs beside": "COMPACT, CLUSTER, RESTORE, EXPIRE"}
    assert run(["explain", "nothing-like-it"]) == 1
    assert "`deployer explain` lists all topics" in capsys.readouterr().err
