"""The result of a run of EXPIRE."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.runs.rewriting.run import TableStats
from deployer.state.model.services import Figures, FinalStatus


@dataclass(frozen=True, slots=True)
class ExpireResult:
    """The result of a run. `why` is the reason of a SKIPPED run, or states what a dry run would remove.

    `rows` counts the expired rows. Of these, `whole_rows` were in the `whole_files` files that were dropped without
    being read. `held_rows` counts rows that are old enough but stay, under the legal holds named in `holds`.
    `before_time` is the time before which rows are expired, in ISO 8601.
    """

    table: str
    run_id: str
    status: FinalStatus
    why: str
    dry_run: bool
    column: str
    before_time: str
    rows: int
    whole_rows: int
    whole_files: int
    held_rows: int
    holds: tuple[str, ...]
    before: TableStats
    after: TableStats
    seconds: float

    @property
    def figures(self) -> Figures:
        """The figures of the run record."""
        return Figures(
            self.before.rows,
            self.after.rows,
            lance_version_before=self.before.lance_version,
            lance_version_after=self.after.lance_version,
            before=self.before.as_json(),
            after=self.after.as_json(),
        )
