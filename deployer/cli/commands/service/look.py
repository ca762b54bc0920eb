"""Reading the status of a lake's services once, for the commands that print it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from deployer.cli.console.activity import report_progress
from deployer.platform.system.clock import Clock
from deployer.services.agent.watch import Look, Watch
from deployer.services.triggers.status import GRACE
from deployer.state import open_reader
from deployer.tables.open_table import find_entry


def look_at_services(root: str, tables: Sequence[str] | None = None, grace: float = GRACE) -> Look:
    """Reads the status of the given tables, or of all. Raises NotFound for a table that does not exist."""
    with closing(open_reader(root)) as store:
        entries = store.instance().tables.values()
        only = {find_entry(entries, name).table_id for name in tables} if tables else None
        return Watch(store, root, grace, only).look(Clock().now(), report_progress)
