"""Commands that read live state, while the specs have problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Deployer
from tests.projects import table

READING = [
    pytest.param(("tables",), "air.flights", id="tables"),
    pytest.param(("describe", "air.flights"), "delay", id="describe"),
    pytest.param(("history", "air.flights"), "version", id="history"),
    pytest.param(("query", "air.flights"), "delay", id="query"),
    pytest.param(("state", "log", "air.flights"), "create", id="state-log"),
    pytest.param(("state", "show", "air.flights"), "air.flights", id="state-show"),
    pytest.param(("state", "verify"), "whole", id="state-verify"),
    pytest.param(("state", "repair", "--dry-run"), "", id="state-repair"),
    pytest.param(("state", "export", "lake.zip"), "wrote", id="state-export"),
    pytest.param(("table", "partitions", "air.flights"), "1 leaf", id="table-partitions"),
    pytest.param(("table", "files", "air.flights"), "", id="table-files"),
    pytest.param(("sql", "SELECT count(*) AS number FROM air.flights"), "number", id="sql"),
]
WRONG_TYPE = table("flights", "delay: int33")


@pytest.mark.parametrize(("command", "said"), READING)
def test_live_state_is_read_while_a_table_is_wrong(
    command: tuple[str, ...], said: str, applied: Path, deployer: Deployer
) -> None:
    (applied / "specs" / "flights.yaml").write_text(WRONG_TYPE)
    ran = deployer(*command)
    assert (ran.code, said in ran.out) == (0, True)
    assert "the specs have 1 problem (see `deployer validate`); this reads what is live" in ran.err


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("flights.yaml", "kind: Table\n  name: [\n", id="no-yaml"),
        pytest.param("demo.yaml", "kind: Instance\nname: demo\nroot: [1]\n", id="root-of-the-wrong-type"),
        pytest.param("demo.yaml", "kind: Instance\nname: demo\nroot: gs://bucket\n", id="root-of-an-unknown-scheme"),
        pytest.param("demo.yaml", "kind: Instance\nname: demo\nroot: '${nowhere}'\n", id="unknown-variable"),
        pytest.param("other.yaml", "kind: Instance\nname: other\nroot: lakes/other\n", id="two-instances"),
        pytest.param("dev.yaml", "kind: Overlay\nwhere: 3\n", id="overlay-that-may-have-another-root"),
    ],
)
def test_where_the_root_is_not_sure_it_is_the_one_that_was_applied(
    file: str, text: str, applied: Path, deployer: Deployer
) -> None:
    (applied / "specs" / file).write_text(text)
    ran = deployer("tables")
    assert (ran.code, "air.flights" in ran.out) == (0, True)
    assert "this reads what stack dev applied" in ran.err
    unknown = deployer("tables", "--stack", "new")
    assert unknown.code == 1
    assert f"specs/{file}" in unknown.err


def test_rows_for_programs_come_alone(applied: Path, deployer: Deployer) -> None:
    (applied / "specs" / "flights.yaml").write_text(WRONG_TYPE)
    assert deployer("tables", "--json").json["tables"][0]["name"] == "air.flights"
    assert deployer("query", "air.flights", "--format", "csv").out == "id,delay\n"
