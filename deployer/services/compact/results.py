"""What a run of COMPACT came to."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.services.rewriting.run import RewriteStats, TableStats
from deployer.state.model.services import Figures, FinalStatus
from deployer.tables.indexes.build import CaughtUp


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What a run came to. SKIPPED, there was nothing to do, or CANCELLED: `why` says why. `engine` and `reason`: where
    it ran."""

    table: str
    run_id: str
    status: FinalStatus
    why: str
    before: TableStats
    after: TableStats
    work: RewriteStats
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
