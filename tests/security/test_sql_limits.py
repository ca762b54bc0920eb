"""SQL of specs and policies that takes any memory or time: a plan refuses it with the place of the expression."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.platform.sql import process
from deployer.platform.sql.process import OverLimit, SqlFailed, SqlProcess
from tests.cli.conftest import Deployer, project  # noqa: F401
from tests.projects import table

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
BIG = "repeat('a', 2000000000)"


@pytest.fixture(scope="module")
def computer() -> Iterator[SqlProcess]:
    found = SqlProcess()
    yield found
    found.close()


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (BIG, "needs more than 1,024 MiB of memory"),
        ("repeat(name, 2000000000)", "needs more than 1,024 MiB of memory"),
        ("lpad('a', 2000000000)", "needs more than 1,024 MiB of memory"),
    ],
)
def test_an_expression_over_the_limit_ends_its_own_process(computer: SqlProcess, expression: str, says: str) -> None:
    """F24: `repeat('a', 2000000000)` took 2 GB and a minute of the command; a chain of operators ended it."""
    with pytest.raises(OverLimit, match=says):
        computer.ask({"expression": expression}, [ROWS])
    assert computer.ask({"expression": "id + 1"}, [ROWS])["value"].to_pylist() == [2, 3]


@pytest.mark.parametrize("expression", ["range(0, 200000000)", "array_repeat(id, 2000000000)"])
def test_an_array_that_cannot_be_had_is_an_error(computer: SqlProcess, expression: str) -> None:
    """F24: some functions of DataFusion say themselves that they are asked for too much."""
    with pytest.raises((SqlFailed, OverLimit)):
        computer.ask({"expression": expression}, [ROWS])


def test_an_answer_that_is_too_large_is_not_sent() -> None:
    """F24: this process does not take what that one could still hold."""
    strict = SqlProcess(answer=2**20)
    with pytest.raises(OverLimit, match="gives more than 1 MiB"):
        strict.ask({"expression": "repeat('a', 600000)"}, [ROWS])
    strict.close()


ENDLESS = "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n) SELECT count(*) AS c FROM n"


def test_what_takes_too_long_is_ended(computer: SqlProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """F24: an expression or query that never ends could not be interrupted."""
    monkeypatch.setattr(computer, "seconds", 0.2)
    with pytest.raises(OverLimit, match=r"takes more than 0.2 s"):
        computer.ask({"query": ENDLESS, "names": ["t"]}, [ROWS])
    monkeypatch.setattr(computer, "seconds", 20)
    assert computer.ask({"expression": "id + 1"}, [ROWS])["value"].to_pylist() == [2, 3]


def test_the_process_has_none_of_the_secrets_and_writes_no_file(
    computer: SqlProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F24: what computes foreign SQL gets what Python needs."""
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "hunter2")
    computer.close()
    computer.ask({"expression": "id"}, [ROWS])
    assert computer._process is not None
    environment = Path(f"/proc/{computer._process.pid}/environ")
    if not environment.exists():
        pytest.skip("needs /proc")
    assert b"hunter2" not in environment.read_bytes()
    limits = Path(f"/proc/{computer._process.pid}/limits").read_text(encoding="ascii")
    assert [line.split()[3] for line in limits.splitlines() if line.startswith("Max file size")] == ["0"]


@pytest.mark.parametrize(
    "query",
    [
        "COPY t TO '/tmp/x.csv'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "SET a = 1",
        "SELECT 1; SELECT 2",
    ],
)
def test_only_one_query_is_run(computer: SqlProcess, query: str) -> None:
    """F24: statements stay refused where the query runs now."""
    with pytest.raises(SqlFailed):
        computer.ask({"query": query, "names": ["t"]}, [ROWS])


def test_a_process_that_is_gone_is_started_again(computer: SqlProcess) -> None:
    """F24: nothing depends on one process."""
    computer.ask({"expression": "id"}, [ROWS])
    assert computer._process is not None
    os.kill(computer._process.pid, signal.SIGKILL)
    computer._process.wait()
    assert computer.ask({"expression": "id"}, [ROWS]).num_rows == 2


def test_a_preview_refuses_an_expression_with_its_place(
    project: Path,  # noqa: F811
    deployer: Deployer,
) -> None:
    """F24: `default:` of a new column on live rows, of a new table without any, and `using:`."""
    spec = project / "specs" / "flights.yaml"
    spec.write_text(table("flights", "delay: int32"), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    (project / "rows.csv").write_text("id,delay\n1,2\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0
    before = spec.read_text(encoding="utf-8")

    spec.write_text(
        before.replace("row_keys", f'  - {{name: big, type: string, default: "{BIG}"}}\nrow_keys'), encoding="utf-8"
    )
    ran = deployer("preview")
    assert ran.code == 1
    assert "specs/flights.yaml:7:" in ran.err
    assert "needs more than 1,024 MiB of memory" in ran.err
    assert "Traceback" not in ran.err

    spec.write_text(before.replace("type: 'int32'", f'type: string, using: "{BIG}"'), encoding="utf-8")
    ran = deployer("preview")
    assert ran.code == 1
    assert "specs/flights.yaml:6:" in ran.err
    assert "needs more than 1,024 MiB of memory" in ran.err

    spec.write_text(before, encoding="utf-8")
    new = table("new").replace(
        "row_keys", "  - {name: big, type: string, default: \"repeat('a', id * 1500000)\"}\nrow_keys"
    )
    (project / "specs" / "new.yaml").write_text(new, encoding="utf-8")
    ran = deployer("preview")
    assert ran.code == 1
    assert "specs/new.yaml:6:" in ran.err
    assert "`default` of column `big` cannot be computed: for one row it needs more than" in ran.err


@pytest.mark.full
def test_a_policy_over_the_limit_names_its_file(
    project: Path,  # noqa: F811
    deployer: Deployer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F24: a rule in SQL may join a plan with itself as often as it likes."""
    monkeypatch.setattr(process._shared, "seconds", 2.0)
    rules = project / "policies"
    rules.mkdir()
    (rules / "endless.sql").write_text(
        ENDLESS.replace("count(*) AS c", "'a' AS address, 'b' AS message"), encoding="utf-8"
    )
    ran = deployer("preview")
    assert ran.code == 1
    assert "endless.sql" in ran.err
    assert "the rule endless" in ran.err
