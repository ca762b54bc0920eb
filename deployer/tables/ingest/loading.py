"""What a load is made of, whichever way it runs, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from deployer.datasets.writer import Layout, Written
from deployer.tables.ingest.files.model import Split
from deployer.tables.ingest.keys.unique import Duplicates, UniqueLoad
from deployer.tables.ingest.readers.splits import Reading, SplitReport
from deployer.tables.partitions.key_ranges import Ranges


class Ledger(Protocol):
    """Where a load that can be gone on with notes what it has finished: ranges, or without keys splits, by number.

    Tasks carry it to where they run, so it is small and keeps nothing but where it writes.
    """

    def record(self, number: int, written: Sequence[Written]) -> None: ...


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What to read, how to part and write it; `sets_aside`: bad rows do not refuse the load. `unique` is of a table
    whose row keys are unique.

    With a `ledger`, the ranges `finished` are left out and the others are noted there one by one.
    """

    splits: tuple[Split, ...]
    reading: Reading
    layout: Layout
    ranges: Ranges
    sets_aside: bool = False
    ledger: Ledger | None = None
    finished: frozenset[int] = frozenset()
    unique: UniqueLoad | None = None

    def refuses(self, reports: Iterable[SplitReport]) -> bool:
        """Whether what the splits report so far means that nothing may be committed."""
        return any(report.error or (report.bad.rows and not self.sets_aside) for report in reports)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Fragments that were written and not committed, the report of every split by its number, and the duplicates."""

    written: tuple[Written, ...]
    reports: Mapping[int, SplitReport]
    duplicates: Duplicates = field(default_factory=Duplicates)
