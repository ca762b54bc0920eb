"""The result of a run of BACKFILL."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.state.model.services import Figures, FinalStatus


@dataclass(frozen=True, slots=True)
class BackfilledColumn:
    """The result of a run of BACKFILL for one column; its errors are recorded under `job_id`."""

    column: str
    version: str
    job_id: str
    rows: int
    fragments: int
    bytes: int
    errors: int
    seconds: float


@dataclass(frozen=True, slots=True)
class BackfillResult:
    """The result of a run of the service BACKFILL. `why` is the reason where it is SKIPPED."""

    table: str
    run_id: str
    status: FinalStatus
    why: str
    columns: tuple[BackfilledColumn, ...]
    seconds: float
    lance_version_before: int
    lance_version_after: int

    @property
    def figures(self) -> Figures:
        """The figures of the run record."""
        return Figures(
            rows_out=sum(each.rows for each in self.columns),
            bytes_out=sum(each.bytes for each in self.columns),
            lance_version_before=self.lance_version_before,
            lance_version_after=self.lance_version_after,
            after={
                "columns": [each.column for each in self.columns],
                "fragments": sum(each.fragments for each in self.columns),
                "errors": sum(each.errors for each in self.columns),
                "seconds": self.seconds,
            },
        )
