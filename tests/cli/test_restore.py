"""`deployer restore`, as a user runs it after `up`."""

from __future__ import annotations

import json
import re

from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)


def rows(loaded: Run) -> int:  # noqa: F811
    return sum(int(each["rows"]) for each in json.loads(loaded("table", "files", "flights", "--json")[1])["files"])


def test_it_says_what_it_undoes_asks_and_can_be_undone(loaded: Run) -> None:  # noqa: F811
    had = rows(loaded)
    assert loaded("savepoint", "create", "then")[0] == 0
    assert loaded("restore", "then")[1] == "air.flights: it is as it was at savepoint then\n"
    assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "second")[0] == 0
    now = rows(loaded)
    assert now == 2 * had
    code, out, _ = loaded("restore", "then", "--preview")
    assert code == 0 and out.startswith(f"air.flights: undoes 1 version: {now} → {had} rows, ")
    assert f"files with {had} rows go, files with 0 rows come back" in out
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


def test_bad_input_is_said_and_changes_nothing(loaded: Run) -> None:  # noqa: F811
    assert loaded("savepoint", "create", "then")[0] == 0
    for arguments, code, words in (
        (("restore", "them", "--yes"), 1, "there is no savepoint them; there are then"),
        (("restore", "then", "--yes", "--table", "flihgts"), 1, "did you mean"),
        (("service", "run", "flights", "RESTORE", "-o", "name=then"), 1, "RESTORE has no option `name`"),
    ):
        found, out, err = loaded(*arguments)
        assert found == code and words in " ".join((out + err).split())
