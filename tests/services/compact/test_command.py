"""`deployer service run`, as a user runs it after `up`."""

from __future__ import annotations

import json

import pytest

from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)


def test_small_files_are_merged_and_said(loaded: Run) -> None:  # noqa: F811
    for number in range(3):
        assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", f"again-{number}")[0] == 0
    code, out, _ = loaded("service", "run", "flights", "compact")
    assert code == 0 and out.startswith("air.flights: 12 → 3 files, ")
    assert "16 rows rewritten, 0 deleted rows dropped, in 1 portion" in out and "in this process" in out
    code, out, _ = loaded("service", "run", "flights", "COMPACT", "--json")
    document = json.loads(out)
    assert code == 0 and (document["status"], document["after"]["files"]) == ("SKIPPED", 3)
    code, out, _ = loaded("service", "run", "flights", "COMPACT")
    assert code == 0 and "nothing to do: 3 files: none is to be merged" in out


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["flights", "TIDY"], 1, "'TIDY' is not a valid service; use one of COMPACT, CLUSTER"),
        (["flights", "compct"], 1, "'compct' is not a valid service; did you mean COMPACT?"),
        (["flight", "COMPACT"], 1, "did you mean 'flights'?"),
        (["flights", "COMPACT", "-o", "min_file=3"], 1, "COMPACT has no option `min_file`"),
        (["flights", "COMPACT", "-o", "strategy=fast"], 1, "strategy"),
        (["flights", "COMPACT", "-o", "min_files"], 1, "write NAME=VALUE"),
        (["flights", "COMPACT", "-o", "min_files=2", "-o", "min_files=3"], 1, "given twice"),
        (["flights", "COMPACT", "--cluster", "big"], 1, "no cluster 'big'"),
    ],
)
def test_bad_input_is_said_and_changes_nothing(loaded: Run, arguments: list[str], code: int, text: str) -> None:  # noqa: F811
    before = loaded("table", "files", "flights", "--json")
    found = loaded("service", "run", *arguments)
    assert found[0] == code and text in " ".join((found[1] + found[2]).split())
    assert loaded("table", "files", "flights", "--json") == before
