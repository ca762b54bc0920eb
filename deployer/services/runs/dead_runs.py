"""What a run whose holder died leaves behind, and what is done about it."""

from __future__ import annotations

from contextlib import suppress

from deployer.datasets.commit_metadata import RESTORE
from deployer.errors import Conflict
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.updates import CommitAbandoned
from deployer.state.model.entities import TableState
from deployer.state.model.services import Run
from deployer.tables.open_table import OpenTable


def settle_dead_run(table: OpenTable, run: Run) -> list[str]:
    """Gives up the commits that a dead run had begun and never made; gives their jobs.

    `table` was opened after the run was ended, so what it had committed is recorded. A commit in progress keeps the
    versions since its beginning from being removed. Should the holder only have been stopped and commit after all, that
    is recorded by its mark. Files that were written and not committed stay until CLEAN finds them old enough: they
    cannot be distinguished from those of a load.
    """
    given_up = []
    for job in _jobs_of(table.state, run):
        with suppress(Conflict):  # it was done meanwhile
            table.store.commit(table.state.table_id, [CommitAbandoned(job)], [JobNotDone(job)])
            given_up.append(job)
    return given_up


def _jobs_of(state: TableState, run: Run) -> list[str]:
    """The jobs of its commits: the run's id, and more for several commits. The job of a RESTORE has what it undid."""
    return [
        job
        for job, intent in state.intents.items()
        if (job == run.run_id or job.startswith(f"{run.run_id}-")) and intent.kind != RESTORE
    ]
