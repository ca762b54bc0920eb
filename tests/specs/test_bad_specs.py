"""Each rule has a bad spec in bad/, named after the rule, with the message that users read beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.errors import InvalidSpecs, Problem
from deployer.specs import load_lake
from deployer.specs.rules import Rule

BAD = Path(__file__).parent / "bad"
CASES = sorted(path for path in BAD.iterdir() if path.suffix != ".txt")
MANY = Path(__file__).parent / "many"
TWENTY = Path(__file__).parent / "twenty"
#: tests/specs/test_files.py, since no file in a repository is unreadable; tests/security/test_input_limits.py
TRIED_ELSEWHERE = {Rule.UNREADABLE_FILE, Rule.SPECS_LIMIT}


def problems_of(project: Path, specs: Path) -> tuple[Problem, ...]:
    with pytest.raises(InvalidSpecs) as caught:
        load_lake(project, specs)
    return caught.value.problems


def check(golden: Path, text: str, update: bool) -> None:
    if update:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_broken_rule_is_one_problem_in_the_words_of_its_golden_file(case: Path, update_golden: bool) -> None:
    problems = problems_of(BAD, case)
    check(case.with_suffix(".txt"), "".join(f"{problem}\n" for problem in problems), update_golden)
    assert [problem.rule for problem in problems] == [case.stem.partition("--")[0]]


@pytest.mark.parametrize("rule", sorted(set(Rule) - TRIED_ELSEWHERE))
def test_every_rule_has_a_bad_spec(rule: Rule) -> None:
    assert any(case.stem.partition("--")[0] == rule for case in CASES)


def test_every_message_says_what_to_do() -> None:
    for case in CASES:
        for problem in problems_of(BAD, case):
            assert problem.what
            assert problem.remedy
            assert str(problem).count("\n") == 0


def test_all_problems_come_at_once_in_the_order_of_the_files(update_golden: bool) -> None:
    problems = problems_of(MANY, MANY)
    check(MANY / "expected.txt", "".join(f"{problem}\n" for problem in problems), update_golden)
    places = [(problem.at.file, problem.at.line, problem.at.column) for problem in problems]
    assert places == sorted(places)
    assert len(set(places)) == len(places)


def test_no_problem_of_a_table_hides_another(update_golden: bool) -> None:
    problems = problems_of(TWENTY, TWENTY)
    check(TWENTY / "expected.txt", "".join(f"{problem}\n" for problem in problems), update_golden)
    lines = (TWENTY / "lake.yaml").read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# wrong" in line}
    assert {problem.at.line for problem in problems} == wrong
    assert len(wrong) > 20


def test_secrets_in_a_root_are_not_repeated() -> None:
    for problem in problems_of(BAD, BAD / "root-credentials.yaml"):
        assert "secret" not in str(problem)
        assert "AKIA" not in str(problem)
