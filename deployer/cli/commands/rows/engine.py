"""The place where the parts of a change of rows run: in this process, or with Spark on the declared local cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from deployer.cli.options import EngineName
    from deployer.platform.system.progress import OnProgress
    from deployer.tables.rows.tasks import RunTasks


def tasks_by(
    engine: EngineName, project: Path | None, stack: str, specs: Path | None, on_progress: OnProgress
) -> RunTasks:
    """Returns the function that runs the parts of a change. The specs are read only if the parts need Spark."""
    from deployer.cli.inputs.spark_session import session_of
    from deployer.runs.rewriting import row_tasks

    return row_tasks.tasks_by(engine.value, session_of(project, stack, specs), on_progress)
