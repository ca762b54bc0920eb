"""F18: one table that cannot be read is shown as such, with the reason in words, and keeps no other from anything."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from tests.cli.conftest import Deployer, Ran
from tests.projects import table
from tests.security.foreign.lake_damage import (
    DAMAGE,
    add_rows,
    location_of,
    names_missing_files,
    rows_recorded,
)

Damage = Callable[[Path, str], None]

#: What no message of ours may have: Lance's and Arrow's own words, source lines, and addresses of where to complain.
FOREIGN_WORDS = ("Traceback", ".rs:", "/home/runner", "LanceError", "pyarrow", "External error", "github.com")


def in_words(ran: Ran) -> Ran:
    """The command's outcome, after a look that nothing of it is a machine's own text."""
    said = ran.out + ran.err
    assert not [word for word in FOREIGN_WORDS if word in said], said
    return ran


@pytest.fixture(params=DAMAGE)
def damaged(request: pytest.FixtureRequest, root: Path) -> Path:
    """The lake; air.planes cannot be read."""
    DAMAGE[request.param](root, "planes")
    return root


@pytest.mark.thinned(4, to="full")
def test_every_command_that_reads_shows_it_and_goes_on_with_the_others(damaged: Path, deployer: Deployer) -> None:
    listed = in_words(deployer("tables", "--json")).json
    assert [each["name"] for each in listed["tables"]] == ["air.flights", "air.notes"]
    [unreadable] = listed["unreadable"]
    assert unreadable["table"] == "air.planes" and unreadable["what"]
    assert "table/air.planes: unreadable: " in in_words(deployer("tables")).err

    plan = in_words(deployer("preview", "--format", "json")).json
    [row] = plan["unreadable"]
    assert row["address"] == "table/air.planes" and row["what"]
    assert plan["counts"] == {"create": 0, "update": 0, "delete": 0, "same": 3} and not plan["resources"]
    assert in_words(deployer("preview", "--exit-code")).code == 2

    drift = in_words(deployer("drift", "--json"))
    assert drift.code == 2 and not drift.json["drift"] and not drift.json["undeclared"]
    assert [each["table"] for each in drift.json["unreadable"]] == ["air.planes"]

    for name in ("flights", "notes"):
        assert in_words(deployer("describe", name, "--json")).json["summary"]["rows"] == 3
        assert len(in_words(deployer("query", name, "--json")).json["rows"]) == 3
        assert in_words(deployer("history", name, "--json")).code == 0
    in_words(deployer("describe", "planes"))
    told = in_words(deployer("query", "planes"))
    assert told.code in (1, 3) and told.err.startswith("error: ")
    assert in_words(deployer("sql", "select count(*) as n from flights", "--json")).json["rows"] == [{"n": 3}]

    assert in_words(deployer("report", "--html", "page.html")).code == 0
    page = Path("page.html").read_text()
    assert "cannot be read" in page and "air.flights" in page

    verified = in_words(deployer("state", "verify", "--json"))
    assert verified.code == 2
    by_name = {each["name"]: each["differences"] for each in verified.json["logs"]}
    assert by_name["air.planes"] and not by_name["air.flights"] and not by_name["air.notes"]

    found = {each["check"]: each for each in in_words(deployer("doctor", "--json")).json["checks"]}
    assert found["state-store"]["status"] == "wrong" and found["state-store"]["details"]["unreadable"] == [
        "table/air.planes"
    ]
    checked = in_words(deployer("service", "check", "--json"))
    assert checked.code == 2 and [each["table"] for each in checked.json["problems"]] == ["air.planes"]


@pytest.mark.parametrize("form", ["tree", "markdown", "html"])
def test_every_form_of_the_plan_shows_it(root: Path, deployer: Deployer, form: str) -> None:
    DAMAGE["names_missing_files"](root, "planes")
    said = in_words(deployer("preview", "--format", form)).out
    assert "air.planes" in said and "unreadable" in said.lower() and "leaves it as it is" in said


@pytest.mark.thinned(3, to="full")
def test_up_applies_the_others_and_says_by_its_exit_code_that_one_was_left(damaged: Path, deployer: Deployer) -> None:
    """Neither created anew, nor changed, nor deleted: "cannot be read" is not "is not there"."""
    before = sorted(path for path in damaged.rglob("*") if "planes" in str(path))
    Path("specs/planes.yaml").write_text(table("planes", "seats: int32"))
    Path("specs/flights.yaml").write_text(table("flights", "delay: int32", "gate: string"))
    Path("specs/more.yaml").write_text(table("more"))
    ran = in_words(deployer("up", "--yes"))
    assert ran.code == 1
    assert "error: 1 table cannot be read and was left as it is: table/air.planes" in ran.err
    listed = deployer("tables", "--json").json
    assert [each["name"] for each in listed["tables"]] == ["air.flights", "air.more", "air.notes"]
    assert "gate" in [each["name"] for each in deployer("describe", "flights", "--json").json["columns"]]
    assert sorted(path for path in damaged.rglob("*") if "planes" in str(path)) == before
    assert in_words(deployer("up", "--yes", "--json")).json["error"]["unreadable"][0]["table"] == "air.planes"


@pytest.mark.thinned(3, to="full")
def test_up_does_not_delete_what_it_cannot_read(damaged: Path, deployer: Deployer) -> None:
    before = sorted(path for path in damaged.rglob("*") if "planes" in str(path))
    Path("specs/planes.yaml").unlink()
    ran = in_words(deployer("up", "--yes", "--allow-destroy", "table/air.planes"))
    assert ran.code == 1 and "planes" in ran.err
    assert sorted(path for path in damaged.rglob("*") if "planes" in str(path)) == before
    assert [each["table"] for each in deployer("tables", "--json").json["unreadable"]] == ["air.planes"]


def test_a_new_name_does_not_take_it_over(root: Path, deployer: Deployer) -> None:
    DAMAGE["folder_is_gone"](root, "planes")
    Path("specs/planes.yaml").write_text(table("aircraft", more="renamed_from: planes\n"))
    assert in_words(deployer("preview", "--format", "json")).json["resources"] == []
    assert in_words(deployer("up", "--yes")).code == 1
    assert [each["name"] for each in deployer("tables", "--json").json["tables"]] == ["air.flights", "air.notes"]


@pytest.mark.thinned(3, to="full")
def test_a_savepoint_is_made_of_the_others(damaged: Path, deployer: Deployer) -> None:
    made = in_words(deployer("savepoint", "create", "before"))
    assert made.code == 1 and "savepoint before of 2 tables" in made.out
    assert "table/air.planes: unreadable: " in made.err
    listed = in_words(deployer("savepoint", "list", "--json")).json["savepoints"]
    assert sorted(each["table"] for each in listed) == ["air.flights", "air.notes"]
    assert in_words(deployer("savepoint", "create", "alone", "--table", "flights")).code == 0


@pytest.mark.thinned(3, to="full")
def test_loads_of_the_others_go_on(damaged: Path, deployer: Deployer) -> None:
    assert in_words(deployer("ingest", "flights", "flights.csv", "--job-id", "again")).code == 0
    assert in_words(deployer("table", "reinitialise", "notes", "--force")).code == 0
    assert [each["rows"] for each in deployer("tables", "--json").json["tables"]] == [6, 0]


@pytest.mark.thinned(3, to="full")
def test_table_delete_removes_it_and_up_creates_it_again(damaged: Path, deployer: Deployer) -> None:
    """Its entry is enough: the log, the dataset's folder or both may be missing."""
    ran = in_words(deployer("table", "delete", "planes", "--force"))
    if (damaged / "air").is_dir() and any(each.is_file() for each in (damaged / "air").iterdir()):
        assert ran.code == 3 and "not a folder" in ran.err and "remove it by hand" in ran.err
        location_of(damaged, "planes").unlink()
        ran = in_words(deployer("table", "delete", "planes", "--force"))
    if "newer deployer" in ran.err:  # which can read it: it is not damaged
        assert ran.code == 3 and ran.err.endswith("upgrade\n")
        return
    assert ran.code == 0 and "deleted air.planes: " in ran.out
    assert not [path for path in damaged.rglob("*") if path.name.startswith("planes")]
    assert in_words(deployer("up", "--yes")).code == 0
    listed = deployer("tables", "--json").json
    assert not listed["unreadable"] and {each["name"]: each["rows"] for each in listed["tables"]} == {
        "air.flights": 3,
        "air.notes": 3,
        "air.planes": 0,
    }
    assert in_words(deployer("state", "verify")).code == 0


