"""Command lines: only the command that is named is made, and what is shown and refused is the same."""

from __future__ import annotations

import pytest

from deployer.cli import main
from deployer.cli.main import run

COMMANDS = ("preview", "plan", "table", "stack", "cost")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("before", [[], ["--trust-udfs"]], ids=["alone", "after an option"])
def test_help_is_the_same_when_only_the_command_is_made(
    command: str, before: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*before, command, "--help"]) == 0
    alone = capsys.readouterr().out
    monkeypatch.setattr(main, "_named", lambda arguments: None)
    assert run([*before, command, "--help"]) == 0
    assert alone == capsys.readouterr().out != ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["previw"], "No such command 'previw'. Did you mean 'preview'", id="misspelled"),
        pytest.param(["table", "lst"], "No such command 'lst'", id="misspelled in a group"),
        pytest.param(["tables", "--bad"], "No such option: --bad", id="no option"),
        pytest.param(["--bad", "tables"], "No such option: --bad", id="no option before the command"),
    ],
)
def test_a_wrong_command_line_is_one_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 1
    assert message in capsys.readouterr().err


def test_all_commands_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {command} " in shown for command in COMMANDS if command != "plan")
