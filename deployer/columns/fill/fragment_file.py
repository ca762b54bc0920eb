"""Writes the values of one fragment as data files, with a checkpoint. This runs in a thread of the run, or in a Spark
task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.columns.fill.checkpoint_sizes import BatchSize, CheckpointSizes
from deployer.columns.fill.checkpoints import Checkpoint, JobFolder
from deployer.columns.fill.parts import HeldRows, Parts
from deployer.columns.fill.work import ColumnValues, FragmentWork, Target, column_groups
from deployer.datasets.files.column_files import ColumnFile, remove_column_files, write_column_file
from deployer.errors import DeployerError
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.specs.types.arrow import arrow_field

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

OnRows = Callable[[int], None]  #: a callback that gets the number of newly computed rows; its errors end the work


@dataclass(frozen=True, slots=True)
class FragmentWriter:
    """The writer of fragments of dataset number `dataset` at `location`, for one job. It can be pickled if `values`
    can."""

    folder: JobFolder
    location: str
    dataset: int
    target: Target
    values: ColumnValues
    sizes: CheckpointSizes
    clock: Clock = Clock()

    def write(self, opened: LanceDataset, work: FragmentWork, parts: Sequence[range], on_rows: OnRows) -> Checkpoint:
        """Writes the files with the fragment's values, and returns their checkpoint. `parts` are the rows of saved
        parts.

        Raises the errors of the values and of `on_rows`.
        """
        known = self.folder.parts(self.dataset, work, parts)
        checkpoint = Checkpoint(self.dataset, work, self._files(opened, work, known, on_rows))
        self.folder.save(checkpoint)
        reached("columns.run.saved")
        known.remove()
        return checkpoint

    def save_rows(
        self, opened: LanceDataset, work: FragmentWork, rows: range, parts: Sequence[range], on_rows: OnRows
    ) -> None:
        """Saves the values of these rows of the fragment as parts. `parts` are the rows of parts that are already
        saved."""
        known = self.folder.parts(self.dataset, work, parts)
        for span, saved in known.spans(rows):
            if saved is not None:
                on_rows(len(span))
                continue
            for batch in self._made(opened, work, span, known, by_file=False):
                on_rows(batch.num_rows)

    def write_once(self, opened: LanceDataset, work: FragmentWork, on_rows: OnRows) -> Checkpoint:
        """Writes the fragment as `write` does, where other processes may write the same fragment. All of them return
        the same checkpoint."""
        if (other := self._by_another(work)) is not None:
            return other
        parts = self.folder.parts(
            self.dataset, work, self.folder.saved_parts(work.fragment_id).get(work.fragment_id, [])
        )
        checkpoint = Checkpoint(self.dataset, work, self._files(opened, work, parts, on_rows))
        if not self.folder.save_first(checkpoint):
            if (other := self._by_another(work)) is not None:
                remove_column_files(self.location, checkpoint.files)
                return other
            self.folder.save(checkpoint)
        reached("columns.task.saved")
        parts.remove()
        return checkpoint

    def save_rows_once(self, opened: LanceDataset, work: FragmentWork, rows: range, on_rows: OnRows) -> None:
        """Saves rows as `save_rows` does, where other processes may save the same rows. Saved rows are not computed
        again."""
        if self._by_another(work) is None:
            parts = self.folder.saved_parts(work.fragment_id).get(work.fragment_id, [])
            self.save_rows(opened, work, rows, parts, on_rows)

    def _by_another(self, work: FragmentWork) -> Checkpoint | None:
        saved = self.folder.saved_of(work.fragment_id)
        return (
            saved if saved is not None and saved.holds(self.dataset, work) and saved.is_whole(self.location) else None
        )

    def _files(self, opened: LanceDataset, work: FragmentWork, parts: Parts, on_rows: OnRows) -> tuple[ColumnFile, ...]:
        groups = column_groups(opened, self.target, work)
        files = tuple(self._file_of(opened, work, names, parts, on_rows) for names in groups)
        reached("columns.run.written")
        return files

    def _file_of(
        self, opened: LanceDataset, work: FragmentWork, names: Sequence[str], parts: Parts, on_rows: OnRows
    ) -> ColumnFile:
        # Deleted rows have null as a placeholder, also in columns that are not nullable.
        columns = [column for column in self.target.columns if column.name in names]
        schema = pa.schema([arrow_field(column).with_nullable(True) for column in columns])
        failures: list[Exception] = []
        batches = self._counted(opened, work, names, parts, on_rows, failures)
        try:
            return write_column_file(opened, self.location, work.fragment_id, schema, batches)
        except DeployerError:
            if failures:
                raise failures[0] from None
            raise

    def _counted(
        self,
        opened: LanceDataset,
        work: FragmentWork,
        names: Sequence[str],
        parts: Parts,
        on_rows: OnRows,
        failures: list[Exception],
    ) -> Iterator[pa.RecordBatch]:
        """Yields the values to Lance. Lance would change the type of an error of the values; therefore `failures` keeps
        the error."""
        try:
            for rows, saved in parts.spans():
                for batch in self._made(opened, work, rows, parts) if saved is None else saved:
                    on_rows(batch.num_rows)
                    yield batch.select(list(names))
        except Exception as failure:
            failures.append(failure)
            raise

    def _made(
        self, opened: LanceDataset, work: FragmentWork, rows: range, parts: Parts, *, by_file: bool = True
    ) -> Iterator[pa.RecordBatch]:
        """Computes and yields the values of these rows. Saves them as parts where they take long, or where no file
        follows (`by_file` is false)."""
        now = self.clock.monotonic
        size, held = BatchSize(self.sizes), HeldRows(parts, rows, self.sizes, now, by_file=by_file)
        batches = self.values.of_fragment(opened, work, rows, lambda: size.rows)
        begun = now()
        for batch in batches:
            size.took(batch.num_rows, now() - begun)
            held.add(batch)
            yield batch
            begun = now()
