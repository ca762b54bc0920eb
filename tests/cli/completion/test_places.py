"""Which kind of name belongs where, and what each shell is answered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deployer.cli.completion.__main__ import command_grammar
from deployer.cli.completion.answer import answer
from deployer.cli.completion.grammar import grammar, place_of
from tests.cli.completion.conftest import Complete, asked_by_bash

STACKS = ["dev", "prod"]


def test_the_grammar_is_that_of_the_commands() -> None:
    """`python -m deployer.cli.completion > deployer/cli/completion/grammar.json` writes it again."""
    assert grammar() == json.loads(json.dumps(command_grammar()))


@pytest.mark.parametrize(
    ("line", "kind", "part"),
    [
        ("describe ", "table", ""),
        ("describe air.f", "table", "air.f"),
        ("--trust-udfs describe air", "table", "air"),
        ("query air.flights --columns ", "column", ""),
        ("query air.flights --columns id,de", "column", "de"),
        ("query --columns=id,de", "column", "de"),
        ("query --limit 3 air.", "table", "air."),
        ("service run air.flights CO", "service", "CO"),
        ("service run -C elsewhere air.flights ", "service", ""),
        ("service create air.flights ", "new-service", ""),
        ("service check air.a air.", "table", "air."),
        ("up --target ", "address", ""),
        ("preview -s ", "stack", ""),
        ("preview --stack=p", "stack", "p"),
        ("column backfill air.flights ", "column", ""),
        ("job list --table ", "table", ""),
        ("view refresh ", "table", ""),
        ("table gc -- -", "table", "-"),
    ],
)
def test_live_names_belong_here(line: str, kind: str, part: str) -> None:
    *words, incomplete = line.split(" ")
    place = place_of(grammar(), words, incomplete)
    assert place is not None and (place.kind, place.part) == (kind, part)


@pytest.mark.parametrize(
    "line",
    ["", "desc", "service ", "service ru", "nothing ", "query air.flights --wh", "query --limit ", "describe air.f ",
     "table add ", "ingest air.flights ", "init ", "up "],
)  # fmt: skip
def test_typer_completes_the_rest(line: str) -> None:
    *words, incomplete = line.split(" ")
    assert place_of(grammar(), words, incomplete) is None


def test_tables_columns_services_and_stacks_are_completed(applied: Path, complete: Complete) -> None:
    Path("Pulumi.prod.yaml").write_text("config: {}\n", encoding="utf-8")
    assert complete("deployer describe air.p") == ["air.planes"]
    assert complete("deployer query air.flights --columns id,d") == ["id,delay"]
    assert complete("deployer drift --target table/air.f") == ["table/air.flights"]
    assert complete("deployer preview --stack ") == STACKS
    assert complete("deployer preview --stack = p") == ["prod"]
    assert complete("deployer service run flights ") == []
    assert "COMPACT" in complete("deployer service create flights ")
    assert complete("deployer descri") == ["describe"]


@pytest.mark.parametrize("line", ["deployer describe ", "deployer query x --columns ", "deployer up --stack "])
def test_nothing_is_printed_where_there_is_no_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complete: Complete, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert complete(line) == []
    Path("Pulumi.yaml").write_text("name: [", encoding="utf-8")
    assert complete(line) == []


@pytest.mark.parametrize(
    ("shell", "asked", "said"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "deployer describe air.f"}, "_arguments '*: :((\"air.flights\"))'"),
        ("fish", {"_TYPER_COMPLETE_ARGS": "deployer describe air.f"}, "air.flights"),
        ("powershell", {"_TYPER_COMPLETE_ARGS": "deployer describe air.f",
                        "_TYPER_COMPLETE_WORD_TO_COMPLETE": "air.f"}, "air.flights:::"),
    ],
)  # fmt: skip
def test_shells_get_the_form_of_their_scripts(
    applied: Path, capsys: pytest.CaptureFixture[str], shell: str, asked: dict[str, str], said: str
) -> None:
    capsys.readouterr()
    assert answer({"_DEPLOYER_COMPLETE": f"complete_{shell}", **asked}) == 0
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(("word", "code"), [("air.f", 0), ("nothing", 1)])
def test_fish_is_told_whether_there_are_names(applied: Path, word: str, code: int) -> None:
    asked = {"_TYPER_COMPLETE_ARGS": f"deployer describe {word}", "_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert answer({"_DEPLOYER_COMPLETE": "complete_fish", **asked}) == code


def test_names_that_a_shell_would_part_are_quoted(applied: Path, complete: Complete) -> None:
    spec = Path("specs", "flights.yaml")
    text = spec.read_text().replace("row_keys", "  - {name: 'Total Amount', type: int32}\nrow_keys")
    spec.write_text(text, encoding="utf-8")
    from tests.projects import run

    run("up", "--yes")
    assert complete("deployer query air.flights --columns Tot") == ["'Total Amount'"]


def test_a_completion_of_known_names_imports_little(applied: Path, complete: Complete) -> None:
    assert complete("deployer describe ") == ["air.flights", "air.planes"]
    code = (
        "import os, sys; from deployer.cli.completion.answer import answer; answer(os.environ);"
        "print(sorted({'typer', 'rich', 'pyarrow', 'lance', 'yaml', 'deployer.specs'} & {*sys.modules}))"
    )
    environment = asked_by_bash("deployer describe ")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("air.planes[]\n"), done.stdout
