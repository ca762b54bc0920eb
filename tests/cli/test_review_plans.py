"""Saved plans and comparisons with a Git ref, as a user runs them: on the embedded engine, real datasets, real Git."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.plan.saved.file import _checksum
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, table


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def add_rows(project: Path, name: str) -> None:
    [location] = (project / "lakes" / "demo" / "air").glob(f"{name}-*.lance")
    schema = lance.dataset(str(location)).schema
    rows = pa.table({column: pa.nulls(2, schema.field(column).type) for column in schema.names})
    rows = rows.set_column(0, schema.field(0), pa.array([1, 2], schema.field(0).type))
    lance.write_dataset(rows.cast(schema), str(location), mode="append")


@pytest.fixture
def committed(project: Path) -> Path:
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    return project


def test_a_saved_plan_is_applied_as_it_was_shown_without_asking(project: Path, deployer: Deployer) -> None:
    assert deployer("preview", "--out", "demo.plan").code == 0
    edit(project / "specs" / "flights.yaml", "'int32'", "'int64'")  # what the specs say later is no part of it
    assert deployer("up", "demo.plan").code == 0
    edit(project / "specs" / "flights.yaml", "'int64'", "'int32'")
    assert deployer("preview", "--exit-code").code == 0


def test_a_plan_can_be_applied_once(project: Path, deployer: Deployer) -> None:
    deployer("preview", "--out", "demo.plan")
    assert deployer("up", "demo.plan").code == 0
    again = deployer("up", "demo.plan")
    assert again.code == 3
    assert "table/air.flights: exists: no → yes" in again.err


def test_rows_that_were_written_meanwhile_do_not_matter(applied: Path, deployer: Deployer) -> None:
    edit(applied / "specs" / "flights.yaml", "row_keys", "description: Departures.\nrow_keys")
    deployer("preview", "--out", "demo.plan")
    add_rows(applied, "flights")
    assert deployer("up", "demo.plan").code == 0


def test_a_table_that_was_to_be_dropped_empty_may_not_hold_rows_now(applied: Path, deployer: Deployer) -> None:
    (applied / "specs" / "planes.yaml").unlink()
    edit(applied / "specs" / "flights.yaml", "row_keys", "description: Departures.\nrow_keys")
    assert deployer("preview", "--out", "demo.plan").code == 0
    add_rows(applied, "planes")
    ran = deployer("up", "demo.plan")
    assert ran.code == 3
    assert "table/air.planes: rows: 0 → 2" in ran.err
    assert "nothing was applied; preview again with --out" in ran.err


def change_description(project: Path) -> None:
    edit(project / "specs" / "flights.yaml", "row_keys", "description: Departures.\nrow_keys")


def add_column(project: Path) -> None:
    edit(project / "specs" / "flights.yaml", "row_keys", "  - {name: gate, type: string}\nrow_keys")


def change_instance(project: Path) -> None:
    edit(project / "specs" / "demo.yaml", "engine:", "tags: {owner: data}\nengine:")


def add_table(project: Path) -> None:
    (project / "specs" / "more.yaml").write_text(table("more"), encoding="utf-8")


MOVES: dict[str, tuple[Callable[[Path], None], str]] = {
    "description": (change_description, "table/air.flights: description: none → Departures."),
    "column": (add_column, "table/air.flights: column gate: none → string"),
    "instance": (change_instance, 'instance/demo: tags: none → {"owner": "data"}'),
    "table": (add_table, "table/air.more: exists: no → yes"),
}


@pytest.mark.parametrize("name", MOVES)
def test_what_moved_since_is_refused_by_name(name: str, applied: Path, deployer: Deployer) -> None:
    change, said = MOVES[name]
    deployer("preview", "--out", "demo.plan")
    change(applied)
    assert deployer("up", "--yes").code == 0
    ran = deployer("up", "demo.plan")
    assert ran.code == 3
    assert said in ran.err
    assert "columns: [" not in ran.err  # what came is told by itself
    moved = deployer("up", "demo.plan", "--json").json["error"]["moved"]
    assert said.split(":")[0] in {each["address"] for each in moved}


def test_a_plan_that_was_applied_is_told_so(applied: Path, deployer: Deployer) -> None:
    change_description(applied)
    deployer("preview", "--out", "demo.plan")
    assert deployer("up", "demo.plan").code == 0
    ran = deployer("up", "demo.plan")
    assert (ran.code, "the lake already has the state that the plan declares" in ran.err) == (3, True)


def test_a_program_that_changed_is_something_that_moved(project: Path, deployer: Deployer) -> None:
    deployer("preview", "--out", "demo.plan")
    with (project / "stacks" / "__main__.py").open("a") as file:
        file.write("# more\n")
    ran = deployer("up", "demo.plan")
    assert (ran.code, "program: stacks/__main__.py:" in ran.err) == (3, True)
    assert not (project / "lakes").exists()


def rewritten(change: Callable[[dict[str, object]], None], *, signed: bool) -> Callable[[Path], None]:
    def rewrite(file: Path) -> None:
        document = json.loads(file.read_text(encoding="utf-8"))
        change(document)
        if signed:
            document["checksum"] = _checksum(document)
        file.write_text(json.dumps(document), encoding="utf-8")

    return rewrite


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:200])


def binary(file: Path) -> None:
    file.write_bytes(bytes(range(256)))


def other_json(file: Path) -> None:
    file.write_text("[1]", encoding="utf-8")


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


BROKEN: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "missing": (Path.unlink, 1, "this plan file does not exist"),
    "cut_off": (cut_off, 1, "incomplete"),
    "binary": (binary, 1, "this is not a valid plan"),
    "other_json": (other_json, 1, "this is not a valid plan"),
    "folder": (folder, 1, "it is a folder and not a file"),
    "edited": (rewritten(lambda d: d.update(allow_destroy=["table/air.x"]), signed=False), 1, "damaged or edited"),
    "later_format": (rewritten(lambda d: d.update(format=2), signed=False), 3, "of format 2, which a later deployer"),
    "other_release": (rewritten(lambda d: d.update(deployer="9.9"), signed=True), 3, "made by deployer 9.9"),
    "other_stack": (rewritten(lambda d: d.update(stack="other/dev"), signed=True), 3, "for project other"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_plan_that_is_not_as_it_was_written_is_refused_in_words(name: str, project: Path, deployer: Deployer) -> None:
    broken, code, said = BROKEN[name]
    deployer("preview", "--out", "demo.plan")
    broken(project / "demo.plan")
    ran = deployer("up", "demo.plan")
    assert (ran.code, said.lower() in ran.err.lower()) == (code, True), ran.err
    assert not (project / "lakes").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["up", "demo.plan", "--stack", "prod"], 3, "for stack dev, not prod", id="stack"),
        pytest.param(["up", "demo.plan", "--specs", "specs"], 1, "are part of the plan", id="specs"),
        pytest.param(["up", "demo.plan", "--allow-destroy", "table/a.b"], 1, "are part of the plan", id="allow"),
        pytest.param(["preview", "--out", "no/such/folder/p"], 1, "cannot be written", id="unwritable"),
        pytest.param(["preview", "--out", "p", "--against", "HEAD"], 1, "do not go together", id="against"),
    ],
)
def test_what_contradicts_a_plan_is_said(
    arguments: list[str], code: int, said: str, project: Path, deployer: Deployer
) -> None:
    deployer("preview", "--out", "demo.plan")
    ran = deployer(*arguments)
    assert (ran.code, said in ran.err) == (code, True), ran.err


def test_a_plan_with_refused_changes_is_not_saved(applied: Path, deployer: Deployer) -> None:
    add_rows(applied, "planes")
    (applied / "specs" / "planes.yaml").unlink()
    ran = deployer("preview", "--out", "demo.plan")
    assert ran.code == 3
    assert "was not saved" in ran.err
    assert not (applied / "demo.plan").exists()


def test_a_plan_holds_no_configuration(project: Path, deployer: Deployer) -> None:
    (project / "Pulumi.dev.yaml").write_text("config:\n  cloud:password: hunter2\n", encoding="utf-8")
    assert deployer("preview", "--out", "demo.plan").code == 0
    assert "hunter2" not in (project / "demo.plan").read_text(encoding="utf-8")


def test_a_branch_is_compared_with_a_ref_without_live_state(committed: Path, deployer: Deployer) -> None:
    (committed / "specs" / "planes.yaml").unlink()
    edit(committed / "specs" / "flights.yaml", "{name: delay", "{name: late, renamed_from: delay")
    add_table(committed)
    plan = deployer("preview", "--against", "main", "--json").json
    kinds = {item["address"]: [change["kind"] for change in item["changes"]] for item in plan["resources"]}
    assert kinds == {
        "table/air.flights": ["RenameColumn"],
        "table/air.more": ["CreateTable"],
        "table/air.planes": ["DeleteTable"],
    }
    [deletion] = [item["changes"][0] for item in plan["resources"] if item["action"] == "delete"]
    assert (deletion["risk"], "size unknown" in deletion["why"]) == ("destroys", True)
    assert not (committed / "lakes").exists()
    assert not (committed / ".pulumi").exists()
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "second")
    assert deployer("preview", "--against", "HEAD", "--exit-code").code == 0
    assert deployer("preview", "--against", "HEAD~1", "--exit-code").code == 2


@pytest.mark.parametrize("form", ["tree", "markdown", "html", "json"])
def test_comparisons_have_every_format(form: str, committed: Path, deployer: Deployer) -> None:
    change_description(committed)
    ran = deployer("preview", "--against", "main", "--format", form)
    assert ran.code == 0
    assert '"against": "main"' in ran.out if form == "json" else "live state was not read" in ran.out + ran.err
    assert "live state was not read" not in deployer("preview", "--format", form).out
    assert "table/air.flights" in ran.out
    assert "Departures." in ran.out


def test_a_project_in_a_folder_of_the_repository(project: Path, deployer: Deployer) -> None:
    top = project.parent
    git(top, "init", "-q", "-b", "main")
    git(top, "commit", "-qm", "empty", "--allow-empty")
    assert deployer("preview", "--against", "main", "--json").json["counts"]["create"] == 3
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    change_description(project)
    assert deployer("preview", "--against", "main", "--json").json["counts"]["update"] == 1


@pytest.mark.parametrize(
    "ref", ["nowhere", "--help", "-h", "", "--output=x", "main:specs", "main..main", "$(touch x)", "HEAD^{tree}"]
)
def test_what_is_no_commit_is_said_in_words(ref: str, committed: Path, deployer: Deployer) -> None:
    ran = deployer("preview", f"--against={ref}")
    assert (ran.code, "there is no commit" in ran.err) == (1, True), ran.err
    assert not (committed / "x").exists()


def test_no_repository_is_said_in_words(project: Path, deployer: Deployer) -> None:
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "needs a Git repository" in ran.err) == (1, True), ran.err


def test_specs_that_are_broken_at_the_ref_are_named_with_it(committed: Path, deployer: Deployer) -> None:
    (committed / "specs" / "demo.yaml").write_text(INSTANCE + "oops: 1\n", encoding="utf-8")
    git(committed, "commit", "-qam", "broken")
    (committed / "specs" / "demo.yaml").write_text(INSTANCE, encoding="utf-8")
    ran = deployer("preview", "--against", "main")
    assert ran.code == 1
    assert "main:specs/demo.yaml:5:1: unknown field `oops`" in ran.err


def test_a_link_among_the_specs_of_a_ref_is_not_followed(committed: Path, deployer: Deployer, tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(table("outside"), encoding="utf-8")
    link = committed / "specs" / "link.yaml"
    link.symlink_to(tmp_path / "outside.yaml")
    git(committed, "add", "-A")
    git(committed, "commit", "-qm", "link")
    link.unlink()
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "is a link at that commit" in ran.err) == (1, True), ran.err
