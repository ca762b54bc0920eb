"""Publishes one table to its targets, and reports the changes of others there.

An entry belongs to deployer if its properties say so or if the records have it. METASYNC never changes another entry.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from deployer.errors import Corrupt, DeployerError, Interrupted, Refused
from deployer.plan.render.escaping import plain
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text.formatting import count
from deployer.services.kinds.metasync.entry import Publication, is_same_place, relative_to, uri_of
from deployer.services.kinds.metasync.registry import Record, published_tables, records_of, remember
from deployer.services.kinds.metasync.results import MetasyncResult, PublishedEntry
from deployer.services.kinds.metasync.targets.target import Found, Place, Target, is_same_catalog
from deployer.state.model.services import FinalStatus
from deployer.tables.open_table import OpenTable

Declared = Mapping[str, Any]  #: a target as specs write it


def sync(
    table: OpenTable,
    targets: Sequence[Declared],
    open_target: Callable[[Declared], Target],
    *,
    all_of_them: bool = True,
    on_progress: OnProgress = no_progress,
    run_id: str = "",
) -> MetasyncResult:
    """Publishes `table` to `targets`. The failure of a target is part of the result; it raises no error.

    `all_of_them` says that these are all targets of the table, so its entries in other targets are removed. Entries of
    its former names and of deleted tables are always removed.
    """
    started = time.monotonic()
    open_target = _once(open_target)
    publication = Publication.of(table)
    done = []
    for number, declared in enumerate(targets):
        on_progress(Progress(f"publishing to {declared['type']}", number, len(targets), "targets"))
        done.append(_published(table, publication, declared, open_target))
    on_progress(Progress("looking for entries that are out of date", len(targets), len(targets), "targets"))
    done += _remove_old(table, targets, open_target, all_of_them)
    gone = _remove_gone(table, targets, open_target)
    status, why = _outcome(done, gone, publication)
    seconds = time.monotonic() - started
    name, version = table.entry.full_name, publication.version
    return MetasyncResult(name, run_id, status, why, tuple(done), tuple(gone), version, seconds)


def _once(open_target: Callable[[Declared], Target]) -> Callable[[Declared], Target]:
    """Returns a function that opens each target once, so that all calls of the target use the same connections."""
    opened: dict[str, Target] = {}

    def open_once(declared: Declared) -> Target:
        key = json.dumps(dict(declared), sort_keys=True)
        if key not in opened:
            opened[key] = open_target(declared)
        return opened[key]

    return open_once


def _outcome(
    done: Sequence[PublishedEntry], gone: Sequence[PublishedEntry], publication: Publication
) -> tuple[FinalStatus, str]:
    failed = [f"{each.target}: {each.failure}" for each in done if each.failure]
    if failed:
        return "FAILED", "; ".join(failed)
    if any(each.action != "unchanged" for each in (*done, *gone)):
        changed = [f"{each.target} ({', '.join(each.changed_by_others)})" for each in done if each.changed_by_others]
        return "SUCCEEDED", f"changed by others: {'; '.join(changed)}" if changed else ""
    where = ", ".join(each.target for each in done)
    return "SKIPPED", f"version {publication.version} is published to {count(len(done), 'catalog')} already: {where}"


def _published(
    table: OpenTable, publication: Publication, declared: Declared, open_target: Callable[[Declared], Target]
) -> PublishedEntry:
    title = str(declared["type"])
    try:
        target = open_target(declared)
        place = target.place(publication.database, publication.name)
        title = _title(target, place)
        return _publish(table, publication, declared, target, place)
    except Interrupted:
        raise
    except DeployerError as error:
        return PublishedEntry(title, "failed", failure=str(error))


def _publish(
    table: OpenTable, publication: Publication, declared: Declared, target: Target, place: Place
) -> PublishedEntry:
    wanted, found = target.wanted(publication), target.find(place)
    records = records_of(table.store.instance(), publication.table_id)
    record = next((each for each in records if each.is_at(target.catalog, place)), None)
    if found is not None:
        _require_ours(table, publication, target, place, found, record)
    changed, before = _changed(found, record), found.version if found is not None else None
    own = Record(declared, target.catalog, place, wanted["location"])
    remember(table.store, publication.table_id, [*(each for each in records if each is not record), own])
    title, now = _title(target, place), publication.version
    if found is not None and not changed and found.says(wanted):
        return PublishedEntry(title, "unchanged", before, now)
    target.put(place, publication, found)
    return PublishedEntry(title, "created" if found is None else "updated", before, now, changed)


def _changed(found: Found | None, record: Record | None) -> tuple[str, ...]:
    if found is None:
        return ("removed",) if record is not None else ()
    return found.altered(record.location if record is not None else None)


def _require_ours(
    table: OpenTable, publication: Publication, target: Target, place: Place, found: Found, record: Record | None
) -> None:
    """Raises Refused for an entry that deployer did not publish, or that belongs to another table."""
    instance = table.store.instance()
    owner = instance.tables.get(found.table_id)
    if owner is not None and found.table_id != publication.table_id:
        if target.place(owner.database, owner.name) == place:
            what = f"{'.'.join(place)} is where table {owner.full_name} is published"
            raise Refused(what, remedy="rename one of the two: the catalog does not distinguish their names")
        return  # the other table had this name before
    if found.table_id:
        known = {publication.table_id, *instance.tables, *published_tables(instance)}
        ours = found.table_id in known or is_same_place(found.root, publication.root)
    else:
        ours = record is not None and relative_to(found.location, publication.root) is not None
    if not ours:
        where = plain(found.location)
        raise Refused(
            f"{'.'.join(place)} exists already and was not published from this lake: it is at {where}",
            remedy="remove or rename it there, or publish to another place",
        )


def _remove_old(
    table: OpenTable, targets: Sequence[Declared], open_target: Callable[[Declared], Target], all_of_them: bool
) -> list[PublishedEntry]:
    """Removes entries of the table's former names; with `all_of_them`, also entries in undeclared targets."""
    table_id, entry = table.entry.table_id, table.entry
    found: list[PublishedEntry | None] = []
    for record in records_of(table.store.instance(), table_id):

        def remove(record: Record = record) -> PublishedEntry | None:
            now = [each for each in map(open_target, targets) if is_same_catalog(each.catalog, record.catalog)]
            if any(each.place(entry.database, entry.name) == record.place for each in now):
                return None
            return (
                _remove(table, table_id, record, _target_of(record, now, open_target)) if now or all_of_them else None
            )

        found.append(_removed(record, remove))
    return [each for each in found if each is not None]


