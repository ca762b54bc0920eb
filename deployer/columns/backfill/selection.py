"""Chooses the fragments and rows that a backfill computes, by the records of files or by a condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from deployer.columns.backfill.request import BackfillRequest
from deployer.columns.fill.work import FragmentWork
from deployer.datasets.dataset import field_ids
from deployer.errors import InvalidInput, NotFound
from deployer.specs.types.column_names import quoted
from deployer.state.model.entities import File, TableState
from deployer.state.model.files.computed_by import has_others, has_outdated, has_unknown, is_computed
from deployer.tables.open_table import ReadTable
from deployer.tables.read.scan_plan import Condition
from deployer.tables.read.table import Table as Reader
from deployer.tables.rows.matching import ADDRESS, scanned

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

ALL = ""  #: the condition for fragments whose rows are all computed


@dataclass(frozen=True, slots=True)
class Chosen:
    """A fragment with rows to compute, and the SQL condition on these rows in Lance's form; `ALL` for all rows.

    Other rows keep their values. `completes` states that the definition has then computed all rows of the fragment.
    """

    work: FragmentWork
    condition: str
    completes: bool


@dataclass(slots=True)
class Selection:
    """The choice of fragments for one backfill. `identities` are those of the definitions, by column.

    `named` are the fragments that the request names; None where it names none. Not safe for threads.
    """

    request: BackfillRequest
    identities: Mapping[str, str]
    named: frozenset[int] | None = None
    _found: dict[FragmentWork, int] = field(default_factory=dict)  #: the number of rows for which the condition is true

    def chosen(self, table: ReadTable, dataset: LanceDataset, works: Sequence[FragmentWork]) -> list[Chosen]:
        """Returns the fragments that have rows to compute.

        Raises InvalidInput for a condition that is not valid SQL, is not boolean or names an unknown column.
        """
        works = [work for work in works if self.named is None or work.fragment_id in self.named]
        if self.request.is_of_all:
            return [Chosen(work, ALL, True) for work in works]
        if self.request.where is not None:
            condition = self.condition(table, dataset)
            self._count(table, dataset, condition, works)
            return [Chosen(work, condition.sql, False) for work in works if self._found.get(work)]
        return list(self._not_computed(table.state, dataset, works))

    def recorded(self, state: TableState, dataset: LanceDataset) -> list[File]:
        """Returns the files that have rows to compute, for a request without a condition. No fragment is read."""
        ids = self._ids(dataset)
        return [
            file
            for file in state.files
            if (self.named is None or file.fragment_id in self.named)
            and (self.request.is_of_all or self._lacks(file.computed, ids))
        ]

    def _ids(self, dataset: LanceDataset) -> dict[str, int]:
        return dict(zip(self.identities, field_ids(dataset, self.identities), strict=True))

    def _lacks(self, text: str, ids: Mapping[str, int]) -> bool:
        """Returns whether a file has rows to compute. `text` is the `computed` of its record."""
        wanted = self.identities.items()
        if all(is_computed(text, ids[name], identity) for name, identity in wanted):
            return False
        if not self.request.keeps_others or not any(has_others(text, ids[name], identity) for name, identity in wanted):
            return True
        return any(has_unknown(text, ids[name]) or has_outdated(text, ids[name]) for name in self.identities)

    def condition(self, table: ReadTable, dataset: LanceDataset) -> Condition:
        """Returns the condition of the request, which must have one. Raises InvalidInput for text that is not one
        expression."""
        return Reader(table, dataset).candidates(str(self.request.where))[0]

    def _not_computed(
        self, state: TableState, dataset: LanceDataset, works: Sequence[FragmentWork]
    ) -> Iterator[Chosen]:
        ids = self._ids(dataset)
        unset = " OR ".join(f"{quoted(name)} IS NULL" for name in self.identities)
        texts = {file.fragment_id: file.computed for file in state.files}
        for work in works:
            text = texts.get(work.fragment_id, "")
            if not self._lacks(text, ids):
                continue
            stale = any(has_others(text, ids[name], identity) for name, identity in self.identities.items())
            outdated = any(has_outdated(text, ids[name]) for name in self.identities)
            if stale and self.request.keeps_others and not outdated:
                yield Chosen(work, unset, False)
            else:
                yield Chosen(work, ALL if stale or not any(work.outputs) else unset, True)

    def _count(
        self, table: ReadTable, dataset: LanceDataset, condition: Condition, works: Sequence[FragmentWork]
    ) -> None:
        """Counts the rows for which the condition is true, in the fragments that were not counted before."""
        new = [work for work in works if work not in self._found]
        if not new and self._found:
            return
        every = {each.fragment_id: each for each in dataset.get_fragments()}
        chosen = [every[work.fragment_id] for work in new]
        # Lance gets the condition also without new fragments, so that it can report a fault of the condition.
        fragments = None if len(chosen) == len(every) or not chosen else chosen
        rows = dict.fromkeys((work.fragment_id for work in new), 0)
        place = (table.location, table.address)
        for batch in scanned(place, dataset, fragments, (), condition.sql, condition, with_ids=False):
            numbers, counts = np.unique(batch.column(ADDRESS).to_numpy() >> np.uint64(32), return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                rows[number] = rows.get(number, 0) + count
        self._found.update((work, rows[work.fragment_id]) for work in new)

    def rows_of(self, works: Sequence[FragmentWork]) -> int:
        """Returns the number of rows for which the condition is true in these fragments, which `chosen` has
        returned."""
        return sum(self._found.get(work, 0) for work in works)


def named_fragments(table: ReadTable, request: BackfillRequest) -> frozenset[int] | None:
    """Returns the fragments that the request names; None where it names none.

    Raises NotFound for a version that does not exist, and InvalidInput where all fragments are skipped.
    """
    if not request.names_fragments:
        return None
    version = request.read_version
    if version is not None and version > table.state.lance_version:
        raise NotFound(
            f"the table has no version {version}; the newest is {table.state.lance_version}",
            where=table.address,
            remedy="leave read_version out, or give a version that `deployer history` lists",
        )
    ids = [each.fragment_id for each in table.dataset(version).get_fragments()]
    if request.skip_frags and request.skip_frags >= len(ids):
        raise InvalidInput(
            f"skip_frags={request.skip_frags} skips all of the {len(ids)} fragments of the table",
            where=table.address,
            remedy="give a smaller number",
        )
    stop = None if request.num_frags is None else request.skip_frags + request.num_frags
    return frozenset(ids[request.skip_frags : stop])
