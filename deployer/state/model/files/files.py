"""The data files (Lance fragments) of one table: an immutable value for a million files, with cheap changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from deployer.state.model.files.data_file import Bounds, File, Key
from deployer.state.model.persistent_map import LayeredMap

if TYPE_CHECKING:
    import pyarrow as pa

    from deployer.state.model.files.segments import Segment  # loads Arrow, which most commands do not need

OVERLAY_LIMIT = 4096  #: number of changed files in the overlay above which they become an Arrow segment


class Files:
    """An immutable collection of files, by fragment id.

    Arrow segments hold most files and are shared by all states. A small overlay holds the later changes. `count`,
    `rows` and `bytes` are the totals of the current files. Look-ups return files in ascending order of fragment id.
    """

    __slots__ = ("_largest_id", "_overlay", "_segments", "bytes", "count", "rows")

    def __init__(self, files: Iterable[File] = ()) -> None:
        self._segments: tuple[Segment, ...] = ()
        self._overlay: LayeredMap[int, File | None] = LayeredMap()  # None: removed from a segment
        self._largest_id = -1
        self.count = self.rows = self.bytes = 0
        grown = self.changed(added=tuple(files))
        for name in Files.__slots__:
            setattr(self, name, getattr(grown, name))

    @staticmethod
    def _of(segments: tuple[Segment, ...]) -> Files:
        files = object.__new__(Files)
        files._segments, files._overlay = segments, LayeredMap()
        files.count = sum(segment.count for segment in segments)
        files.rows = sum(segment.rows for segment in segments)
        files.bytes = sum(segment.bytes for segment in segments)
        files._largest_id = max((segment.largest_id for segment in segments), default=-1)
        return files

    @staticmethod
    def from_arrow(table: pa.Table, *, in_order: bool = False) -> Files:
        """Returns the files in an Arrow table with the columns of `segments.SCHEMA`.

        The table has the columns of `segments.CLUSTERED` and `segments.COMPUTED` too if some file has values for them.
        `in_order`: the table is known to be in the order of a segment.
        """
        from deployer.state.model.files.segments import Segment

        return Files._of((Segment.of(table, in_order=in_order),) if table.num_rows else ())

    def changed(self, added: Sequence[File] = (), removed: Sequence[int] = ()) -> Files:
        """Returns the files without those in `removed` (ids of the files), and with those in `added`.

        The ids of the added files must be new, or be in `removed`.
        """
        gone = [file for file in map(self.get, dict.fromkeys(removed)) if file is not None]
        put: dict[int, File | None] = {file.fragment_id: None for file in gone}
        put.update((file.fragment_id, file) for file in added)
        after = object.__new__(Files)
        after._segments = self._segments
        after._overlay = self._overlay.changed(put)
        after._largest_id = max((file.fragment_id for file in added), default=-1)
        after._largest_id = max(after._largest_id, self._largest_id)
        after.count = self.count + len(added) - len(gone)
        after.rows = self.rows + sum(f.rows for f in added) - sum(f.rows for f in gone)
        after.bytes = self.bytes + sum(f.bytes for f in added) - sum(f.bytes for f in gone)
        return after._settled() if len(after._overlay) > OVERLAY_LIMIT else after

    def _settled(self) -> Files:
        """Returns the same files, with the overlay as a segment. Each segment stays at least twice as large as the
        next."""
        from deployer.state.model.files.segments import Segment

        changed = list(self._overlay)
        segments = [segment.without(changed) for segment in self._segments]
        fresh = [file for file in self._overlay.values() if file is not None]
        if fresh:
            segments.append(Segment.of_files(fresh))
        segments = [segment for segment in segments if segment.count]
        while len(segments) > 1 and 2 * segments[-1].count >= segments[-2].count:
            upper = segments.pop()
            segments[-1] = Segment.merged([segments[-1], upper])
        return Files._of(tuple(segments))

    def get(self, fragment_id: int) -> File | None:
        """Returns the file with this id; None if it does not exist."""
        if fragment_id > self._largest_id:
            return None
        if fragment_id in self._overlay:
            return self._overlay[fragment_id]
        for segment in reversed(self._segments):
            if (file := segment.get(fragment_id)) is not None:
                return file
        return None

    def __contains__(self, fragment_id: object) -> bool:
        return isinstance(fragment_id, int) and self.get(fragment_id) is not None

    def missing(self, fragment_ids: Iterable[int]) -> tuple[int, ...]:
        """Returns those of the ids that no file has."""
        return tuple(i for i in fragment_ids if i not in self)

    def overlapping(self, lower: Key = b"", upper: Key | None = None) -> list[File]:
        """Returns the files that can have a key k with lower <= k < upper, and all files with an unknown range."""
        found = [file for segment in self._segments for file in segment.overlapping(lower, upper)]
        return self._with_overlay(found, lambda file: file.overlaps(lower, upper))

    def overlapping_columns(
        self, ranges: Mapping[int, Bounds], lower: Key = b"", upper: Key | None = None
    ) -> list[File]:
        """Returns the files that can have a row with a key k, lower <= k < upper, whose row-key columns (by position)
        are within `ranges`."""
        found = [file for segment in self._segments for file in segment.overlapping_columns(ranges, lower, upper)]
        return self._with_overlay(found, lambda file: file.overlaps(lower, upper) and file.overlaps_columns(ranges))

    def clusterings(self) -> set[str]:
        """Returns the arrangements of files by CLUSTER. It may include arrangements of files that were removed."""
        found = {file.clustering for file in self._overlay.values() if file is not None and file.clustering}
        return found.union(*(segment.clusterings for segment in self._segments))

    def for_partition(self, partition_id: str | None) -> list[File]:
        """Returns the files that are recorded under exactly this partition; for None, the files without a partition."""
        found = [file for segment in self._segments for file in segment.in_partition(partition_id)]
        return self._with_overlay(found, lambda file: file.partition == partition_id)

    def _with_overlay(self, found: list[File], matches: Callable[[File], bool]) -> list[File]:
        if self._overlay:
            found = [file for file in found if file.fragment_id not in self._overlay]
            found += [file for file in self._overlay.values() if file is not None and matches(file)]
        return sorted(found, key=lambda file: file.fragment_id)

    def to_arrow(self) -> pa.Table:
        """Returns all files as a table with the columns that `from_arrow` takes, in the order of `min_key`. Files
        without a known range are last."""
        from deployer.state.model.files.segments import SCHEMA, Segment

        changed = list(self._overlay)
        segments = [segment.without(changed) for segment in self._segments] if changed else list(self._segments)
        fresh = [file for file in self._overlay.values() if file is not None]
        if fresh:
            segments.append(Segment.of_files(fresh))
        return Segment.merged(segments).table if segments else SCHEMA.empty_table()

    def __iter__(self) -> Iterator[File]:
        return iter(self.overlapping())

    def __len__(self) -> int:
        return self.count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Files) and self.count == other.count and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Files(count={self.count}, rows={self.rows}, bytes={self.bytes})"
