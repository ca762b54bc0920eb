"""`online` has one meaning: in the schema, the docs and the commands, and in what runs on an offline table."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from deployer.cli.commands.table.flags import offline, online
from deployer.specs.schema.document import json_schema
from deployer.state import open_store
from deployer.state.model.entities import TableState
from spark_jobs.service import run_scheduled
from tests.cli.conftest import Deployer
from tests.projects import REPOSITORY, table

MEANING = (
    "whether services and splits of leaves run on the table by themselves; "
    "loads, queries and what is run by hand work either way"
)
FLIGHTS = "air.flights"
MORE = (
    "online: false\npartitions: {max_rows_per_leaf: 2}\n"
    "services:\n  compact: {trigger: {commits: 1}}\n  clean: {trigger: {schedule: '* * * * *'}}\n"
)


def one_line(text: str) -> str:
    return " ".join(text.split())


def page(name: str) -> str:
    return (REPOSITORY / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json_schema()["$defs"]["Table"]["properties"]["online"]["description"], id="schema"),
        pytest.param(online.__doc__ or "", id="table-online"),
        pytest.param(offline.__doc__ or "", id="table-offline"),
        *(
            pytest.param(page(name), id=name)
            for name in ("spec/table.md", "tables.md", "services.md", "policy.md", "commands/table.md")
        ),
    ],
)
def test_it_is_said_in_the_same_words_everywhere(text: str) -> None:
    assert MEANING in one_line(text).replace("Whether services", "whether services")


def state(project: Path) -> TableState:
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name(FLIGHTS)
        assert entry is not None
        return store.table(entry.table_id)


def test_an_offline_table_is_loaded_and_nothing_runs_on_it_by_itself(project: Path, deployer: Deployer) -> None:
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", more=MORE), encoding="utf-8")
    (project / "rows.csv").write_text("id,delay\n" + "".join(f"{number},5\n" for number in range(8)), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    for _ in range(2):
        assert deployer("ingest", FLIGHTS, "rows.csv").code == 0
    assert len(deployer("query", FLIGHTS, "--json").json["rows"]) == 16
    assert deployer("agent", "--once").code == 0
    assert deployer("service", "run", "--all").code == 0
    assert "air.flights COMPACT is left out: the table is offline" in deployer("service", "run", "--all", "compact").err
    root = str(project / "lakes" / "demo")
    scheduled = run_scheduled(root, FLIGHTS, "COMPACT", scheduled="2027-03-22T18:59:43Z")  # as AWS starts it
    assert (scheduled["run_id"], scheduled["why"]) == (None, "the table is offline")
    left = state(project)
    assert (left.files.rows, left.files.count, len(left.leaves()), dict(left.runs)) == (16, 2, 1, {})
    shown = one_line(deployer("describe", FLIGHTS).out)
    assert "online no: services and splits of leaves do not run on it by themselves" in shown

    assert deployer("service", "run", FLIGHTS, "compact").code == 0
    assert state(project).files.count == 1
    assert deployer("table", "split", FLIGHTS, "--max-rows", "4").code == 0
    split = len(state(project).leaves())
    assert split > 1
    assert deployer("table", "online", FLIGHTS).code == 0
    assert deployer("ingest", FLIGHTS, "rows.csv").code == 0
    now = state(project)
    assert len(now.leaves()) > split
    assert [run.cause for run in now.runs.values() if run.cause.startswith("trigger")]
