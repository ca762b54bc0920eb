"""Policies as a user meets them: shown by `preview`, kept by `up`, `up PLAN` and `destroy`, and those of a base ref."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer
from tests.cli.test_review_plans import add_rows, add_table, edit, git

OWNERS = "kind: Policy\nrule: required-tags\n"
NO_FLOATS = "SELECT address, 'a float' AS message, \"column\" FROM columns WHERE type LIKE 'float%'\n"
RUNS = "open({file!r}, 'w').close()\n"
NEVER = (
    "from deployer.policy import rule\n\n\n@rule\ndef nothing_new(plan):\n"
    '    """Nothing is created."""\n'
    "    return [change.violation('it is new') for change in plan.changes if change.action == 'create']\n"
)


def put(project: Path, **files: str) -> None:
    """Files of policies/; `rules_yaml` is rules.yaml."""
    (project / "policies").mkdir(exist_ok=True)
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (project / "policies" / f"{stem}.{suffix}").write_text(text, encoding="utf-8")


def approval(rule: str, address: str, until: str = "2999-12-31") -> str:
    lines = {"rule": rule, "address": address, "by": "jane", "reason": "TICKET-7", "until": until}
    return "\n---\nkind: Approval\n" + "".join(f"{key}: {value}\n" for key, value in lines.items())


OWNERS_APPROVED = OWNERS + "".join(approval("required-tags", f"table/air.{name}") for name in ("flights", "planes"))

# name: (the files, exit code of preview, of up, of --policy-only, and what all three say)
CASES: dict[str, tuple[dict[str, str], int, str]] = {
    "mandatory_yaml": ({"rules_yaml": OWNERS}, 3, "required-tags  table/air.flights: it has no tag owner"),
    "mandatory_python": ({"rules_py": NEVER}, 3, "nothing-new  instance/demo: it is new"),
    "mandatory_sql": (
        {"ints_sql": NO_FLOATS.replace("float", "int")},
        3,
        "ints  table/air.planes: a int  specs/planes.yaml:5:5",
    ),
    "advisory": ({"rules_yaml": OWNERS + "enforcement: advisory\n"}, 0, "advisory  required-tags  table/air.planes"),
    "disabled": ({"rules_yaml": OWNERS + "enforcement: disabled\n"}, 0, "1 rule, 1 disabled"),
    "of_another_stack": ({"rules_yaml": OWNERS + "stacks: [prod]\n"}, 0, "0 rules"),
    "approved": ({"rules_yaml": OWNERS_APPROVED}, 0, "approved by jane until 2999-12-31: TICKET-7"),
    "approval_ended": (
        {"rules_yaml": OWNERS_APPROVED.replace("2999", "2020")},
        3,
        "it has no tag owner (the approval by jane ended on 2020-12-31)",
    ),
    "kept": ({"floats_sql": NO_FLOATS}, 0, "1 rule of this checkout; no violations"),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", CASES)
def test_up_keeps_mandatory_rules_and_preview_tells_all(name: str, project: Path, deployer: Deployer) -> None:
    files, code, said = CASES[name]
    put(project, **files)
    shown = deployer("preview")
    assert (shown.code, said in shown.out) == (0, True), shown.out
    alone = deployer("preview", "--policy-only")
    assert (alone.code, said in alone.out, "Plan:" in alone.out) == (code, True, False), alone.out
    ran = deployer("up", "--yes")
    assert (ran.code, said in ran.out) == (code, True), ran.err
    assert (project / "lakes").exists() == (code == 0)
    assert ("nothing was changed; fix the specs, or have them approved in policies/" in ran.err) == (code == 3)


@pytest.mark.parametrize("form", ["tree", "json", "markdown", "html"])
def test_every_format_has_them_with_the_plan_and_alone(form: str, project: Path, deployer: Deployer) -> None:
    put(project, rules_yaml=OWNERS)
    for arguments, code in ((["preview"], 0), (["preview", "--policy-only"], 3)):
        ran = deployer(*arguments, "--format", form)
        assert ran.code == code
        assert "it has no tag owner" in ran.out
        assert ("create table" in ran.out) == ("--policy-only" not in arguments)
    if form == "json":
        assert deployer("preview", "--policy-only", "--json").json["policy"]["counts"]["mandatory"] == 2


def test_up_says_as_json_what_is_refused(project: Path, deployer: Deployer) -> None:
    put(project, rules_yaml=OWNERS)
    document = deployer("up", "--yes", "--json").json
    assert document["error"] == {
        "kind": "Refused",
        "refused": [
            {"address": f"table/air.{name}", "why": "required-tags: it has no tag owner"}
            for name in ("flights", "planes")
        ],
    }


def test_rules_hold_where_nothing_changes(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    put(project, rules_yaml=OWNERS)
    assert "nothing to do" in deployer("preview").out
    assert deployer("up", "--yes").code == 3


def test_a_plan_is_judged_again_when_it_is_applied(project: Path, deployer: Deployer) -> None:
    put(project, rules_yaml=OWNERS_APPROVED)
    assert deployer("preview", "--out", "demo.plan").code == 0
    put(project, rules_yaml=OWNERS)  # the approvals are taken back
    ran = deployer("up", "demo.plan")
    assert (ran.code, "2 mandatory violations of policies" in ran.err) == (3, True)
    assert not (project / "lakes").exists()
    put(project, rules_yaml=OWNERS_APPROVED)
    assert deployer("up", "demo.plan").code == 0


def test_a_plan_that_breaks_mandatory_rules_is_not_saved(project: Path, deployer: Deployer) -> None:
    put(project, rules_yaml=OWNERS)
    ran = deployer("preview", "--out", "demo.plan")
    assert (ran.code, "breaks mandatory rules, so it was not saved" in ran.err) == (3, True)
    assert not (project / "demo.plan").exists()


def test_a_young_column_stays(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    put(project, rules_yaml="kind: Policy\nrule: column-age\ndays: 7\n")
    edit(project / "specs" / "flights.yaml", "{name: delay", "{name: late, renamed_from: delay")
    assert deployer("up", "--yes").code == 0
    edit(project / "specs" / "flights.yaml", "  - {name: late, renamed_from: delay, type: 'int32'}\n", "")
    ran = deployer("up", "--yes")
    assert (ran.code, "column late is 0 days old and may be dropped after 7 days" in ran.out) == (3, True)
    put(project, rules_yaml="kind: Policy\nrule: column-age\ndays: 7\n" + approval("column-age", "table/air.flights"))
    assert deployer("up", "--yes").code == 0


def test_keys_change_with_an_approval(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    add_rows(project, "planes")
    put(project, rules_yaml="kind: Policy\nrule: key-change\nname: keys\n")
    edit(project / "specs" / "planes.yaml", "row_keys: [id]", "sort_keys: [id]")
    ran = deployer("up", "--yes")
    assert (ran.code, "keys  table/air.planes: row keys id → none" in ran.out) == (3, True)
    put(project, rules_yaml="kind: Policy\nrule: key-change\nname: keys\n" + approval("keys", "table/air.planes"))
    assert deployer("up", "--yes").code == 0
    assert "is not used: remove it" in deployer("preview").out


def test_destroy_is_judged_too(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    add_rows(project, "planes")
    put(project, rules_yaml="kind: Policy\nrule: destroys-data\n" + "---\n" + OWNERS)
    ran = deployer("destroy", "--yes", "--allow-destroy", "table/air.planes")
    assert (ran.code, "destroys-data  table/air.planes" in ran.out) == (3, True)
    assert "required-tags  " not in ran.out  # nothing is declared any more
    assert list((project / "lakes" / "demo" / "air").glob("planes-*"))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--policy-only"], 1, "policies: there are no policies; put a rule there", id="none"),
        pytest.param(["--policy-only", "--out", "p"], 1, "--policy-only and --out do not go together", id="out"),
        pytest.param(["--policy-only", "--exit-code"], 1, "--policy-only and --exit-code do not", id="exit-code"),
    ],
)
def test_what_cannot_be_asked_for_is_said(
    arguments: list[str], code: int, said: str, project: Path, deployer: Deployer
) -> None:
    ran = deployer("preview", *arguments)
    assert (ran.code, said in ran.err) == (code, True), ran.err


@pytest.mark.parametrize("command", [["preview"], ["up", "--yes"], ["preview", "--policy-only"], ["destroy", "--yes"]])
def test_policies_that_do_not_work_stop_every_command(command: list[str], project: Path, deployer: Deployer) -> None:
    put(project, a_yaml="kind: Policy\nrule: key-changes\n", b_py="1 / 0\n")
    ran = deployer(*command)
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "policies/a.yaml:2:7: there is no built-in rule `key-changes`; did you mean key-change?",
        "policies/b.py:1:1: the file cannot be run: ZeroDivisionError: division by zero; fix it",
        "error: 2 problems in the policies",
    ]
    assert not (project / "lakes").exists()


def test_without_policies_nothing_of_them_is_loaded(project: Path) -> None:
    code = (
        "import sys; from deployer.cli.main import run; run(['preview']); "
        "print([name for name in sys.modules if name.startswith('deployer.policy') or name == 'datafusion'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def base(project: Path) -> Path:
    """A repository whose main has a rule of each form; the work tree is a fork's branch of it."""
    put(project, rules_yaml=OWNERS, new_py=NEVER, ints_sql=NO_FLOATS.replace("float", "int"))
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    add_table(project)
    return project


