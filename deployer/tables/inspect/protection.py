"""Protection of a table from changes and deletion: protected rows, savepoints, and changes since its plan."""

from __future__ import annotations

from contextlib import suppress

from deployer.datasets.dataset import open_dataset
from deployer.datasets.storage.places import dataset_uri, has_data_files
from deployer.errors import Conflict, Corrupt, NotFound, Refused
from deployer.live.model import LiveTable
from deployer.live.reader import holds_of, savepoint_names
from deployer.plan.assess.holds import describe_hold_names
from deployer.plan.assess.savepoints import OPTION, savepoint_loss
from deployer.plan.diff.lakes import diff
from deployer.plan.render.changes import describe
from deployer.specs.model import TableSpec
from deployer.state.model.declared_properties import HOLDS
from deployer.state.model.entities import TableEntry
from deployer.state.store import StateStore
from deployer.tables.inspect.recorded import recorded_table

RELEASE = "release it first: remove it from `holds:` in the table's spec and run `deployer up`"
UNKNOWN_ROWS = "an unknown number of rows, as its log cannot be read,"


def protected_content(store: StateStore, root: str, entry: TableEntry) -> str:
    """Returns a description of the protected content of the table; empty where nothing is protected.

    A table whose dataset cannot be read holds the rows that its log has. One whose log cannot be read counts as
    protected.
    """
    if entry.status != "active":
        return held_by_unfinished(store, root, entry)
    try:
        live = recorded_table(store, root, entry)
    except (Corrupt, NotFound):
        return _protected_by_log(store, entry)
    rows = rows_held(root, live) if live.spec.deletion_protection else 0
    return f"{rows:,} rows" if rows else ""


def savepoints_of(store: StateStore, entry: TableEntry) -> tuple[str, ...]:
    """Returns the names of the table's savepoints, the newest first, which are deleted with the table.

    Returns None where its log cannot be read, and where its deletion has begun, which required permission.
    """
    if entry.status != "active":
        return ()
    try:
        return savepoint_names(store.table(entry.table_id))
    except (Corrupt, NotFound):
        return ()


def refuse_savepoints(store: StateStore, entry: TableEntry) -> None:
    """Raises Refused, naming them, for a table that has savepoints."""
    if names := savepoints_of(store, entry):
        raise Refused(
            f"{savepoint_loss(names)}, and nothing was changed",
            where=entry.address,
            remedy=f"allow it with {OPTION} of `deployer up`, `destroy` or `table delete`, or delete them first: "
            f"`deployer savepoint delete NAME --table {entry.full_name}`",
        )


def refuse_held_table(store: StateStore, entry: TableEntry, what: str = "the table") -> None:
    """Raises Refused, naming them, for a table with legal holds, unless its log says that it has no rows.

    A table whose deletion has begun had no holds at that time; for a table whose log cannot be read, none are known.
    """
    if entry.status != "active":
        return
    try:
        state = store.table(entry.table_id)
    except (Corrupt, NotFound):
        return
    if state.properties.declared.get(HOLDS) and (holds := holds_of(state)) and (state.files.rows or state.savepoints):
        raise Refused(
            f"{describe_hold_names(holds)} keep{'s' if len(holds) == 1 else ''} {what}",
            where=entry.address,
            remedy=RELEASE,
        )


def rows_held(root: str, live: LiveTable) -> int:
    """Returns the rows of the table's newest version: where the state says that there are none, those that Lance
    has."""
    if live.statistics.rows:
        return live.statistics.rows
    with suppress(NotFound):
        return int(open_dataset(dataset_uri(root, live.location)).count_rows())
    return 0


def held_by_unfinished(store: StateStore, root: str, entry: TableEntry) -> str:
    """Returns a description of the protected content of a table whose creation or deletion was interrupted; empty for
    none.

    The files of a table go before its log does, and a table has a log once it is created, so that files without a log
    are of neither.
    """
    try:
        state = store.table(entry.table_id)
    except NotFound:
        return "files that its log does not record" if has_data_files(root, entry.location) else ""
    except Corrupt:
        return UNKNOWN_ROWS
    if entry.status == "creating":
        return f"a log of {state.version:,} versions already"
    rows = state.files.rows if state.properties.deletion_protection else 0
    return f"{rows:,} rows, protected from deletion" if rows else ""


def _protected_by_log(store: StateStore, entry: TableEntry) -> str:
    try:
        state = store.table(entry.table_id)
    except (Corrupt, NotFound):
        return UNKNOWN_ROWS
    rows = state.files.rows if state.properties.deletion_protection else 0
    return f"{rows:,} rows, as its log says," if rows else ""


def require_as_planned(planned: TableSpec, live: TableSpec) -> None:
    """Raises Conflict when the table's declaration has changed since its plan was made. Its rows may have changed."""
    if moved := diff(planned, live):
        raise Conflict(
            f"the table was changed since it was planned: {'; '.join(map(describe, moved))}",
            where=live.address,
            remedy="preview again",
        )
