"""What becomes of the rows of a load whose unique row keys the table or the load already has."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from deployer.errors import InvalidInput, Refused
from deployer.live.reader import has_unique_keys
from deployer.tables.ingest.keys.unique import Duplicates, TakenKeys, UniqueLoad, refuse_duplicates
from deployer.tables.ingest.loading import Loaded
from deployer.tables.open_table import OpenTable


def unique_load(table: OpenTable, on_duplicate: Literal["reject", "skip"], *, sets_aside: bool) -> UniqueLoad | None:
    """What a load's rows are compared with; None for a table whose row keys need not be unique.

    `sets_aside`: duplicates are bad rows, unless they are skipped. Raises InvalidInput where nothing can be skipped.
    """
    if has_unique_keys(table.state):
        set_aside = sets_aside and on_duplicate == "reject"
        return UniqueLoad(TakenKeys.of(table), "set-aside" if set_aside else on_duplicate)
    if on_duplicate == "skip":
        raise InvalidInput(
            "the table's row keys are not declared unique, so no row is a duplicate",
            where=table.address,
            remedy="leave --on-duplicate out, or declare `unique: true` and run `deployer up`",
        )
    return None


def with_duplicates_set_aside(loaded: Loaded) -> Loaded:
    """The load with the duplicates that are to be set aside among the bad rows of their splits."""
    if not loaded.duplicates.bad:
        return loaded
    reports = dict(loaded.reports)
    for split, bad in loaded.duplicates.bad.items():
        reports[split] = replace(reports[split], bad=reports[split].bad.joined(bad))
    return replace(loaded, reports=reports, duplicates=Duplicates())


def refused_duplicates(loaded: Loaded, unique: UniqueLoad, rows: int, address: str) -> Refused | None:
    """The error for a load of `rows` rows whose duplicates refuse it; None without any."""
    if not loaded.duplicates.rows or unique.on_duplicate != "reject":
        return None
    remedy = "load the other rows with --on-duplicate skip, or set duplicates aside with --bad-rows FILE"
    return refuse_duplicates(loaded.duplicates, rows, address, remedy)