def untouched(project: Path) -> None:
    """The fork changes specs alone."""


def without_rules(project: Path) -> None:
    for file in (project / "policies").iterdir():
        file.unlink()
    (project / "policies").rmdir()


def disabled(project: Path) -> None:
    put(project, rules_yaml=OWNERS + "enforcement: disabled\n")
    (project / "policies" / "new.py").unlink()
    (project / "policies" / "ints.sql").unlink()


def approved(project: Path) -> None:
    put(project, more_yaml=approval("required-tags", "table/air.more") + approval("nothing-new", "table/air.more"))


def hostile(project: Path) -> None:
    put(project, new_py=RUNS.format(file=str(project / "ran")), z_py=RUNS.format(file=str(project / "ran")))


def broken(project: Path) -> None:
    put(project, rules_yaml="kind: [", new_py="1 / 0\n", ints_sql="DROP TABLE changes")


@pytest.mark.parametrize("change", [untouched, without_rules, disabled, approved, hostile, broken])
def test_a_fork_is_judged_by_the_rules_of_its_base(
    change: Callable[[Path], None], base: Path, deployer: Deployer
) -> None:
    change(base)
    ran = deployer("preview", "--against", "main", "--policy-only", "--json")
    assert ran.code == 3
    verdict = ran.json["policy"]
    assert verdict["ref"] == "main"
    assert {(each["rule"], each["address"]) for each in verdict["violations"]} == {
        *(("required-tags", f"table/air.{name}") for name in ("flights", "more", "planes")),
        *(("ints", f"table/air.{name}") for name in ("flights", "more", "planes")),
        ("nothing-new", "table/air.more"),
    }
    assert {each["at"].split(":", 1)[0] for each in verdict["rules"]} == {"main"}
    assert not (base / "ran").exists()
    assert not (base / "lakes").exists()
    shown = deployer("preview", "--against", "main")
    assert (shown.code, "3 rules of main" in shown.out) == (0, True)


