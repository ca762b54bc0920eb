"""The plan of a reading, made before a data file is opened: a version, its fragments, columns and conditions.

A plan is a small value, so that processes which have no access to the state store can read parts of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.dataset import open_dataset
from deployer.tables.read.conditions import read_errors
from deployer.tables.read.predicate import KeyPredicate
from deployer.tables.read.typed_texts import with_typed_texts
from deployer.tables.read.zoned_literals import with_instants

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL expression in the user's form, and in the form for Lance, with typed literals."""

    written: str
    sql: str

    @staticmethod
    def typed(where: str, schema: pa.Schema) -> Condition:
        """Returns a condition that passed `check_condition`, on columns of the dataset's schema."""
        return Condition(where, with_typed_texts(with_instants(where), schema))


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A reading of the table at `address`: the `columns` of the rows that match `predicate` and `condition`.

    The dataset is at `location` in `version`. `fragments` has the ids of the fragments to read, in order, out of
    `total`.
    """

    address: str
    location: str
    version: int
    fragments: tuple[int, ...]
    total: int
    columns: tuple[str, ...]
    predicate: KeyPredicate
    condition: Condition | None = None

    @property
    def reads_all_rows(self) -> bool:
        """Returns whether all rows are read, because there is no condition."""
        return self.predicate.is_empty and self.condition is None

    def open(self) -> LanceDataset:
        """Returns the dataset at the version. Raises NotFound where a clean-up removed the version."""
        return open_dataset(self.location, self.version)

    def batches(
        self,
        dataset: LanceDataset,
        limit: int | None = None,
        fragments: Sequence[int] | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows, from `dataset`, which is what `open` gives; those of `fragments` alone, where these are
        given.

        `batch_size` is in rows; `offset` skips rows, and needs a plan without conditions. Raises InvalidInput for a
        condition that Lance cannot use, and other errors of `deployer.errors` for files that cannot be read.
        """
        chosen = self.fragments if fragments is None else fragments
        if not chosen:
            return
        names = list(self.columns)
        filtered_here = not self.predicate.is_empty and self.predicate.to_sql() is None
        with self._errors(dataset):
            scanner = self._scanner(dataset, chosen, None if filtered_here else limit, offset, batch_size)
            left = limit
            for batch in scanner.to_batches():
                if filtered_here:
                    batch = batch.filter(pa.array(self.predicate.mask(batch))).select(names)
                    batch = batch.slice(0, left) if left is not None else batch
                if batch.num_rows:
                    yield batch
                if left is not None:
                    left -= batch.num_rows
                    if left <= 0:
                        return

    def check(self, dataset: LanceDataset) -> None:
        """Raises InvalidInput for a condition that Lance cannot use. Reads no row."""
        with self._errors(dataset):
            self._scanner(dataset, self.fragments[:1], None, None, None).explain_plan()

    def _scanner(
        self,
        dataset: LanceDataset,
        fragments: Sequence[int],
        limit: int | None,
        offset: int | None,
        batch_size: int | None,
    ) -> Any:
        sql = self.predicate.to_sql()
        filtered_here = not self.predicate.is_empty and sql is None
        names = list(self.columns)
        extra = [name for name in self.predicate.columns if name not in names] if filtered_here else []
        return dataset.scanner(
            columns=names + extra,
            filter=self._sql(),
            fragments=fragments_by_id(dataset, fragments),
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            scan_in_order=True,
            # A key matches few rows. Reading the other columns only of these rows is several times faster.
            late_materialization=True if sql else None,
            blob_handling="all_binary",
        )

    def _sql(self) -> str | None:
        """Returns the SQL of the conditions for Lance."""
        both = (self.predicate.to_sql(), self.condition and self.condition.sql)
        return " AND ".join(f"({part})" for part in both if part) or None

    def _errors(self, dataset: LanceDataset) -> AbstractContextManager[None]:
        written = self.condition.written if self.condition is not None else None
        return read_errors(self.location, self.address, dataset, written, self._sql())


def fragments_by_id(dataset: LanceDataset, ids: Sequence[int]) -> list[Any]:
    """Returns the fragments with these ids, in this order."""
    if len(ids) == 1:
        return [dataset.get_fragment(ids[0])]
    by_id = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    return [by_id[each] for each in ids]