@pytest.mark.parametrize("damage", ["folder_is_gone", "log_is_gone", "another_dataset", "schema_is_none"])
def test_destroy_deletes_it_with_the_others(root: Path, deployer: Deployer, damage: str) -> None:
    DAMAGE[damage](root, "planes")
    every = [f"--allow-destroy=table/air.{name}" for name in ("flights", "notes", "planes")]
    refused = in_words(deployer("destroy", "--yes", *every[:2]))
    assert refused.code == 3 and "--allow-destroy table/air.planes" in refused.out
    assert len(deployer("tables", "--json").json["tables"]) == 2
    ran = in_words(deployer("destroy", "--yes", *every))
    assert ran.code == 0 and "table/air.planes: unreadable: " in ran.err
    assert "deleted table/air.planes, which could not be read" in ran.err
    assert not root.exists()
    assert in_words(deployer("up", "--yes")).code == 0


def test_destroy_needs_no_permission_for_a_table_that_is_not_protected(root: Path, deployer: Deployer) -> None:
    for name, columns in (("flights", ["delay: int32"]), ("planes", [])):
        Path(f"specs/{name}.yaml").write_text(table(name, *columns, more="deletion_protection: false\n"))
    Path("specs/notes.yaml").write_text(Path("specs/notes.yaml").read_text() + "deletion_protection: false\n")
    assert deployer("up", "--yes").code == 0
    DAMAGE["folder_is_gone"](root, "planes")
    assert in_words(deployer("destroy", "--yes")).code == 0
    assert not root.exists()