def _remove_gone(
    table: OpenTable, targets: Sequence[Declared], open_target: Callable[[Declared], Target]
) -> list[PublishedEntry]:
    """Removes entries of deleted tables, since their own METASYNC no longer runs."""
    instance = table.store.instance()
    declared: list[Target] = []
    for each in targets:
        with suppress(DeployerError):  # `_published` has reported it
            declared.append(open_target(each))
    removed: list[PublishedEntry | None] = []
    for table_id in sorted(published_tables(instance) - set(instance.tables)):
        try:
            records = records_of(instance, table_id)
        except Corrupt as error:
            removed.append(PublishedEntry(f"table {table_id}", "failed", failure=str(error)))
            continue
        for record in records:

            def remove(table_id: str = table_id, record: Record = record) -> PublishedEntry | None:
                return _remove(table, table_id, record, _target_of(record, declared, open_target))

            removed.append(_removed(record, remove))
    return [each for each in removed if each is not None]


def _target_of(record: Record, declared: Sequence[Target], open_target: Callable[[Declared], Target]) -> Target:
    """Returns the record's target as it is declared now, with its present token; else as it was declared then."""
    return next((each for each in declared if each.catalog == record.catalog), None) or open_target(record.target)


def _removed(record: Record, remove: Callable[[], PublishedEntry | None]) -> PublishedEntry | None:
    try:
        return remove()
    except Interrupted:
        raise
    except DeployerError as error:
        return PublishedEntry(f"{record.target['type']} {'.'.join(record.place)}", "failed", failure=str(error))


def _remove(table: OpenTable, table_id: str, record: Record, target: Target) -> PublishedEntry | None:
    """Removes one entry and its record; returns None where another table of the lake has taken the place."""
    found = target.find(record.place)
    title, before = _title(target, record.place), found.version if found is not None else None
    done = PublishedEntry(title, "removed", before, changed_by_others=() if found is not None else ("removed",))
    if found is not None:
        if _is_removable(table, table_id, record, found):
            target.remove(record.place, found)
        else:
            done = PublishedEntry(title, "left", before)
    instance = table.store.instance()
    remember(table.store, table_id, [each for each in records_of(instance, table_id) if each != record])
    return None if found is not None and found.table_id in {*instance.tables} - {table_id} else done


def _is_removable(table: OpenTable, table_id: str, record: Record, found: Found) -> bool:
    """Returns whether the entry is the one of the record, and names this lake itself.

    A record alone does not suffice, since any writer of the state can make one.
    """
    if found.table_id:
        return found.table_id == table_id and is_same_place(found.root, uri_of(table.root))
    is_below = relative_to(found.location, uri_of(table.root)) is not None
    return is_below and is_same_place(found.location, record.location)


def _title(target: Target, place: Place) -> str:
    return f"{target.title} {'.'.join(place)}"
