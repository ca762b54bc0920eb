"""What is wrong in policies/ is said where it stands, all at once: the input and the words are in golden files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deployer.errors import InvalidInput, InvalidSpecs
from deployer.policy.load import load_policies
from tests.plan.lakes import EMPTY, FLIGHTS
from tests.policy.plans import verdict_in, view_of

GOLDEN = Path(__file__).parent / "golden"

# name: the files of policies/ by their names
CASES: dict[str, dict[str, str]] = {
    "no_kind": {"a.yaml": "rule: naming\n"},
    "unknown_kind": {"a.yaml": "kind: Polcy\nrule: naming\n"},
    "not_a_mapping": {"a.yaml": "- naming\n"},
    "not_yaml": {"a.yaml": "kind: [Policy\n"},
    "no_rule": {"a.yaml": "kind: Policy\nenforcement: advisory\n"},
    "misspelt_rule_field": {"a.yaml": "kind: Policy\nrul: naming\n"},
    "unknown_rule": {"a.yaml": "kind: Policy\nrule: keys-change\n"},
    "rule_of_another_type": {"a.yaml": "kind: Policy\nrule: [naming]\n"},
    "unknown_fields": {
        "a.yaml": "kind: Policy\nrule: column-age\ndays: 3\nday: 4\nenforcment: advisory\n",
        "b.yml": "kind: Policy\nrule: required-tags\nlabels: [owner]\ncolour: red\n",
    },
    "option_of_another_rule": {"a.yaml": "kind: Policy\nrule: key-change\ndays: 3\n"},
    "missing_option": {"a.yaml": "kind: Policy\nrule: column-age\n"},
    "none_of_the_options": {"a.yaml": "kind: Policy\nrule: naming\n---\nkind: Policy\nrule: rewrite-size\n"},
    "wrong_types": {
        "a.yaml": "kind: Policy\nrule: column-age\ndays: 30d\nstacks: prod\nname: Too Loud\nenforcement: strict\n"
        "---\nkind: Policy\nrule: key-change\nrow_keys: yes\n---\nkind: Policy\nrule: required-tags\ntags: []\n"
    },
    "out_of_range": {"a.yaml": "kind: Policy\nrule: column-age\ndays: 0\n"},
    "no_expression": {
        "a.yaml": 'kind: Policy\nrule: naming\ntables: "[a-z"\n---\nkind: Policy\nrule: required-tags\n'
        'values: {tier: "(gold", cost: "1"}\n'
    },
    "two_of_a_name": {
        "a.yaml": "kind: Policy\nrule: naming\ntables: x\n---\nkind: Policy\nrule: naming\ncolumns: x\n",
        "b.sql": "-- name: naming\nSELECT address, '' AS message FROM resources\n",
    },
    "approval_of_no_rule": {
        "a.yaml": "kind: Policy\nrule: key-change\n---\n"
        "kind: Approval\nrule: keys-change\naddress: table/air.x\nby: me\nreason: because\nuntil: 2026-12-31\n"
    },
    "approval_that_is_not_whole": {
        "a.yaml": "kind: Approval\nrule: key-change\naddress: air.flights\nby:\nuntil: tomorrow\ntil: 2026-01-01\n"
    },
    "approval_until_no_day": {
        "a.yaml": "kind: Policy\nrule: key-change\n---\n"
        "kind: Approval\nrule: key-change\naddress: x/y\nby: me\nreason: r\nuntil: 2026-02-30\n"
    },
    "approval_of_a_rule_that_is_broken": {
        "a.yaml": "kind: Policy\nrule: column-age\ndays: x\n---\n"
        "kind: Approval\nrule: column-age\naddress: table/air.x\nby: me\nreason: r\nuntil: 2026-12-31\n"
    },
    "several_files": {
        "a.yaml": "kind: Policy\nrule: naming\ntable: x\n",
        "b.py": "import nothing_of_that_name\n",
        "c.sql": "-- enforcement: strict\nSELECT 1\n",
    },
    "python_syntax": {"a.py": "from deployer.policy import rule\n\n@rule\ndef f(plan:\n    pass\n"},
    "python_import": {"a.py": "import os\n\nimport deployer.policy.rules\n"},
    "python_exits": {"a.py": "import sys\n\nsys.exit(4)\n"},
    "python_enforcement": {
        "a.py": "from deployer.policy import rule\n\n\n@rule(enforcement='strict')\ndef f(plan):\n    return []\n"
    },
    "python_stacks": {
        "a.py": "from deployer.policy import rule\n\n\n@rule(stacks='prod')\ndef f(plan):\n    return []\n"
    },
    "python_name": {
        "a.py": "from deployer.policy import rule\n\n\n@rule(name='Bad Name')\ndef f(plan):\n    return []\n"
    },
    "python_raises": {
        "a.py": "from deployer.policy import rule\n\n\ndef owner(table):\n    return table.tags['owner']\n\n\n"
        "@rule\ndef has_owner(plan):\n    for table in plan.tables:\n        owner(table)\n"
    },
    "python_exits_later": {
        "a.py": "from deployer.policy import rule\n\n\n@rule\ndef gone(plan):\n    raise SystemExit\n"
    },
    "python_gives_text": {
        "a.py": "from deployer.policy import rule\n\n\n@rule\ndef f(plan):\n    return ['bad table']\n"
    },
    "python_gives_no_list": {"a.py": "from deployer.policy import rule\n\n\n@rule\ndef f(plan):\n    return 5\n"},
    "python_takes_nothing": {"a.py": "from deployer.policy import rule\n\n\n@rule\ndef f():\n    return []\n"},
    "python_and_sql_fail": {
        "a.py": "from deployer.policy import rule\n\n\n@rule\ndef f(plan):\n    return 1 / 0\n",
        "b.sql": "SELECT nothing FROM changes\n",
    },
    "sql_header": {"a.sql": "-- enforcment: advisory\n-- stack: prod\n-- Note: fine\nSELECT 1\n"},
    "sql_enforcement": {"a.sql": "-- enforcement: mandatry\nSELECT 1\n"},
    "sql_name": {"a.sql": "-- name: No Floats\nSELECT 1\n"},
    "sql_syntax": {"a.sql": "SELEC address FROM changes\n"},
    "sql_empty": {"a.sql": "-- nothing yet\n"},
    "sql_two_statements": {"a.sql": "SELECT 1; SELECT 2\n"},
    "sql_unknown_table": {"a.sql": "SELECT address, '' AS message FROM change\n"},
    "sql_unknown_column": {"a.sql": "SELECT address, '' AS message FROM columns WHERE types = 'int8'\n"},
    "sql_no_message": {"a.sql": "SELECT address FROM resources\n"},
    "sql_other_column": {"a.sql": "SELECT address, '' AS message, risk FROM changes\n"},
    "sql_null": {"a.sql": "SELECT address, tags['owner'] AS message FROM resources\n"},
    "sql_division": {"a.sql": "SELECT address, CAST(1 / (rows - rows) AS string) AS message FROM resources\n"},
    "sql_explain": {"a.sql": "EXPLAIN SELECT 1\n"},
    "sql_reads_a_file": {"a.sql": "SELECT address, '' AS message FROM '/etc/hostname'\n"},
}


def message(project: Path, files: dict[str, str]) -> str:
    """Each problem on a line, as commands print them."""
    (project / "policies").mkdir()
    for name, text in files.items():
        (project / "policies" / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSpecs) as caught:
        verdict_in(project, view_of(FLIGHTS, EMPTY))
    problems = caught.value.problems
    assert all(problem.remedy and problem.rule and "\n" not in str(problem) for problem in problems)
    return "".join(f"{problem}\n" for problem in problems) + f"error: {caught.value}\n"


@pytest.mark.parametrize("name", CASES)
def test_problems_are_said_in_the_words_of_their_golden_file(name: str, tmp_path: Path, update_golden: bool) -> None:
    files = CASES[name]
    shown = "".join(f"----- policies/{file}\n{text}" for file, text in files.items())
    text = f"{shown}=====\n{message(tmp_path, files)}"
    golden = GOLDEN / "bad" / f"{name}.txt"
    if update_golden:
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_text_that_is_not_utf_8_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.sql").write_bytes(b"-- fine\n\xff\n")
    (tmp_path / "policies" / "b.yaml").write_bytes(b"kind: \xff\n")
    with pytest.raises(InvalidSpecs) as caught:
        load_policies(tmp_path)
    assert [str(problem.at) for problem in caught.value.problems] == ["policies/a.sql:2:1", "policies/b.yaml:1:7"]


STATEMENTS = {
    "copy": "COPY (SELECT address, 'x' AS message FROM resources) TO '{file}' STORED AS CSV",
    "explain_analyze_copy": "EXPLAIN ANALYZE COPY (SELECT address FROM resources) TO '{file}' STORED AS CSV",
    "external_table": "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{file}'",
    "external_table_written": "CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '{file}'",
    "table": "CREATE TABLE t AS SELECT 1",
    "view": "CREATE VIEW v AS SELECT address, '' AS message FROM resources",
    "insert": "INSERT INTO resources SELECT * FROM resources",
    "drop": "DROP TABLE resources",
    "delete": "DELETE FROM resources",
    "set": "SET datafusion.execution.batch_size = 1",
    "prepare": "PREPARE p AS SELECT 1",
    "transaction": "BEGIN",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_sql_that_does_more_than_read_is_refused_and_does_nothing(name: str, tmp_path: Path) -> None:
    file = tmp_path / "written"
    assert "rule a is not read-only; give one SELECT" in message(
        tmp_path, {"a.sql": STATEMENTS[name].format(file=file) + "\n"}
    )
    assert not file.exists()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_sql_cannot_name_a_file_as_a_table(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"secret{suffix}"
    file.write_text("address,message\na,b\n", encoding="utf-8")
    output = message(tmp_path, {"a.sql": "SELECT address, message FROM '{file}'\n".replace("{file}", str(file))})
    assert "which does not exist" in output


def link_out(project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "rules.yaml").write_text("kind: Policy\nrule: key-change\n", encoding="utf-8")
    (project / "policies").symlink_to(outside)


def link_to_nothing(project: Path) -> None:
    (project / "policies").symlink_to(project / "gone")


def a_file(project: Path) -> None:
    (project / "policies").write_text("kind: Policy\nrule: key-change\n", encoding="utf-8")


@pytest.mark.parametrize("make", [link_out, link_to_nothing, a_file])
def test_a_folder_that_is_none_of_the_project_is_refused(make: object, tmp_path: Path) -> None:
    assert callable(make)
    project = tmp_path / "project"
    project.mkdir()
    make(project)
    with pytest.raises(InvalidInput, match="not a folder in the project"):
        load_policies(project)


def test_a_file_that_is_a_link_out_of_the_project_is_not_run(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside.py"
    (project / "policies").mkdir(parents=True)
    outside.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", encoding="utf-8")
    (project / "policies" / "a.py").symlink_to(outside)
    (project / "policies" / "b.yaml").symlink_to(project / "gone.yaml")
    with pytest.raises(InvalidSpecs) as caught:
        load_policies(project)
    assert [problem.rule for problem in caught.value.problems] == ["include-outside", "unreadable-file"]
    assert not (tmp_path / "ran").exists()


def test_links_inside_the_project_are_followed(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "keys.yaml").write_text("kind: Policy\nrule: key-change\n", encoding="utf-8")
    (tmp_path / "policies").symlink_to(tmp_path / "shared", target_is_directory=True)
    assert [rule.name for rule in load_policies(tmp_path).rules] == ["key-change"]


def test_a_file_that_may_not_be_read_is_a_problem(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("everything may be read here")
    (tmp_path / "policies").mkdir()
    file = tmp_path / "policies" / "a.yaml"
    file.write_text("kind: Policy\n", encoding="utf-8")
    file.chmod(0)
    with pytest.raises(InvalidSpecs) as caught:
        load_policies(tmp_path)
    assert [problem.rule for problem in caught.value.problems] == ["unreadable-file"]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    (folder / "nested.yaml").mkdir(parents=True)
    for name in ("README.md", ".hidden.yaml", "CODEOWNERS", "notes.txt"):
        (folder / name).write_text("not: a rule", encoding="utf-8")
    assert load_policies(tmp_path).rules == ()
