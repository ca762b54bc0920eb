"""The text of a change of rows, made or only counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.state.model.entities import RowCounts
    from deployer.tables.open_table import OpenTable
    from deployer.tables.rows.change import RowChange

LEAVES_SHOWN = 20


def in_words(counts: RowCounts) -> str:
    """Returns the counts as a text, such as `insert 3 rows, update 1 row`."""
    from deployer.platform.text.formatting import count

    verbs = (("insert", counts.inserted), ("update", counts.updated), ("delete", counts.deleted))
    return ", ".join(f"{verb} {count(rows, 'row')}" for verb, rows in verbs if rows) or "change no row"


def document_of(table: OpenTable, change: RowChange) -> dict[str, Any]:
    """Returns the JSON document of the change."""
    from dataclasses import asdict

    names = leaf_names(table)
    return {
        "table": table.entry.full_name,
        "dry_run": change.dry_run,
        "job_id": change.job.job_id if change.job is not None else None,
        "already_done": change.already_done,
        "version": change.version,
        "rows": change.rows,
        **asdict(change.counts),
        "leaves": [
            {"leaf": each.partition, "keys": names.get(each.partition or ""), **asdict(each.counts)}
            for each in change.leaves
        ],
        "fragments": asdict(change.fragments),
        "indexes": asdict(change.indexes),
    }


def print_change(table: OpenTable, change: RowChange) -> None:
    """Prints what a change did or would do, by leaf."""
    from deployer.cli.console.output import note, stdout
    from deployer.cli.summaries.load import print_indexes
    from deployer.platform.text.formatting import count

    name, what = table.entry.full_name, in_words(change.counts)
    if change.already_done and change.job is not None:
        stdout().print(f"{name}: job {change.job.job_id} was done before, as version {change.version}")
        print_indexes(change.indexes, "changed")
        return
    if change.dry_run:
        stdout().print(f"{name}: would {what}")
    elif change.rows:
        stdout().print(f"{name}: {what}, as version {change.version}")
    else:
        stdout().print(f"{name}: there is nothing to change")
    names = leaf_names(table)
    for each in change.leaves[:LEAVES_SHOWN]:
        where = names.get(each.partition or "", f"partition {each.partition}" if each.partition else "no partition")
        stdout().print(f"  {where}: {in_words(each.counts)}", style="dim")
    if len(change.leaves) > LEAVES_SHOWN:
        note(f"{len(change.leaves) - LEAVES_SHOWN:,} more leaves")
    made = change.fragments
    if change.rows:
        verb = "would be" if change.dry_run else "is" if made.changed == 1 else "are"
        stdout().print(
            f"  {count(made.changed, 'fragment')} {verb} changed, {made.removed:,} removed, {made.added:,} added",
            style="dim",
        )
    print_indexes(change.indexes, "changed")
    if not change.dry_run and change.job is not None:
        stdout().print(f"job {change.job.job_id}", style="dim")


def leaf_names(table: OpenTable) -> dict[str, str]:
    """Returns the key ranges of the leaves by id; a single leaf has all keys."""
    leaves, splits = table.state.leaves(), table.splits
    if len(leaves) == 1:
        return {leaves[0].partition_id: "all keys"}
    shown = [", ".join(map(str, point)) for point in splits]
    lowers, uppers = ["", *shown], [*shown, ""]
    return {
        leaf.partition_id: f"keys from {low} to below {high}"
        if low and high
        else f"keys below {high}"
        if high
        else f"keys from {low}"
        for leaf, low, high in zip(leaves, lowers, uppers, strict=True)
    }
