"""RESTORE: makes tables as they were at a savepoint, as a new version that can be undone. `restore_tables` runs it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.services.restore.planning import Undoing
    from deployer.services.restore.restoring import Restored
    from deployer.state.store import StateStore
    from deployer.tables.progress import OnProgress

KEPT = dt.timedelta(days=30)  #: how long the savepoint of before a restore is there


def restore_tables(
    store: StateStore,
    root: str,
    planned: Sequence[Undoing],
    *,
    force: bool = False,
    save_first: bool = True,
    on_progress: OnProgress | None = None,
    author: str | None = None,
) -> tuple[str, list[Restored]]:
    """Makes the tables as `preview_restore` says, one after the other, each as a run of RESTORE.

    First it takes a savepoint of all of them, `before-restore-…`, unless not `save_first`; gives its name (empty: none)
    and what became of each table. It can be repeated: a table that is as it was then is SKIPPED.

    Raises Conflict when a table was changed since the preview, unless `force`: that table and those after it are as
    they were, those before it are restored. Conflict also while COMPACT, CLUSTER or CLEAN runs on one.
    """
    from deployer.services.running import Asked, as_run
    from deployer.services.tagged_savepoints import make_savepoint
    from deployer.state.clock import Clock
    from deployer.tables.progress import untold

    saved = ""
    due = [each for each in planned if not each.nothing]
    if save_first and due:
        now = Clock().now()
        entries = [store.instance().tables[each.table_id] for each in due]
        taken = {name for each in entries for name in store.table(each.table_id).savepoints}
        stem = f"before-restore-{dt.datetime.fromtimestamp(now / 1000, dt.UTC):%Y%m%dT%H%M%SZ}"
        saved = next(name for n in count(1) if (name := stem if n == 1 else f"{stem}-{n}") not in taken)
        note = f"before the restore of {planned[0].savepoint.name}"
        until = now + round(KEPT.total_seconds() * 1000)
        make_savepoint(store, root, entries, saved, expires_at=until, note=note, author=author)
    asked = Asked(cause=f"restore {planned[0].savepoint.name}" if planned else "on demand", author=author)
    done = []
    for each in planned:
        work = partial(_work, store, root, each, force)
        done.append(as_run(store, each.table_id, "RESTORE", asked, work, on_progress or untold))
    return saved, done


def _work(store: StateStore, root: str, planned: Undoing, force: bool, run_id: str, told: OnProgress) -> Restored:
    from deployer.services.restore.restoring import restore_one

    return restore_one(store, root, planned, run_id, told, force=force)
