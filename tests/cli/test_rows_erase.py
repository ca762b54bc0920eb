"""`deployer rows erase` as a user runs it after `up`."""

from __future__ import annotations

import json

from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

WHERE = ("--where", "carrier = 'AA'")


def test_rows_are_erased_after_what_goes_was_shown(loaded: Run) -> None:  # noqa: F811
    assert loaded("savepoint", "create", "before")[0] == 0
    code, out, _ = loaded("rows", "erase", "flights", *WHERE, "--dry-run")
    assert code == 0 and "removes savepoints of these versions: before" in out
    code, _, error = loaded("rows", "erase", "flights", *WHERE, "--yes")
    assert code == 3 and "savepoint before holds rows to be erased" in error and "--delete-savepoints" in error
    code, out, _ = loaded("rows", "erase", "flights", *WHERE, "--yes", "--delete-savepoints", "--json")
    done = json.loads(out)
    assert code == 0 and done["proven"] and done["savepoints"] == ["before"] and done["rows_left"] == 0
    code, out, _ = loaded("rows", "erase", "flights", *WHERE, "--yes")
    assert code == 0 and "erased 0 rows" in out and "0 rows left" in out


def test_bad_input_is_said(loaded: Run) -> None:  # noqa: F811
    for where, words in (("no_such = 1", "no_such"), ("carrier =", "is not one SQL expression"), ("1 + 1", "")):
        code, _, error = loaded("rows", "erase", "flights", "--where", where, "--yes")
        assert code == 1 and words in error and "Traceback" not in error
    code, _, error = loaded("rows", "erase", "flihgts", *WHERE, "--yes")
    assert code == 1 and "did you mean" in error
