"""The plan and the result of a backfill."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.columns.fill.run import FillStats
from deployer.state.model.services import Figures, FinalStatus


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """The work that `backfill` would do now. Nothing is reserved: rows may be added or removed before the backfill.

    `rows` is the number of rows to compute. Without a condition, it is the number of all rows of the `fragments`, which
    are not read; the backfill leaves rows with a value unchanged in a fragment whose definition is unknown. With a
    condition, the rows are counted. `tasks` is the number of tasks of about `task_size` rows in this process, and
    `commits` the number of versions that become visible one after the other. `by_version` has the number of the table's
    rows by the version of the definition that computed them; "" has the rows of fragments that are not computed, or not
    by only one version. `seconds` is the expected duration by the rate of the last known run; None without such a run.
    """

    column: str
    version: str
    rows: int
    fragments: int
    tasks: int
    commits: int
    total_rows: int
    total_fragments: int
    by_version: dict[str, int]
    seconds: float | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class BackfillJobResult:
    """The result of a backfill. `already_done` states that the job was complete before, and that nothing was written.

    `rows` is the number of computed rows. `errors` is the number of failed rows that were skipped; `get_errors` lists
    them. `siblings` are the other columns that the same calls of the function filled. `engine` is the place where the
    values were computed: `driver` (this process), `spark` or `none`.
    """

    job_id: str
    column: str
    version: str = ""
    run_id: str = ""
    rows: int = 0
    errors: int = 0
    seconds: float = 0.0
    already_done: bool = False
    stats: FillStats = FillStats()
    lance_version_before: int | None = None
    lance_version_after: int | None = None
    siblings: tuple[str, ...] = ()
    engine: str = "none"
    status: FinalStatus = "SUCCEEDED"
    why: str = ""

    @property
    def figures(self) -> Figures:
        """The figures for the run's record."""
        return Figures(
            rows_out=self.rows,
            bytes_out=self.stats.bytes,
            lance_version_before=self.lance_version_before,
            lance_version_after=self.lance_version_after,
            after={"fragments": self.stats.fragments, "errors": self.errors, "seconds": round(self.seconds, 3)},
        )
