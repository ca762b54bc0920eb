"""The plan and the result of an erasure, including places that it could not reach."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from deployer.platform.files.json_values import JSON
from deployer.services.erasure.scan import DatasetScan


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """The places that hold the rows now. `rows` are those that the newest version shows; `stored_rows` the most that
    one version has in its files, hidden ones included.

    `savepoints` and `tags` (of other programs) are removed with versions that hold the rows; `datasets` are replaced
    ones that are removed as a whole. `indexes` are rebuilt. `unreached` are places that others need at the moment, with
    what to do.
    """

    table: str
    rows: int
    stored_rows: int
    versions: tuple[int, ...]
    unknown_versions: tuple[int, ...]
    savepoints: tuple[str, ...]
    tags: tuple[str, ...]
    datasets: tuple[str, ...]
    indexes: tuple[str, ...]
    unreached: tuple[str, ...]
    scans: tuple[DatasetScan, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Returns whether nothing holds such rows."""
        return not (self.rows or self.stored_rows or self.versions or self.datasets or self.unreached)

    def as_json(self) -> dict[str, JSON]:
        form = asdict(self)
        del form["scans"]
        return {name: list(each) if isinstance(each, tuple) else each for name, each in form.items()}


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """The result of an erasure:

    `rows` deleted from the newest version, and the removed and rebuilt parts. `history`: past states were removed from
    the table's log, because they had keys of the rows. The proof: `versions_read` versions were read and hold
    `rows_left` of the rows; `files_searched` files below the root were searched for `values` text and binary values,
    and `files_with_values` have one. `unreached` are places that could not be erased, each with what to do.
    """

    table: str
    rows: int
    versions: int
    savepoints: tuple[str, ...]
    tags: tuple[str, ...]
    datasets: tuple[str, ...]
    rewritten_files: int
    indexes: tuple[str, ...]
    history: bool
    versions_read: int
    rows_left: int
    files_searched: int
    values: int
    files_with_values: tuple[str, ...]
    unreached: tuple[str, ...]

    @property
    def is_proven(self) -> bool:
        """Returns whether no remains of the rows were found, and every place was reached."""
        return not (self.rows_left or self.files_with_values or self.unreached)

    def as_json(self) -> dict[str, JSON]:
        form = {name: list(each) if isinstance(each, tuple) else each for name, each in asdict(self).items()}
        return {**form, "proven": self.is_proven}
