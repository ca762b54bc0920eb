"""`deployer service run TABLE CLUSTER`, as a user runs it after `up`."""

from __future__ import annotations

import json

import pytest

from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

RUN = ("service", "run", "flights", "CLUSTER")
BY = ("-o", "columns=flight,carrier", "-o", "curve=zorder")


def text(out: str) -> str:
    return " ".join(out.split())


def test_the_depth_is_said_before_and_after(loaded: Run) -> None:  # noqa: F811
    for number in range(3):
        assert loaded("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", f"again-{number}")[0] == 0
    before = loaded("table", "files", "flights", "--json")
    code, out, _ = loaded(*RUN, *BY, "--dry-run")
    assert code == 0 and "by zorder over flight, carrier: overlap depth 4.00 (at most 4 of 12 files; by" in text(out)
    assert "a dry run: 16 rows," in text(out) and loaded("table", "files", "flights", "--json") == before
    code, out, _ = loaded(*RUN, *BY)
    assert code == 0 and "clustered by zorder over flight, carrier: 12 → 3 files" in text(out)
    assert "overlap depth 4.00 (at most 4 of 12 files" in text(out) and "→ 1.00 (at most 1 of 3 files" in text(out)
    assert "overlap depth 4.00 → 1.00" in text(loaded("service", "runs", "flights")[1])
    code, out, _ = loaded(*RUN, *BY, "--json")
    document = json.loads(out)
    assert code == 0 and (document["status"], document["work"]["rows"]) == ("SKIPPED", 0)
    code, out, _ = loaded(*RUN, *BY)
    assert code == 0 and "nothing to do: 3 files: all are clustered by zorder over flight, carrier" in text(out)
    code, out, _ = loaded("query", "flights", "--range", "flight=1..100")
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*RUN, "-o", "columns=fligt"), "did you mean 'flight'?"),
        ((*RUN, "-o", "curve=peano"), "use one of sort, zorder, hilbert"),
        (("service", "run", "flights", "COMPACT", "--dry-run"), "CLUSTER, CLEAN and EXPIRE have one"),
    ],
)
def test_bad_input_is_said_and_changes_nothing(loaded: Run, arguments: tuple[str, ...], message: str) -> None:  # noqa: F811
    before = loaded("table", "files", "flights", "--json")
    code, out, err = loaded(*arguments)
    assert code == 1 and message in text(out + err)
    assert loaded("table", "files", "flights", "--json") == before
