"""A change of rows as data: its plan on one version, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.files.writer import WrittenFragment
from deployer.state.model.entities import Job, RowCounts
from deployer.tables.layout.indexes.build import CaughtUp

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.tables.open_table import OpenTable


@dataclass(frozen=True, slots=True)
class LeafChange:
    """The rows of one partition that a change touches. `partition` is None for files that lie in no partition."""

    partition: str | None
    counts: RowCounts


@dataclass(frozen=True, slots=True)
class FragmentCounts:
    """The numbers of fragments that a change of rows changes, removes and adds."""

    changed: int = 0
    removed: int = 0
    added: int = 0


@dataclass(frozen=True, slots=True)
class RowChange:
    """The result of a change of rows.

    `job` is None for a dry run, and where nothing was to change and no job id was given. `already_done`: an earlier run
    of the job had committed it, and this one changed nothing; `leaves` and `fragments` are then empty. `version` is the
    dataset's that has the change, or that it was computed on. `indexes` is the result for the table's indexes.
    """

    job: Job | None
    counts: RowCounts
    leaves: tuple[LeafChange, ...]
    fragments: FragmentCounts
    version: int
    already_done: bool = False
    dry_run: bool = False
    indexes: CaughtUp = CaughtUp()

    @property
    def rows(self) -> int:
        """All rows that it touches."""
        return self.counts.changed


@dataclass(frozen=True, slots=True)
class RowPlan:
    """A change computed on `version` of the dataset, and not committed.

    `changed` are Lance's metadata of fragments with their new deletion files, `removed_ids` the fragments that lose all
    rows, `written` those that come. `compared`: keys of new rows were compared with those of the table. In a dry run
    nothing is written: `changed` and `written` are empty, and `fragments` says what they would be.
    """

    version: int
    counts: RowCounts
    leaves: tuple[LeafChange, ...]
    fragments: FragmentCounts
    changed: tuple[Any, ...] = ()
    removed_ids: tuple[int, ...] = ()
    written: tuple[WrittenFragment, ...] = ()
    compared: bool = False
    why: str = field(default="true", compare=False)


#: Computes a change on the table as it is opened; called again on a newer version where others committed first.
PlanRows = Callable[["OpenTable", "LanceDataset"], RowPlan]


def leaf_changes(counts: Iterable[tuple[str | None, RowCounts]]) -> tuple[LeafChange, ...]:
    """Returns the counts by partition, summed up, in the order in which the partitions come first; those without rows
    are left out."""
    found: dict[str | None, RowCounts] = {}
    for partition, each in counts:
        found[partition] = added_up(found.get(partition, RowCounts()), each)
    return tuple(LeafChange(partition, each) for partition, each in found.items() if each.changed)


def added_up(one: RowCounts, other: RowCounts) -> RowCounts:
    """Returns the sum of both."""
    return replace(
        one,
        inserted=one.inserted + other.inserted,
        updated=one.updated + other.updated,
        deleted=one.deleted + other.deleted,
    )


def total(leaves: Iterable[LeafChange]) -> RowCounts:
    """Returns the counts of all leaves."""
    counts = RowCounts()
    for each in leaves:
        counts = added_up(counts, each.counts)
    return counts


Offsets = Mapping[int, Any]  #: offsets of rows within their fragments (numpy, ascending), by fragment id
