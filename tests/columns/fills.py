"""Fills of a column by a function of the id, as a run of a job that says which definition computed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from deployer.columns.fill.commit import Filling
from deployer.columns.fill.run import FillRun, FillSizes
from deployer.columns.fill.work import FragmentWork, Target
from deployer.platform.system.progress import no_progress
from deployer.runs.records import begin_runs
from deployer.specs.types.types import Column, Scalar
from deployer.tables.open_table import find_entry, open_entry
from tests.tables.lakes import Lake

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


class TimesId:
    """Values of a column that are the id times a number, as text."""

    def __init__(self, column: str, times: int) -> None:
        self._column, self._times = column, times

    def prepare(self, dataset: LanceDataset, works: Sequence[FragmentWork]) -> None: ...

    def of_fragment(
        self, dataset: LanceDataset, work: FragmentWork, rows: range, size: Callable[[], int]
    ) -> Iterator[pa.RecordBatch]:
        ids = dataset.get_fragment(work.fragment_id).to_table(columns=["id"])["id"].combine_chunks()
        padded = pa.concat_arrays([ids, pa.nulls(work.physical_rows - len(ids), ids.type)])
        values = pa.record_batch({self._column: pc.multiply(padded, self._times).cast(pa.int64())})
        yield values.slice(rows.start, len(rows))


def fill(lake: Lake, column: str, identity: str, times: int = 1, *, completes: bool = True) -> None:
    """Fills the column for all rows; with an empty identity as a load does."""
    entry = find_entry(lake.store.instance().tables.values(), "flights")
    table = open_entry(lake.store, lake.root, entry)
    own = Column(column, Scalar("int64"))
    target = Target((own,), () if column in table.schema.names else (own,))
    [held] = begin_runs(lake.store, [entry.table_id], "LOAD_COLUMNS", cause="a test", target=(column,), job="")
    identities = {column: identity} if identity else {}
    filling = Filling(
        lake.store, lake.root, entry, held.run_id, held.run_id, str(held.run.holder), "fill", target, ("id",),
        identities, lambda _: completes,
    )  # fmt: skip
    values = TimesId(column, times)
    FillRun(filling, values, values, FillSizes(), {"kind": "fill"}, no_progress).fill()
    held.finish()
