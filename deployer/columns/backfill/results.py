"""The plan and the result of a backfill."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.columns.fill.run import FillStats
from deployer.state.model.services import Figures, FinalStatus


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """The work that `backfill` would do now. Nothing is reserved: rows may come and go.

    `rows` are those to compute. By default these are the rows of the `fragments`, without looking into them: of a
    fragment that no definition is known for, rows with a value are left alone. With a condition they are counted.
    `tasks` are those of about `task_size` rows that this process would do, `commits` the versions that become visible
    one after the other.
    `by_version` has the table's rows by the version of the definition that computed them; "" has those of fragments
    that are not computed, or not wholly by one version.
    `seconds` are expected by the rate of the last run that is known, None without one.
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
    """The result of a backfill. `already_done`: the job was done before, and nothing was written.

    `rows` are those that were computed. `errors` are failed rows that were skipped, which `get_errors` lists.
    `siblings` are the other columns that the same calls of the function filled. `engine` says where the values were
    computed: `driver` (this process), `spark` or `none`.
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
        """The figures of the run record."""
        return Figures(
            rows_out=self.rows,
            bytes_out=self.stats.bytes,
            lance_version_before=self.lance_version_before,
            lance_version_after=self.lance_version_after,
            after={"fragments": self.stats.fragments, "errors": self.errors, "seconds": round(self.seconds, 3)},
        )
