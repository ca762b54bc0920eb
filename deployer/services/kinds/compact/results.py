"""The result of a run of COMPACT."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.runs.rewriting.run import RewriteStats, TableStats
from deployer.state.model.services import Figures, FinalStatus
from deployer.tables.layout.indexes.build import CaughtUp


@dataclass(frozen=True, slots=True)
class CompactResult:
    """The result of a run. `why` is the reason of a SKIPPED or CANCELLED run; `reason` says why `engine` was chosen."""

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
        """The figures of the run record."""
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
