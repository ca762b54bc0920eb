"""Applies the changes of one table to another, for each batch of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from deployer.errors import InvalidInput
from deployer.live.reader import has_unique_keys
from deployer.tables.changes.reading import CHANGE, DELETE, TIME, VERSION
from deployer.tables.open_table import open_to_change
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.merging.rules import MergeRules

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def apply_changes(root: str, table: str) -> Callable[[DataFrame, int], None]:
    """Returns a function for `foreachBatch` that makes the same changes to the table `database.name` at `root`.

    The table needs unique row keys, by which rows are found. For each key, the last change of a batch counts: deleted
    rows are deleted in one commit, the others are merged in another.

    A batch that is repeated after a crash makes the same changes, and so has no effect. Raises InvalidInput for a table
    without unique row keys, NotFound for a table that does not exist.
    """
    opened = open_to_change(root, table)
    try:
        keys, name = opened.row_keys, opened.entry.full_name
        if not has_unique_keys(opened.state):
            raise InvalidInput(
                "changes are applied by unique row keys, and the table has none",
                where=opened.address,
                remedy="declare `row_keys` and `unique: true`",
            )
    finally:
        opened.store.close()

    def apply(batch: DataFrame, batch_id: int) -> None:
        kept = batch.select(*(_quoted(batch, each) for each in batch.columns if each != TIME)).persist()
        try:
            last = _last_of_each(kept, keys)
            gone = last.where(last[CHANGE] == DELETE).select(*(_quoted(last, each) for each in keys)).toArrow()
            if gone.num_rows:
                _delete(root, name, gone, keys)
            left = last.where(last[CHANGE] != DELETE).drop(CHANGE, VERSION)
            writer = left.write.format("deployer").option("root", root).option("upsert", "true")
            writer.mode("append").save(name)
        finally:
            kept.unpersist()

    return apply


def _last_of_each(batch: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """Returns the last change of each key. A key that a version both deletes and inserts exists afterwards."""
    from pyspark.sql import Window, functions

    order = functions.col(VERSION).desc(), (functions.col(CHANGE) == DELETE).asc()
    window = Window.partitionBy(*(_quoted(batch, each) for each in keys)).orderBy(*order)
    numbered = batch.withColumn("_change_number", functions.row_number().over(window))
    return numbered.where(numbered["_change_number"] == 1).drop("_change_number")


def _delete(root: str, table: str, keys: object, names: tuple[str, ...]) -> None:
    opened = open_to_change(root, table)
    try:
        rules = MergeRules(when_matched="delete", when_not_matched="ignore")
        merge_rows(opened, keys, names, rules, allow_destroy=True)
    finally:
        opened.store.close()


def _quoted(frame: DataFrame, name: str) -> Column:
    return frame["`" + name.replace("`", "``") + "`"]
