"""What a run of COMPACT came to."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.live.lance_io import versions_written
from deployer.state.json_values import JSON
from deployer.state.services import Figures, FinalStatus
from deployer.tables.dataset import OpenTable
from deployer.tables.indexes import CaughtUp


@dataclass(frozen=True, slots=True)
class Moment:
    """A table at a moment: `rows` are those that are not deleted, `bytes` those of the files of this version."""

    files: int
    rows: int
    bytes: int
    versions: int
    lance_version: int

    @staticmethod
    def of(table: OpenTable) -> Moment:
        files = table.state.files
        versions = len(versions_written(table.location))
        return Moment(files.count, files.rows, files.bytes, versions, table.state.lance_version)

    def as_json(self) -> dict[str, JSON]:
        return {"files": self.files, "rows": self.rows, "bytes": self.bytes, "versions": self.versions}


@dataclass(frozen=True, slots=True)
class Work:
    """What was committed. `rows` and `bytes_read` were rewritten into `bytes_written`, without `deleted_rows`; portions
    that were planned again, since others changed their files meanwhile, are `conflicts`."""

    tasks: int = 0
    portions: int = 0
    conflicts: int = 0
    rows: int = 0
    deleted_rows: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a run came to. SKIPPED, there was nothing to do, or CANCELLED: `why` says why. `engine` and `reason`: where
    it ran."""

    table: str
    run_id: str
    status: FinalStatus
    why: str
    before: Moment
    after: Moment
    work: Work
    engine: str
    reason: str
    seconds: float
    indexes: CaughtUp = CaughtUp()

    @property
    def figures(self) -> Figures:
        """For the record of the run."""
        return Figures(
            self.work.rows,
            self.work.rows,
            self.work.bytes_read,
            self.work.bytes_written,
            self.before.lance_version,
            self.after.lance_version,
            self.before.as_json(),
            self.after.as_json(),
        )