def test_older_datasets_go_with_a_table_whose_log_is_gone(root: Path, deployer: Deployer) -> None:
    assert deployer("table", "reinitialise", "planes", "--force").code == 0
    older = sorted(path.name for path in (root / "air").iterdir() if path.name.startswith("planes"))
    assert len(older) == 2
    DAMAGE["log_is_gone"](root, "planes")
    assert in_words(deployer("table", "delete", "planes", "--force")).code == 0
    assert not [path for path in (root / "air").iterdir() if path.name.startswith("planes")]


def test_another_stack_does_not_delete_a_table_whose_log_is_gone(root: Path, deployer: Deployer) -> None:
    DAMAGE["log_is_gone"](root, "planes")
    ran = in_words(deployer("table", "delete", "planes", "--force", "--stack", "other"))
    assert ran.code == 3 and "manages the instance of this table" in ran.err
    assert location_of(root, "planes").exists()


def test_rows_that_only_the_plan_looks_at(root: Path, deployer: Deployer) -> None:
    """The manifest is right, and a file is gone that nothing reads before a change asks for the rows."""
    for file in (location_of(root, "flights") / "data").iterdir():
        file.unlink()
    specs = table("flights", "delay: int32").replace("int32'}", "int32', nullable: false}")
    Path("specs/flights.yaml").write_text(specs)
    plan = in_words(deployer("preview", "--format", "json")).json
    assert [each["address"] for each in plan["unreadable"]] == ["table/air.flights"] and not plan["resources"]
    assert in_words(deployer("up", "--yes")).code == 1
    asked = in_words(deployer("query", "flights"))
    assert asked.code == 1 and "names a file that is missing" in asked.err


def test_a_table_without_keys_whose_newest_version_names_missing_files(root: Path, deployer: Deployer) -> None:
    """Nothing has to be read of such a file to record it, and it is looked for all the same."""
    names_missing_files(root, "notes")
    [unreadable] = deployer("tables", "--json").json["unreadable"]
    assert unreadable["table"] == "air.notes" and "names a file that is missing" in unreadable["what"]


def test_the_instances_own_log_is_needed(project: Path, root: Path, deployer: Deployer) -> None:
    import sqlite3

    with sqlite3.connect(root / "_state" / "state.db") as file:
        file.execute("UPDATE entries SET body = x'00' WHERE log = 'instance'")
    file.close()
    for command in (("preview",), ("tables",), ("drift",), ("up", "--yes"), ("report", "--html", "page.html")):
        ran = in_words(deployer(*command))
        assert ran.code == 1 and "log instance" in ran.err, command


