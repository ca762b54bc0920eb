"""`deployer view`: what its commands print of a project's lake."""

from __future__ import annotations

import json

from deployer.cli.inputs.lake_root import root_to_read
from deployer.table import connect
from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

LATE = "SELECT carrier, flight FROM air.flights WHERE flight > 3"


def test_views_are_listed_planned_and_refreshed(loaded: Run) -> None:  # noqa: F811
    assert "there are no views" in loaded("view", "list")[2]
    with connect(root_to_read(None, "dev", None)) as lake:
        lake.create_materialized_view("air.late", LATE)
        lake.create_materialized_view("air.counts", "SELECT carrier, count(*) AS n FROM air.late GROUP BY carrier")
    code, out, _ = loaded("view", "plan", "late")
    assert code == 0 and "air.late: a full refresh, since the view was never refreshed" in out
    assert "air.flights: version 1:2" in out
    code, out, _ = loaded("view", "refresh", "air.counts", "--with-sources", "--job-id", "first")
    lines = out.splitlines()
    assert code == 0 and lines[0].startswith("air.late: computed again, since the view was never refreshed: ")
    assert lines[1].startswith("air.counts: computed again") and "2 inserted" in lines[1]
    assert "the job was done before" in loaded("view", "refresh", "counts", "--job-id", "first")[1]
    assert "nothing to do: no row of a source has changed" in loaded("view", "refresh", "late")[1]
    assert loaded("rows", "delete", "flights", "--where", "carrier = 'UA'", "--yes")[0] == 0
    planned = json.loads(loaded("view", "plan", "late", "--json")[1])
    assert (planned["mode"], planned["commits"]) == ("incremental", 1)
    done = json.loads(loaded("view", "refresh", "late", "--json")[1])
    assert (done["mode"], done["rows_deleted"], done["sources"]) == ("incremental", 1, {"air.flights": "1:3"})
    views = json.loads(loaded("view", "list", "--json")[1])["views"]
    assert [(each["name"], each["rows"], each["plan"]["mode"]) for each in views] == [
        ("air.counts", 2, "incremental"),
        ("air.late", 1, "none"),
    ]
    jobs = json.loads(loaded("job", "list", "--json")[1])["jobs"]
    assert {each["kind"] for each in jobs} == {"REFRESH"}


def test_what_is_not_a_view_is_refused(loaded: Run) -> None:  # noqa: F811
    for arguments in (("refresh", "flights"), ("plan", "flights")):
        code, _, notes = loaded("view", *arguments)
        assert code != 0 and "air.flights is a table and not a view" in notes
    code, _, notes = loaded("view", "refresh", "lat")
    assert code != 0 and "there is no table 'lat'" in notes
