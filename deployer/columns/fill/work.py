"""The input of a run that writes columns: the columns, the source of their values, the values of each fragment, and
the fragments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from deployer.datasets.dataset import field_ids, fragment_from
from deployer.datasets.files.column_files import field_ids_of
from deployer.specs.types.types import Column

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

Places = tuple[str | None, ...]  #: the data file of each field of a fragment; None for a field without values


@dataclass(frozen=True, slots=True)
class FragmentWork:
    """A fragment for which values are written, in the state in which it was read.

    `inputs` are the data files of the columns that the values depend on, and `outputs` those of the written columns.
    `deleted_rows` is the number of its physical rows that were deleted.
    """

    fragment_id: int
    physical_rows: int
    inputs: Places
    outputs: Places
    deleted_rows: int = field(default=0, compare=False)

    @property
    def rows(self) -> int:
        """The number of rows that readers see."""
        return self.physical_rows - self.deleted_rows

    def is_still(self, before: FragmentWork, own: Collection[str] = ()) -> bool:
        """Returns whether the fragment is in the same state as `before`, except for the files `own` of the written
        columns."""
        same = (self.fragment_id, self.physical_rows, self.inputs) == (
            before.fragment_id,
            before.physical_rows,
            before.inputs,
        )
        return same and all(now == then or now in own for now, then in zip(self.outputs, before.outputs, strict=True))


class ValuesSource(Protocol):
    """The source of the values of columns, such as files that are joined with the table."""

    def prepare(self, dataset: LanceDataset, works: Sequence[FragmentWork]) -> None:
        """Prepares the values of these fragments. It is called before the values are read, and before anything is
        written.

        Raises DeployerError for values that cannot be written; then nothing is changed.
        """


class ColumnValues(Protocol):
    """The computation of the values of columns."""

    def of_fragment(
        self, dataset: LanceDataset, work: FragmentWork, rows: range, size: Callable[[], int]
    ) -> Iterator[pa.RecordBatch]:
        """Yields the values of these physical rows of the fragment, in order. The value of a deleted row is ignored.

        `size` is called before each batch and returns its largest number of rows; a batch has fewer rows where memory
        requires it. Several threads call this, for the rows of a fragment that are in no part yet.
        """


@dataclass(frozen=True, slots=True)
class Target:
    """The columns that a run writes. `added` are the columns among them that the table does not have yet."""

    columns: tuple[Column, ...]
    added: tuple[Column, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def works_of(
    dataset: LanceDataset, target: Target, inputs: Sequence[str], fragment_ids: Iterable[int] | None = None
) -> list[FragmentWork]:
    """Returns the fragments of the opened version in their order, or only the existing fragments with these ids."""
    own = target_fields(dataset, target)
    read = field_ids(dataset, inputs)
    ids = dataset.fragment_ids() if fragment_ids is None else fragment_ids
    found = (dataset.get_fragment(each) for each in ids)  # one at a time, because Lance copies the metadata of each
    return [_work(each.metadata, read, own) for each in found if each is not None]


def _work(metadata: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> FragmentWork:
    fragment = fragment_from(metadata)
    return FragmentWork(
        fragment.fragment_id,
        int(metadata.physical_rows),
        fragment.files_of(inputs),
        fragment.files_of(outputs),
        int(metadata.num_deletions or 0),
    )


def column_groups(dataset: LanceDataset, target: Target, work: FragmentWork) -> list[tuple[str, ...]]:
    """Returns the columns in up to two groups: columns of which the fragment has values, and other columns.

    Lance accepts a file with columns of one group, and refuses a file with columns of both.
    """
    present, absent = list[str](), list[str]()
    start = 0
    for name in target.names:
        stop = start + len(field_ids_of(dataset, [name]))
        (present if any(work.outputs[start:stop]) else absent).append(name)
        start = stop
    return [tuple(each) for each in (present, absent) if each]


def target_fields(dataset: LanceDataset, target: Target) -> tuple[int, ...]:
    """Returns Lance's field ids of the target's columns that the dataset already has."""
    present = set(dataset.schema.names)
    return field_ids_of(dataset, [name for name in target.names if name in present])
