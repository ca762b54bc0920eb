"""The plan and the result of a load, with or without Spark, and the treatment of its duplicates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from deployer.datasets.files.writer import Layout, WrittenFragment
from deployer.errors import InvalidInput, Refused
from deployer.live.reader import has_unique_keys
from deployer.tables.ingest.files.model import Split
from deployer.tables.ingest.keys.unique import Duplicates, TakenKeys, UniqueLoad, refuse_duplicates
from deployer.tables.ingest.readers.splits import Reading, SplitReport
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable


class Ledger(Protocol):
    """A record of the finished parts of a resumable load: ranges, or splits for tables without keys, by number.

    The ledger is sent with each task. Therefore it is small and only has the location to which it writes.
    """

    def record(self, number: int, written: Sequence[WrittenFragment]) -> None: ...


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The sources of a load, and how to partition and write their rows.

    `sets_aside` says that bad rows do not refuse the load. `unique` has the keys to compare with, for a table whose row
    keys are unique. With a `ledger`, the ranges `finished` are skipped, and each other range is recorded there when it
    is written.
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
        """Returns whether the reports so far prevent the commit."""
        return any(report.error or (report.bad.rows and not self.sets_aside) for report in reports)


@dataclass(frozen=True, slots=True)
class LoadedFragments:
    """The fragments that were written and not committed, the reports of all splits by number, and the duplicates."""

    written: tuple[WrittenFragment, ...]
    reports: Mapping[int, SplitReport]
    duplicates: Duplicates = field(default_factory=Duplicates)

    @property
    def rows(self) -> int:
        """The number of rows that were read, including bad ones."""
        return sum(report.rows for report in self.reports.values())


def unique_load(table: OpenTable, on_duplicate: Literal["reject", "skip"], *, sets_aside: bool) -> UniqueLoad | None:
    """Returns the keys that a load's rows are compared with; None for a table whose row keys need not be unique.

    `sets_aside` says that duplicates are set aside as bad rows, unless they are skipped. Raises InvalidInput for "skip"
    where the row keys are not unique.
    """
    if has_unique_keys(table.state):
        set_aside = sets_aside and on_duplicate == "reject"
        return UniqueLoad(TakenKeys.of(table), "set-aside" if set_aside else on_duplicate)
    if on_duplicate == "skip":
        raise InvalidInput(
            "the table's row keys are not declared unique, so no row is a duplicate",
            where=table.address,
            remedy="leave --on-duplicate out, or declare `unique: true` and run `deployer up`",
        )
    return None


def with_duplicates_set_aside(loaded: LoadedFragments) -> LoadedFragments:
    """Returns the load with its duplicates added to the bad rows of their splits, where duplicates are set aside."""
    if not loaded.duplicates.bad:
        return loaded
    reports = dict(loaded.reports)
    for split, bad in loaded.duplicates.bad.items():
        reports[split] = replace(reports[split], bad=reports[split].bad.joined(bad))
    return replace(loaded, reports=reports, duplicates=Duplicates())


def refused_duplicates(loaded: LoadedFragments, unique: UniqueLoad, rows: int, address: str) -> Refused | None:
    """Returns the error for a load of `rows` rows that its duplicates refuse; None where they do not."""
    if not loaded.duplicates.rows or unique.on_duplicate != "reject":
        return None
    remedy = "load the other rows with --on-duplicate skip, or set duplicates aside with --bad-rows FILE"
    return refuse_duplicates(loaded.duplicates, rows, address, remedy)
