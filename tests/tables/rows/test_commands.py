"""`deployer rows` and the modes of `deployer ingest`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)


def rows(run: Run) -> list[str]:
    code, out, notes = run("query", "flights", "--format", "csv", "--columns", "carrier,flight")
    assert code == 0, notes
    return sorted(out.split()[1:])


def told(run: Run, *arguments: str) -> Any:
    code, out, notes = run(*arguments, "--json")
    assert code == 0, notes
    return json.loads(out)


def test_delete(loaded: Run) -> None:  # noqa: F811
    foreseen = told(loaded, "rows", "delete", "flights", "--where", "carrier = 'DL'", "--dry-run")
    assert (foreseen["deleted"], foreseen["dry_run"], foreseen["job_id"]) == (2, True, None)
    assert [(leaf["keys"], leaf["deleted"]) for leaf in foreseen["leaves"]] == [
        ("keys from B6 to below DL, 500", 1),
        ("keys from DL, 500", 1),
    ]
    assert len(rows(loaded)) == 4
    code, out, _ = loaded("rows", "delete", "flights", "--where", "carrier = 'DL'", "--yes", "--job-id", "d")
    assert code == 0 and out.splitlines()[0] == "air.flights: delete 2 rows, as version 3"
    assert "  keys from B6 to below DL, 500: delete 1 row" in out.splitlines()
    assert rows(loaded) == ["AA,1", "UA,5"]
    assert told(loaded, "rows", "delete", "flights", "--all", "--job-id", "d", "--yes")["already_done"]
    code, out, _ = loaded("rows", "delete", "flights", "--where", "flight = 77", "--yes")
    assert code == 0 and out.startswith("air.flights: there is nothing to change")


def test_a_protected_table_keeps_a_row_unless_it_is_named(loaded: Run) -> None:  # noqa: F811
    code, _, notes = loaded("rows", "delete", "flights", "--all", "--yes")
    assert code == 3 and "would remove all 4 rows of the table, which is protected from deletion" in notes
    assert "--allow-destroy table/air.flights" in notes
    assert (
        told(loaded, "rows", "delete", "flights", "--all", "--yes", "--allow-destroy", "table/air.flights")["rows"] == 4
    )
    assert rows(loaded) == []


def test_update(loaded: Run) -> None:  # noqa: F811
    arguments = ["rows", "update", "flights", "--set", "flight=flight + 1", "--where", "carrier <> 'AA'", "--yes"]
    assert told(loaded, *arguments, "--job-id", "u")["updated"] == 3
    assert told(loaded, *arguments, "--job-id", "u")["already_done"]
    assert rows(loaded) == ["AA,1", "DL,4", "DL,701", "UA,6"]


def test_merge(loaded: Run) -> None:  # noqa: F811
    Path("more.csv").write_text("carrier,flight,at\nAA,1,2014-01-01T00:00:00Z\nZZ,9,2014-01-01T00:00:00Z\n", "utf-8")
    code, out, _ = loaded("rows", "merge", "flights", "more.csv", "--dry-run")
    assert code == 0 and out.startswith("air.flights: would insert 1 row, update 1 row")
    done = told(loaded, "rows", "merge", "flights", "more.csv", "--yes", "--when-not-matched-by-source", "delete")
    assert (done["inserted"], done["updated"], done["deleted"]) == (1, 1, 3)
    assert rows(loaded) == ["AA,1", "ZZ,9"]
    Path("keys.csv").write_text("carrier,flight\nZZ,9\n", "utf-8")
    arguments = ["--when-matched", "delete", "--when-not-matched", "ignore", "--yes"]
    assert told(loaded, "rows", "merge", "flights", "keys.csv", *arguments)["deleted"] == 1
    Path("keys.csv").write_text("carrier,flight\nAA,1\n", "utf-8")
    told(loaded, "rows", "merge", "flights", "keys.csv", "--yes")
    code, out, _ = loaded("query", "flights", "--format", "json")
    assert [json.loads(line)["at"] is None for line in out.splitlines()] == [False]  # not given, and so kept


def test_ingest_upserts_and_overwrites(loaded: Run) -> None:  # noqa: F811
    Path("more.csv").write_text("carrier,flight,at\nAA,1,2014-01-01T00:00:00Z\nZZ,9,2014-01-01T00:00:00Z\n", "utf-8")
    code, out, _ = loaded("ingest", "flights", "more.csv", "--mode", "upsert")
    assert code == 0 and "2 rows merged (1 inserted, 1 updated) in 2 files" in out
    assert rows(loaded) == ["AA,1", "DL,3", "DL,700", "UA,5", "ZZ,9"]
    code, out, _ = loaded("ingest", "flights", "more.csv", "--mode", "overwrite", "--job-id", "o")
    assert code == 0 and "2 rows replaced 5 in 2 files" in out
    assert told(loaded, "ingest", "flights", "more.csv", "--mode", "overwrite", "--job-id", "o")["already_done"]
    assert rows(loaded) == ["AA,1", "ZZ,9"]
    code, out, _ = loaded("history", "flights", "--json")
    assert [(each["kind"], each["rows"]) for each in json.loads(out)["versions"][:3]] == [
        ("overwrite", -3),
        ("upsert", 1),
        ("ingest", 4),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["delete", "flights"], "no rows to delete are named; give --where CONDITION, or --all"),
        (["delete", "flights", "--all", "--where", "true"], "--where and --all are both given"),
        (["delete", "flihts", "--all"], "did you mean 'flights'?"),
        (["delete", "flights", "--where", "flight = 1"], "stdin is not a terminal, so nothing can be confirmed"),
        (["delete", "flights", "--where", "flght = 1", "--yes"], "did you mean 'flight'?"),
        (
            ["update", "flights", "--yes"],
            "no column is given a value; give `values` or `values_sql` (on the command line --set)",
        ),
        (["update", "flights", "--set", "flight", "--yes"], "--set 'flight' is not COLUMN=EXPR"),
        (["update", "flights", "--set", "flight=1", "--set", "flight=2"], "gives column 'flight' two values"),
        (["update", "flights", "--set", "flight=nothing + 1", "--yes"], "cannot be computed"),
        (["merge", "flights", "none.csv", "--yes"], "no such file, folder or glob"),
        (
            ["merge", "flights", "in.csv", "--null-value", "NA", "--yes", "--on", "carrier"],
            "in more than one of the rows",
        ),
        (["merge", "flights", "in.csv", "--where", "true", "--null-value", "NA"], "a condition limits which rows"),
    ],
)
def test_what_cannot_be_is_said_in_words(arguments: list[str], says: str, loaded: Run) -> None:  # noqa: F811
    code, _, notes = loaded("rows", *arguments)
    assert code in (1, 3) and says in notes and "Traceback" not in notes
    assert rows(loaded) == ["AA,1", "DL,3", "DL,700", "UA,5"]
