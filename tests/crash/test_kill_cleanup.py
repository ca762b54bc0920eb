"""The removal of what rewrites left, killed between a dataset's files and its record: the next run ends it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from deployer.state import open_store
from deployer.tables.maintenance.verify.verify import verify
from tests import forks
from tests.tables.lakes import Lake, flights
from tests.tables.rewrite.test_rewrite import apply, ended, other_keys, spec_of, start

pytestmark = pytest.mark.full

CLEANUP = """
import sys
from deployer.state import open_store
from deployer.tables.evolution.rewrite.cleanup import remove_old_datasets
remove_old_datasets(open_store(sys.argv[1]), sys.argv[1], now_ms=1 << 50)
"""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    lake.table()
    lake.ingest(lake.file(flights(40)))
    return lake


def clean_up(lake: Lake, failpoint: str = "") -> int:
    command = [sys.executable, "-c", CLEANUP, lake.root]
    done = forks.run(command, env={**os.environ, "DEPLOYER_FAILPOINT": failpoint})
    return done.returncode


def rewritten(lake: Lake) -> None:
    apply(lake, other_keys)


def cut_off(lake: Lake) -> None:
    ended(start(lake, other_keys(spec_of(lake)), "tables.rewrite.copied"))


@pytest.mark.parametrize(
    ("left_by", "point"),
    [(rewritten, "tables.rewrite.old-removed"), (cut_off, "tables.rewrite.given-up")],
    ids=["an old dataset", "an interrupted rewrite"],
)
def test_a_cleanup_goes_on_where_it_was_killed(lake: Lake, left_by: object, point: str) -> None:
    assert callable(left_by)
    left_by(lake)
    assert clean_up(lake, point) == -signal.SIGKILL
    assert clean_up(lake) == 0
    with closing(open_store(lake.root)) as store:
        assert [str(one) for each in verify(store, lake.root, full=True) for one in each.differences] == []
        [entry] = store.instance().tables.values()
        assert {each.status for each in store.table(entry.table_id).datasets} <= {"current", "removed"}
    assert [path.name for path in (lake.folder / "lake" / "air").iterdir()] == [Path(entry.location).name]
    assert lake.open().count() == 40
