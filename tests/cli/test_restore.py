"""`deployer restore`, as a user runs it after `up`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)


def rows(loaded: Run) -> int:  # noqa: F811
    return sum(int(each["rows"]) for each in json.loads(loaded("table", "files", "flights", "--json")[1])["files"])


def test_it_says_what_it_undoes_asks_and_can_be_undone(loaded: Run) -> None:  # noqa: F811
    had = rows(loaded)
    assert loaded("savepoint", "create", "then")[0] == 0
    assert loaded("restore", "then")[1] == "air.flights: the same as at savepoint then\n"
    assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "second")[0] == 0
    now = rows(loaded)
    assert now == 2 * had
    code, out, _ = loaded("restore", "then", "--preview")
    assert code == 0 and out.startswith(f"air.flights: undoes 1 version: {now} → {had} rows, ")
    assert f"removes files with {had} rows, brings back files with 0 rows" in out
    assert f"forgets ingest second of {had} rows" in out
    code, out, err = loaded("restore", "then")
    assert code == 1 and "--yes" in out + err and rows(loaded) == now
    code, out, err = loaded("restore", "then", "--yes")
    assert code == 0 and "air.flights: restored to savepoint then, as version 4" in out and rows(loaded) == had
    [undo] = re.findall(r"`deployer restore (before-restore-\S+)` undoes it", " ".join((out + err).split()))
    code, out, _ = loaded("restore", undo, "--yes", "--json", "--no-savepoint")
    document = json.loads(out)
    assert (code, document["restored"], document["undo"]) == (0, True, "")
    assert document["tables"][0]["status"] == "SUCCEEDED" and rows(loaded) == now
    assert loaded("state", "verify")[0] == 0


def test_several_tables_are_previewed_confirmed_and_restored_together(loaded: Run) -> None:  # noqa: F811
    [spec] = [file for file in Path().rglob("*.yaml") if "name: flights" in file.read_text(encoding="utf-8")]
    text = spec.read_text(encoding="utf-8").replace("name: flights", "name: others")
    spec.with_name("others.yaml").write_text(text, encoding="utf-8")
    assert loaded("up", "--yes")[0] == 0 and loaded("savepoint", "create", "then")[0] == 0
    for table in ("flights", "others"):
        assert loaded("ingest", table, "in.csv", "--null-value", "NA", "--job-id", "second")[0] == 0
    code, out, err = loaded("restore", "then", "--preview")
    assert code == 0 and "air.flights: undoes 1 version: 8 → 4 rows" in out and "air.others: undoes 1 version" in out
    assert "goes from version 2 to the content of version 1" in out
    assert "all 2 tables are restored, or none" in err and "is made first" in err
    document = json.loads(loaded("restore", "then", "--yes", "--json")[1])
    assert [(each["table"], each["status"]) for each in document["tables"]] == [
        ("air.flights", "SUCCEEDED"),
        ("air.others", "SUCCEEDED"),
    ]
    assert len({each["run_id"] for each in document["tables"]}) == 1
    assert loaded("restore", document["undo"], "--yes")[0] == 0 and rows(loaded) == 8


def test_bad_input_is_said_and_changes_nothing(loaded: Run) -> None:  # noqa: F811
    assert loaded("savepoint", "create", "then")[0] == 0
    for arguments, code, words in (
        (("restore", "them", "--yes"), 1, "there is no savepoint them; there are then"),
        (("restore", "then", "--yes", "--table", "flihgts"), 1, "did you mean"),
        (("service", "run", "flights", "RESTORE", "-o", "name=then"), 1, "RESTORE has no option `name`"),
    ):
        found, out, err = loaded(*arguments)
        assert found == code and words in " ".join((out + err).split())


def test_a_version_is_restored_without_a_savepoint(loaded: Run) -> None:  # noqa: F811
    had = rows(loaded)
    assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "second")[0] == 0
    code, out, _ = loaded("restore", "flights", "--at", "2", "--preview")
    assert code == 0 and out.startswith(f"air.flights: undoes 1 version: {2 * had} → {had} rows, ")
    assert rows(loaded) == 2 * had
    code, out, err = loaded("restore", "flights", "--at", "2")
    assert code == 1 and "--yes" in out + err and rows(loaded) == 2 * had
    code, out, err = loaded("restore", "flights", "--at", "2", "--yes")
    assert code == 0 and "air.flights: restored to version 2, as version 4" in out and rows(loaded) == had
    [undo] = re.findall(r"`deployer restore (before-restore-\S+)` undoes it", " ".join((out + err).split()))
    code, out, _ = loaded("restore", undo, "--yes", "--json")
    assert code == 0 and rows(loaded) == 2 * had
    code, out, _ = loaded("restore", "flights", "--at", "2", "--preview", "--json")
    assert json.loads(out)["at"] == "2" and json.loads(out)["tables"][0]["point"]["lance_version"] == 2
    for arguments, words in (
        (("flights", "--at", "77"), "there is no version 77"),
        (("flights", "--at", "soon"), "neither a version nor a time"),
        (("flihgts", "--at", "2"), "did you mean"),
        (("flights",), "`deployer restore flights --at VERSION`"),
        (("flights", "--at", "2", "--table", "flights"), "--at and --table do not go together"),
    ):
        code, out, err = loaded("restore", *arguments, "--yes")
        assert code == 1 and words in " ".join((out + err).split())
    assert loaded("state", "verify")[0] == 0


def test_repair_advises_a_restore_that_works(loaded: Run) -> None:  # noqa: F811
    assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "second")[0] == 0
    max(Path.cwd().glob("**/air/flights-*.lance/data/*.lance"), key=lambda each: each.stat().st_mtime_ns).unlink()
    _, out, err = loaded("state", "repair")
    assert "`deployer restore air.flights --at VERSION`" in " ".join((out + err).split())
    assert loaded("restore", "flights", "--at", "2", "--yes")[0] == 0
    assert loaded("state", "verify")[0] == 0 and loaded("query", "flights")[0] == 0


@pytest.mark.parametrize("broken", ["this table", "another table", "a file"])
def test_tables_are_restored_while_specs_have_problems(loaded: Run, broken: str) -> None:  # noqa: F811
    had = rows(loaded)
    assert loaded("savepoint", "create", "then")[0] == 0
    assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "second")[0] == 0
    [spec] = [file for file in Path().rglob("*.yaml") if "name: flights" in file.read_text(encoding="utf-8")]
    if broken == "this table":
        spec.write_text(spec.read_text(encoding="utf-8").replace("kind: Table", "kind: Table\nunknown: 1"), "utf-8")
    else:
        text = "kind: Table\nname: [" if broken == "a file" else "kind: Table\ndatabase: air\nname: other\n"
        spec.with_name("other.yaml").write_text(text, encoding="utf-8")
    assert loaded("validate")[0] != 0
    for arguments in (("restore", "flights", "--at", "2"), ("restore", "then")):
        code, out, err = loaded(*arguments, "--preview")
        assert code == 0 and out.startswith(f"air.flights: undoes 1 version: {2 * had} → {had} rows, ")
        assert "(see `deployer validate`); this changes what" in " ".join(err.split())
    assert loaded("query", "flights", "--at", "2", "--limit", "1")[0] == 0
    code, out, err = loaded("restore", "flights", "--at", "2", "--yes")
    assert code == 0, err
    assert rows(loaded) == had
