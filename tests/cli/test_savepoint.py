"""`deployer savepoint`, as a user runs it after `up`."""

from __future__ import annotations

import datetime as dt
import json
import time

import pytest

from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)


def test_savepoints_are_made_listed_and_deleted(loaded: Run) -> None:  # noqa: F811
    code, out, _ = loaded("savepoint", "create", "before", "--expires", "7d", "--note", "why")
    assert code == 0 and out.startswith("savepoint before of 1 table, until ") and "air.flights at version 2" in out
    assert loaded("savepoint", "create", "again", "--table", "flights")[0] == 0
    code, out, _ = loaded("savepoint", "list", "--json")
    found = json.loads(out)["savepoints"]
    assert [(each["name"], each["table"], each["lance_version"], each["note"]) for each in found] == [
        ("again", "air.flights", 2, ""),
        ("before", "air.flights", 2, "why"),
    ]
    made, until = (dt.datetime.fromisoformat(found[1][name]) for name in ("at", "expires_at"))
    assert found[0]["expires_at"] is None and until - made > dt.timedelta(days=6)
    assert "why" in loaded("savepoint", "list")[1]
    assert loaded("savepoint", "delete", "before")[1] == "deleted savepoint before of air.flights\n"
    code, out, _ = loaded("service", "run", "flights", "AUTOSAVEPOINT")
    assert code == 0 and out.startswith("air.flights: savepoint auto-")


def test_bad_input_is_said(loaded: Run) -> None:  # noqa: F811
    assert loaded("savepoint", "create", "one")[0] == 0
    for arguments, words in (
        (("create", "one"), "there is a savepoint one already (air.flights)"),
        (("create", "a/b"), "a savepoint cannot be called 'a/b'"),
        (("create", "two", "--expires", "soon"), "'soon' is not a valid duration"),
        (("create", "two", "--table", "flihgts"), "did you mean"),
        (("delete", "two"), "there is no savepoint two; there are one"),
    ):
        code, out, err = loaded("savepoint", *arguments)
        said = " ".join((out + err).split())
        assert code == 1 and (words in said or words.split(" (")[0] in said), said
    assert len(json.loads(loaded("savepoint", "list", "--json")[1])["savepoints"]) == 1


def test_a_dry_run_of_clean_lists_the_versions(loaded: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    for number in range(3):
        assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", f"again-{number}")[0] == 0
    assert loaded("savepoint", "create", "one")[0] == 0
    assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "last")[0] == 0
    later = time.time() + 8 * 86_400
    monkeypatch.setattr("deployer.tables.maintenance.collect.garbage.time.time", lambda: later)
    code, out, _ = loaded("service", "run", "flights", "CLEAN", "-o", "dry_run=true")
    assert code == 0 and out.startswith("air.flights: would remove 4 versions (1 to 4): ")
    code, out, _ = loaded("service", "run", "flights", "CLEAN")
    assert code == 0 and out.startswith("air.flights: 6 → 2 versions, ") and "removed 4 versions (1 to 4)" in out
