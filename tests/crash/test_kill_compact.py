"""A compaction killed between two side effects of a portion: no row is lost or doubled, and the next run ends it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from deployer.runs.records import runs_of
from deployer.state import open_store
from deployer.tables.append import open_appender
from deployer.tables.maintenance.verify.verify import repair, verify
from tests import forks
from tests.tables.lakes import Lake, flights, sorted_rows

pytestmark = pytest.mark.full

WORKER = str(Path(__file__).with_name("compact_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]
POINTS = (
    "services.replace.before-intent",
    "services.replace.before-lance",
    "services.replace.after-lance",
    "services.replace.after-state",
)
EVERY_PASS = [(point, number) for point in POINTS for number in (1, 2, 3)]


def work(root: str, failpoint: str = "", *more: str) -> tuple[int, str]:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    done = forks.run([sys.executable, WORKER, root, *more], env=environment, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


def clean(root: str) -> None:
    with closing(open_store(root)) as store:
        assert not [step for step in repair(store, root, now=1 << 50, grace=0) if step.left]
        assert [str(one) for each in verify(store, root, full=True) for one in each.differences] == []


def end_dead_run(lake: Lake) -> None:
    """What the next run does by itself once the lease is over, which these tests do not wait for."""
    from deployer.runs.records import fail_dead_runs

    table_id = lake.open().opened.entry.table_id
    [run] = [run for run in runs_of(lake.store.table(table_id)) if run.is_open]
    assert run.lease_until is not None
    fail_dead_runs(lake.store, table_id, run.lease_until + 1)


def check(lake: Lake, row_keys: tuple[str, ...], point: str, number: int) -> None:
    lake.table(row_keys=row_keys)
    rows = flights(300)
    with closing(open_appender(lake.root, "air.flights")) as appender:
        for start in range(0, 300, 30):
            appender.append(rows.slice(start, 30))
    before = lake.open().scan().to_table()
    code, _ = work(lake.root, f"{point}@{number}")
    assert code == -signal.SIGKILL
    clean(lake.root)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(rows)
    if not row_keys:
        assert lake.open().scan().to_table().equals(before)
    end_dead_run(lake)
    code, portions = work(lake.root)
    assert code == 0 and int(portions) <= 4
    clean(lake.root)
    found = lake.open().scan().to_table()
    assert sorted_rows(found) == sorted_rows(rows) and (row_keys or found.equals(before))
    assert lake.open().opened.state.files.count == (5 if row_keys else 4)
    assert not lake.open().opened.state.intents


@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
@pytest.mark.parametrize("point", POINTS)
def test_a_portion_that_is_killed_is_whole_or_not_there(tmp_path: Path, point: str, row_keys: tuple[str, ...]) -> None:
    check(Lake(tmp_path), row_keys, point, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "number"), EVERY_PASS, ids=[f"{point}-{number}" for point, number in EVERY_PASS])
def test_a_portion_that_is_killed_at_any_pass_is_whole_or_not_there(tmp_path: Path, point: str, number: int) -> None:
    check(Lake(tmp_path), (), point, number)
