"""RESTORE: returns tables to the content of a savepoint or a version. `restore_tables` runs it.

A restore makes a new version of the table, so that it can be undone.

`deployer.services.registry`, `deployer.cli` and `deployer.spark` may import it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deployer.errors import Conflict, NotFound, Refused
from deployer.services.definition import ServiceDefinition, Work

if TYPE_CHECKING:
    from deployer.platform.system.progress import OnProgress
    from deployer.services.restore.catalog import CatalogUndoing
    from deployer.services.restore.planning import Undoing
    from deployer.services.restore.restoring import Restored
    from deployer.state.store import StateStore

BEFORE = "before-restore-"  #: prefix of the names of savepoints that are made before a restore
KEPT = dt.timedelta(days=30)  #: how long the savepoint before a restore is kept
ATTEMPTS = 5  #: the attempts of a restore with `force`, which begins again where others commit meanwhile


def restore_tables(
    store: StateStore,
    root: str,
    planned: Sequence[Undoing],
    *,
    force: bool = False,
    save_first: bool = True,
    on_progress: OnProgress | None = None,
    author: str | None = None,
    catalog: CatalogUndoing | None = None,
) -> tuple[str, list[Restored]]:
    """Restores the tables as previewed by `preview_restore` or `preview_restore_at`, and the catalog as previewed by
    `preview_catalog`: all of them, or none.

    Each table has a run of RESTORE; all runs have one id. With `save_first`, a savepoint `before-restore-…` of all of
    them is made first. Returns its name (empty without one) and the outcome for each table. The call can be repeated: a
    table that already has the content is SKIPPED.

    Raises Conflict where a table or the catalog was changed since the preview, unless `force`, and while COMPACT,
    CLUSTER or CLEAN runs on a table. Raises Refused for more tables than one transaction of the state may have. An
    error means that nothing was restored.
    """
    from deployer.platform.system.progress import no_progress
    from deployer.runs.runner import RunRequest, as_runs
    from deployer.services.restore.catalog import require_catalog, restore_catalog
    from deployer.services.restore.restoring import restore_all

    catalog = None if catalog is None or catalog.nothing else catalog
    due = [each for each in planned if not each.nothing]
    _require_one_transaction(store, planned, catalog=catalog is not None)
    saved = ""
    if save_first and (due or catalog):
        label = due[0].point.label if due else f"savepoint {catalog.name}" if catalog else ""
        saved = _save(store, root, due, label, author, catalog=catalog is not None)
    if not planned:
        if catalog is not None:
            require_catalog(store, catalog, force=force)
            restore_catalog(store, catalog, author)
        return saved, []
    asked = RunRequest(cause=f"restore {planned[0].point.name}", author=author)
    ids = [each.table_id for each in planned]

    def work(run_id: str, report_progress: OnProgress) -> list[Restored]:
        return restore_all(store, root, planned, run_id, report_progress, force=force, catalog=catalog)

    for attempt in range(ATTEMPTS):
        try:
            return saved, list(as_runs(store, ids, "RESTORE", asked, work, on_progress or no_progress))
        except Conflict:
            if not force or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _require_one_transaction(store: StateStore, planned: Sequence[Undoing], *, catalog: bool) -> None:
    moved = catalog or any(each.point.dataset != each.base.dataset for each in planned)
    logs = len(planned) + (1 if moved else 0)  # the instance's log has the catalog, and the dataset of each table
    if store.transaction_logs is not None and logs > store.transaction_logs:
        most = store.transaction_logs - (1 if moved else 0)
        raise Refused(
            f"{len(planned)} tables cannot be restored together: a transaction of this state store has at most {most}",
            remedy="restore them in groups with --table",
        )


def _save(
    store: StateStore, root: str, planned: Sequence[Undoing], label: str, author: str | None, *, catalog: bool = False
) -> str:
    """Makes a savepoint of the present tables, and with `catalog` of the catalog; returns its name."""
    from deployer.platform.system.clock import Clock
    from deployer.services.savepoints.savepoints import make_savepoint, name_by_time
    from deployer.state.model.catalog_savepoints import catalog_savepoints

    now = Clock().now()
    entries = [store.instance().tables[each.table_id] for each in planned]
    taken = {name for each in entries for name in store.table(each.table_id).savepoints}
    if catalog:
        taken |= catalog_savepoints(store.instance()).keys()
    name = name_by_time(BEFORE, now, taken)
    note = f"before the restore of {label}"
    until = now + round(KEPT.total_seconds() * 1000)
    make_savepoint(store, root, entries, name, expires_at=until, note=note, author=author, catalog=catalog)
    return name


def _work(work: Work[None]) -> Restored:
    """Restores the newest savepoint that was not made by a restore. First makes a savepoint of the present table.

    Raises NotFound where there is no savepoint, and the same errors as `restore_tables`.
    """
    from deployer.services.restore.planning import preview_restore
    from deployer.services.restore.restoring import restore_all

    table = work.table
    of_people = (each for each in table.state.savepoints.values() if not each.name.startswith(BEFORE))
    newest = max(of_people, key=lambda each: each.state_version, default=None)
    if newest is None:
        raise NotFound(
            "the table has no savepoint to go back to",
            where=table.address,
            remedy="`deployer savepoint create NAME` makes one",
        )
    [planned] = preview_restore(table.store, table.root, [table.entry], newest.name)
    if not planned.nothing:
        _save(table.store, table.root, [planned], planned.point.label, None)
    [done] = restore_all(table.store, table.root, [planned], work.run_id, work.on_progress, force=False)
    return done


def _result() -> type[Restored]:
    from deployer.services.restore.restoring import Restored

    return Restored


#: the definition of RESTORE, which runs only on demand and has no options
RESTORE: ServiceDefinition[None, Restored] = ServiceDefinition(
    "RESTORE", lambda _options: None, _work, _result, lambda _table: "goes back to the newest savepoint"
)
