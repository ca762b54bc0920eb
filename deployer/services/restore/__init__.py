"""RESTORE: makes tables as they were at a savepoint or a version. `restore_tables` runs it.

A restore makes a new version of the table, so that it can be undone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

from deployer.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from deployer.services.restore.planning import Undoing
    from deployer.services.restore.restoring import Restored
    from deployer.services.running import Asked
    from deployer.state.store import StateStore
    from deployer.tables.progress import OnProgress

BEFORE = "before-restore-"  #: of the names of savepoints that are made before a restore
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
    """Makes the tables as the previews (`preview_restore`, `preview_restore_at`) say, each as a run of RESTORE.

    First it takes a savepoint of all of them, `before-restore-…`, unless not `save_first`; gives its name (empty: none)
    and what became of each table. It can be repeated: a table that is as it was then is SKIPPED.

    Raises Conflict when a table was changed since the preview, unless `force`: that table and those after it are as
    they were, those before it are restored. Conflict also while COMPACT, CLUSTER or CLEAN runs on one.
    """
    from deployer.services.running import Asked, as_run
    from deployer.tables.progress import untold

    due = [each for each in planned if not each.nothing]
    saved = _save(store, root, due, author) if save_first and due else ""
    asked = Asked(cause=f"restore {planned[0].point.name}" if planned else "on demand", author=author)
    done = []
    for each in planned:
        work = partial(_work, store, root, each, force)
        done.append(as_run(store, each.table_id, "RESTORE", asked, work, on_progress or untold))
    return saved, done


def _work(store: StateStore, root: str, planned: Undoing, force: bool, run_id: str, told: OnProgress) -> Restored:
    from deployer.services.restore.restoring import restore_one

    return restore_one(store, root, planned, run_id, told, force=force)


def _save(store: StateStore, root: str, planned: Sequence[Undoing], author: str | None) -> str:
    """A savepoint of the tables as they are; gives its name."""
    from deployer.services.savepoints import name_by_time
    from deployer.services.tagged_savepoints import make_savepoint
    from deployer.state.clock import Clock

    now = Clock().now()
    entries = [store.instance().tables[each.table_id] for each in planned]
    taken = {name for each in entries for name in store.table(each.table_id).savepoints}
    name = name_by_time(BEFORE, now, taken)
    note = f"before the restore of {planned[0].point.words}"
    until = now + round(KEPT.total_seconds() * 1000)
    make_savepoint(store, root, entries, name, expires_at=until, note=note, author=author)
    return name


def restore_table(
    root: str,
    table: str,
    options: Mapping[str, Any] | None = None,
    *,
    on_progress: OnProgress | None = None,
    asked: Asked | None = None,
) -> Restored:
    """Makes `table` as it was at its newest savepoint, but for those of before a restore, as a run and unasked.

    RESTORE has no options. A savepoint of how it is is made first. Raises NotFound when there is no savepoint, and as
    `restore_tables` does.
    """
    from deployer.services.restore.planning import preview_restore
    from deployer.services.restore.restoring import restore_one
    from deployer.services.running import Asked, as_run
    from deployer.state import open_store
    from deployer.tables.dataset import find_entry, open_entry
    from deployer.tables.progress import untold

    if options:
        raise InvalidInput(
            "RESTORE has no options",
            remedy="`deployer restore SAVEPOINT` and `deployer restore TABLE --at VERSION` name what to restore",
        )
    with closing(open_store(root)) as store:
        entry = find_entry(store.instance().tables.values(), table)

        def work(run_id: str, told: OnProgress) -> Restored:
            opened = open_entry(store, root, entry)
            of_people = (each for each in opened.state.savepoints.values() if not each.name.startswith(BEFORE))
            newest = max(of_people, key=lambda each: each.state_version, default=None)
            if newest is None:
                raise NotFound(
                    "the table has no savepoint to go back to",
                    where=opened.address,
                    remedy="`deployer savepoint create NAME` makes one",
                )
            [planned] = preview_restore(store, root, [opened.entry], newest.name)
            if not planned.nothing:
                _save(store, root, [planned], None)
            return restore_one(store, root, planned, run_id, told, force=False)

        return as_run(store, entry.table_id, "RESTORE", asked or Asked(), work, on_progress or untold)