def test_rules_that_a_branch_brings_take_effect_once_they_are_merged(project: Path, deployer: Deployer) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    assert deployer("preview", "--against", "main", "--policy-only").code == 1
    put(project, rules_yaml=OWNERS, run_py=RUNS.format(file=str(project / "ran")))
    ran = deployer("preview", "--against", "main", "--policy-only")
    assert (ran.code, "there is no policies/ at main: its rules take effect once they are merged" in ran.out) == (
        0,
        True,
    )
    assert not (project / "ran").exists()


def test_rules_that_are_broken_at_the_base_are_named_there(base: Path, deployer: Deployer) -> None:
    put(base, rules_yaml="kind: Policy\nrule: names\n", new_py="x = 1\n1 / 0\n")
    git(base, "commit", "-qam", "broken")
    ran = deployer("preview", "--against", "main")
    assert (ran.code, ran.err.splitlines()[:2]) == (
        1,
        [
            "main:policies/new.py:2:1: the file cannot be run: ZeroDivisionError: division by zero; fix it",
            "main:policies/rules.yaml:2:7: there is no built-in rule `names`; use one of column-age, key-change, "
            "destroys-data, rewrite-size, naming, required-tags, descriptions, external-targets",
        ],
    )


def test_a_folder_that_is_a_link_at_the_base_is_refused(base: Path, deployer: Deployer) -> None:
    (base / "policies").rename(base / "shared")
    (base / "policies").symlink_to("shared")
    git(base, "add", "-A")
    git(base, "commit", "-qm", "linked")
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "policies: is not a folder at that commit" in ran.err) == (1, True), ran.err
    assert json.loads(deployer("preview", "--json").out)["policy"]["counts"]["mandatory"]  # the work tree may link


def test_a_folder_that_is_a_submodule_at_the_base_is_refused(base: Path, deployer: Deployer) -> None:
    (base / "policies").rename(base / "kept")
    git(base, "rm", "-rq", "--cached", "policies")
    git(base, "update-index", "--add", "--cacheinfo", f"160000,{git(base, 'rev-parse', 'HEAD')},policies")
    git(base, "commit", "-qm", "a submodule")
    (base / "kept").rename(base / "policies")
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "policies: is not a folder at that commit" in ran.err) == (1, True), ran.err
