"""Sorts the values of one fragment's rows, which arrive in any order: writes them to files for ranges of rows, and
reads them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.columns.fill.live_rows import live_rows
from deployer.columns.fill.work import FragmentWork
from deployer.columns.load.buckets import taken
from deployer.columns.load.keys import NONE
from deployer.columns.load.table_rows import carried
from deployer.tables.ingest.driver import parted
from deployer.tables.ingest.files.columnar import ALIGNED

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

OFFSET = "offset"  #: the first column of arriving rows: the row's offset in its fragment; the other columns are values
CHUNK_BYTES = 16_000_000  #: about the bytes of the values in one file
BATCH_BYTES = 4_000_000  #: about the bytes of values that are yielded at a time


class SpooledColumns:
    """The values of one fragment (see `fill.work.ColumnValues`). The files are in `folder`, which the caller removes.

    Rows without a value keep their present value if `carries`, or else get null. `row_bytes` is the estimated size of a
    row.
    """

    def __init__(self, folder: Path, schema: pa.Schema, row_bytes: int, *, carries: bool) -> None:
        self._folder, self._schema, self._carries = folder, schema, carries
        self._chunk_rows = max(1_024, CHUNK_BYTES // max(1, row_bytes))
        self._batch_rows = max(256, BATCH_BYTES // max(1, row_bytes))
        self._writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Stores the values of some rows. Each row may be added once."""
        self._rows += batch.num_rows
        for number, part in parted(batch, batch.column(OFFSET).to_numpy() // self._chunk_rows):
            if number not in self._writers:
                self._writers[number] = pa.ipc.new_stream(str(self._path(number)), batch.schema)
            self._writers[number].write_batch(part)

    def close(self) -> None:
        """Closes the files after all values were added."""
        for writer in self._writers.values():
            writer.close()

    def of_fragment(
        self, dataset: LanceDataset, work: FragmentWork, rows: range, size: Callable[[], int]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the values of these rows of the fragment, in order."""
        before = None
        if self._carries and any(work.outputs) and self._rows < work.physical_rows:
            before = live_rows(dataset, work.fragment_id, self._schema)
        chunk, number = self._schema.empty_table(), -1
        found = np.empty(0, np.int64)
        start = rows.start
        while start < rows.stop:
            if start // self._chunk_rows != number:
                number = start // self._chunk_rows
                found, chunk = self._chunk(number)
            end = min(rows.stop, (number + 1) * self._chunk_rows)
            stop = min(start + min(size(), self._batch_rows), end)
            places = found[start - number * self._chunk_rows : stop - number * self._chunk_rows]
            values = taken(chunk, places)
            if before is not None:
                values = carried(values, places, *before.between(start, stop))
            yield from values.combine_chunks().to_batches()
            start = stop

    def _chunk(self, number: int) -> tuple[np.ndarray, pa.Table]:
        """Returns the table of a chunk of rows, and before it the position of each row in the table."""
        places = np.full(self._chunk_rows, NONE, np.int64)
        if number not in self._writers:
            return places, self._schema.empty_table()
        with (
            pa.memory_map(str(self._path(number))) as file,
            pa.ipc.open_stream(file, options=ALIGNED) as reader,
        ):
            table = reader.read_all().combine_chunks()
        places[table.column(OFFSET).to_numpy() - number * self._chunk_rows] = np.arange(table.num_rows)
        return places, table.drop_columns([OFFSET]).cast(self._schema)

    def _path(self, number: int) -> Path:
        return self._folder / f"chunk-{number}.arrows"


#: The values of a writer that is sent to tasks. Each task replaces them by the values that it receives.
NO_VALUES = SpooledColumns(Path(), pa.schema([]), 1, carries=False)