def test_files_that_no_version_needs_hide_nothing_small(root: Path, deployer: Deployer) -> None:
    """The bytes of leftovers make up for a missing file, so listings pass it; `state verify` opens every version."""
    data = location_of(root, "planes") / "data"
    [file] = data.iterdir()
    (data / "left.lance").write_bytes(file.read_bytes())
    file.unlink()
    assert len(in_words(deployer("tables", "--json")).json["tables"]) == 3
    ran = in_words(deployer("query", "planes"))
    assert ran.code == 1 and "names a file that is missing" in ran.err
    assert in_words(deployer("state", "verify")).code == 2


def test_rights_that_are_missing(root: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    location, whole = str(location_of(root, "planes")), os.listdir

    def refused(path: str = ".") -> list[str]:
        if str(path).startswith(location):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return whole(path)

    monkeypatch.setattr(os, "listdir", refused)
    [unreadable] = in_words(deployer("tables", "--json")).json["unreadable"]
    assert unreadable["what"].endswith("_versions: it cannot be read: permission denied")
    assert in_words(deployer("up", "--yes")).code == 1


def test_policies_say_what_they_could_not_judge(project: Path, root: Path, deployer: Deployer) -> None:
    """A mandatory rule does not pass in silence: the verdict says of which table it was not asked."""
    Path("policies").mkdir()
    Path("policies/rules.yaml").write_text("kind: Policy\nrule: destroys-data\n")
    names_missing_files(root, "planes")
    Path("specs/planes.yaml").unlink()
    ran = in_words(deployer("preview", "--policy-only", "--format", "json"))
    [note] = ran.json["policy"]["notes"]
    assert note.startswith("table/air.planes cannot be read, so no rule checked changes to it, and none is made")


def test_a_saved_plan_is_refused_once_a_table_can_be_read_again(
    project: Path, root: Path, deployer: Deployer, tmp_path: Path
) -> None:
    location = location_of(root, "planes")
    location.rename(tmp_path / "aside")
    assert deployer("preview", "--out", "saved.plan").code == 0
    (tmp_path / "aside").rename(location)
    ran = in_words(deployer("up", "saved.plan", "--yes"))
    assert ran.code == 3 and "table/air.planes: readable: no → yes" in ran.err


def test_services_of_the_others_are_listed_checked_and_run(project: Path, root: Path, deployer: Deployer) -> None:
    compact = "services:\n  compact:\n    trigger: {schedule: '0 3 * * *'}\n"
    for name in ("flights", "planes"):
        columns = ["delay: int32"] if name == "flights" else []
        Path(f"specs/{name}.yaml").write_text(table(name, *columns, more=compact))
    assert deployer("up", "--yes").code == 0
    DAMAGE["entry_is_rubbish"](root, "planes")
    listed = in_words(deployer("service", "list", "--json")).json
    assert [each["table"] for each in listed["services"]] == ["air.flights"] and "air.planes" in listed["unreadable"]
    checked = in_words(deployer("service", "check", "--json"))
    assert checked.code == 2 and checked.json["problems"][0]["status"] == "UNREADABLE"
    ran = in_words(deployer("service", "run", "--all", "COMPACT", "--json")).json
    assert [each["table"] for each in ran["runs"]] == ["air.flights"] and "air.planes" in ran["unreadable"]


def test_the_agent_and_its_metrics(project: Path, root: Path) -> None:
    from contextlib import closing

    from deployer.services.agent.agent import Agent, Settings
    from deployer.services.agent.serving import AgentMetrics
    from deployer.state import open_store

    DAMAGE["entry_is_rubbish"](root, "planes")
    told: list[tuple[str, str]] = []
    with closing(open_store(root)) as store:
        agent = Agent(store, str(root), lambda event, **about: told.append((event, about.get("table", ""))), Settings())
        agent.look()
        lines = AgentMetrics(agent).text().decode().splitlines()
    assert told == [("trouble", "air.planes")]
    assert 'deployer_table_unreadable{table="air.planes"} 1.0' in lines
    assert (
        'deployer_table_unreadable{table="air.flights"} 0.0' in lines
        and 'deployer_table_rows{table="air.flights"} 3.0' in lines
    )


def test_plain_pulumi_is_told_of_that_resource_alone(project: Path, root: Path) -> None:
    from deployer.errors import Corrupt
    from deployer.provider.provider import LakeProvider
    from deployer.provider.resources.run_context import Stores
    from tests.security.foreign.lake_damage import table_id

    ids = {name: table_id(root, name) for name in ("flights", "planes")}
    DAMAGE["folder_is_gone"](root, "planes")
    provider = LakeProvider(Stores(project))

    def read(name: str) -> str:
        urn = f"urn:pulumi:dev::lakes::lake:index:Table::air.{name}"
        found = provider.read(urn, ids[name], {"root": "lakes/demo"})
        return found.id if found else ""

    assert read("flights") == ids["flights"]
    with pytest.raises(Corrupt, match=r"table/air\.planes: the table cannot be read: .*there is no Lance dataset"):
        read("planes")


def test_rows_of_others_are_counted_in_although_nothing_is_recorded(root: Path, deployer: Deployer) -> None:
    add_rows(root, "planes", {"id": [4, 5]})
    [rows] = [each["rows"] for each in deployer("tables", "--json").json["tables"] if each["name"] == "air.planes"]
    assert (rows, rows_recorded(root, "planes")) == (5, 3)
    assert deployer("up", "--yes").code == 0
    assert rows_recorded(root, "planes") == 5


def test_a_panic_in_lance_is_words(root: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rust's panics reach Python as exceptions that are none of `Exception`."""

    class PanicException(BaseException):
        pass

    whole = lance.dataset

    def panics(location: str, *arguments: object, **options: object) -> lance.LanceDataset:
        if "planes" in str(location):
            raise PanicException("index out of bounds, at /home/runner/work/lance/rust/lance/src/x.rs:1:2")
        return whole(location, *arguments, **options)

    add_rows(root, "planes", {"id": [4]})
    monkeypatch.setattr(lance, "dataset", panics)
    [unreadable] = in_words(deployer("tables", "--json")).json["unreadable"]
    assert unreadable["table"] == "air.planes" and "index out of bounds" in unreadable["what"]


@pytest.mark.thinned(3, to="full")
def test_garbage_of_the_others_is_looked_for(damaged: Path, deployer: Deployer) -> None:
    """F18: `table gc` of one table, or of all, stopped at another one."""
    assert damaged.exists() and in_words(deployer("table", "gc", "notes", "--dry-run")).code == 0
    ran = in_words(deployer("table", "gc", "--dry-run"))
    assert "air.flights" in ran.out and "air.notes" in ran.out
    found = in_words(deployer("table", "gc", "--dry-run", "--json"))
    broken = [each["table"] for each in found.json.get("error", {}).get("unreadable", ())]
    assert broken in ([], ["air.planes"]) and found.code == len(broken) == ran.code
    named = in_words(deployer("table", "gc", "planes", "flights", "notes", "--dry-run", "--json"))
    assert [each["table"] for each in named.json["tables"] if each["table"] != "air.planes"] == [
        "air.flights",
        "air.notes",
    ]
    unreadable = [each["table"] for each in named.json.get("error", {}).get("unreadable", ())]
    assert unreadable in ([], ["air.planes"]) and named.code == len(unreadable)


def test_a_pipe_for_a_manifest_keeps_nobody_waiting(root: Path, deployer: Deployer) -> None:
    """F18: Lance waits for a pipe forever, and the plan of all tables with it."""
    os.mkfifo(location_of(root, "planes") / "_versions" / "18446744073709551611.manifest")
    plan = in_words(deployer("preview", "--format", "json")).json
    assert [each["address"] for each in plan["unreadable"]] == ["table/air.planes"]
    assert "is not a file" in plan["unreadable"][0]["what"]


@pytest.mark.parametrize("folder", ["", "_versions", "_transactions", "data"])
@pytest.mark.parametrize("command", [("table", "gc", "planes"), ("service", "run", "planes", "CLEAN")])
def test_nothing_is_removed_behind_a_link(
    command: tuple[str, ...], folder: str, root: Path, tmp_path: Path, deployer: Deployer
) -> None:
    """F2: files that no version has, and old versions, were removed wherever a link led."""
    inside, outside = location_of(root, "planes") / folder, tmp_path / "outside"
    shutil.move(inside, outside)
    inside.symlink_to(outside)
    for file in ("zzz.lance", "data/zzz.lance"):
        (outside / file).parent.mkdir(exist_ok=True)
        (outside / file).write_text("kept")
        os.utime(outside / file, (10**9, 10**9))
    before = sorted(str(each) for each in outside.rglob("*") if each.is_file())
    ran = in_words(deployer(*command))
    assert ran.code == 3 and "is a link" in ran.err
    assert sorted(str(each) for each in outside.rglob("*") if each.is_file()) == before
