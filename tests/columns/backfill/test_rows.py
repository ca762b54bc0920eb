"""Which rows a backfill computes: by what is recorded of files, by conditions, and by fragments."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.datasets.files.column_files import to_data_file, write_column_file
from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import NotFound
from deployer.services.kinds.backfill import BACKFILL
from deployer.services.kinds.compact import compact_table
from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.computed import ComputedByUdf
from deployer.specs.types.types import Column, Scalar
from deployer.state.model.files.computed_by import definitions_of
from deployer.table import Table, connect
from tests.columns.backfill.conftest import TRUSTED, with_computed
from tests.columns.backfill.functions import calls, counted, mostly_null, scalar, tenfold
from tests.columns.rows import SCHEMA, rows, values
from tests.tables.lakes import Lake

FIRST = {i: i * 2 + 1.0 for i in range(30)}


def versions(lake: Lake) -> list[str]:
    """The versions of the definitions that computed `score` in each file, parted by `|`."""
    table = lake.open().opened
    field = {each.name(): each.id() for each in table.dataset().lance_schema.fields()}["score"]
    return [
        "|".join(each.partition("-")[0] for each in definitions_of(file.computed).get(field, ()))
        for file in table.state.files
    ]


def test_a_null_that_was_computed_is_not_computed_again(table: Table) -> None:
    assert table.backfill("score", udf=mostly_null).rows == 30
    assert table.backfill("score", udf=mostly_null).rows == 0
    assert values(table, "score") == {i: None if i % 2 else float(i) for i in range(30)}


def test_another_version_computes_all_rows_again(table: Table, lake: Lake) -> None:
    table.backfill("score")
    assert versions(lake) == ["1"] * 3
    assert table.backfill("score", udf=tenfold).rows == 30
    assert values(table, "score") == {i: i * 10.0 for i in range(30)} and versions(lake) == ["2"] * 3


def test_of_a_merged_file_only_rows_without_a_value_are_computed(table: Table, lake: Lake) -> None:
    table.backfill("score", udf=counted)
    table.add(with_computed(rows(30, 40)))
    compact_table(lake.root, "flights", {"min_files": 2})
    assert versions(lake) == ["|1"]
    table.backfill("score", udf=counted)
    assert sorted(calls()) == [*range(40)] and versions(lake) == ["1"]
    assert values(table, "score") == {i: i * 2 + 1.0 for i in range(40)}


def test_values_of_another_version_in_a_merged_file_are_computed_again(table: Table, lake: Lake) -> None:
    table.backfill("score")
    table.add(with_computed(rows(30, 40)))
    compact_table(lake.root, "flights", {"min_files": 2})
    table.backfill("score", udf=tenfold)
    assert values(table, "score") == {i: i * 10.0 for i in range(40)} and versions(lake) == ["2"]


def test_rows_that_were_changed_stay_of_their_version(table: Table, lake: Lake) -> None:
    table.backfill("score")
    table.update(where="id = 3", values={"name": "another"})
    table.backfill("score", udf=tenfold)
    assert values(table, "score") == {i: i * 10.0 for i in range(30)}


CONDITIONS = [
    ("some rows", "id >= 25", [*range(25, 30)], 1),
    ("of several fragments", "id % 10 = 3", [3, 13, 23], 3),
    ("none", "id > 100", [], 0),
    ("all", "1=1", [*range(30)], 3),
    ("true", " TRUE ", [*range(30)], 3),
    ("a text", "name = 'name 7'", [7], 1),
    ("a date", "day > '2020-01-28'", [28, 29], 1),
    ("of the column itself", "score > 55", [28, 29], 1),
]


@pytest.mark.parametrize(
    ("where", "chosen", "fragments"), [case[1:] for case in CONDITIONS], ids=[case[0] for case in CONDITIONS]
)
def test_a_condition_chooses_rows_and_others_keep_their_values(
    where: str, chosen: list[int], fragments: int, table: Table, lake: Lake
) -> None:
    table.backfill("score")
    plan = table.plan_backfill("score", udf=tenfold, where=where)
    assert (plan.rows, plan.fragments) == (len(chosen), fragments)
    done = table.backfill("score", udf=tenfold, where=where)
    assert (done.rows, done.stats.fragments) == (len(chosen), fragments)
    assert values(table, "score") == FIRST | {i: i * 10.0 for i in chosen}
    assert versions(lake) == (["2"] * 3 if len(chosen) == 30 else ["1"] * 3)


def test_a_condition_on_rows_that_are_not_computed_leaves_the_rest(table: Table, lake: Lake) -> None:
    table.backfill("score", udf=counted, where="id < 5")
    assert versions(lake) == [""] * 3
    assert values(table, "score") == {i: FIRST[i] if i < 5 else None for i in range(30)}
    table.backfill("score", udf=counted)
    assert sorted(calls()) == [*range(30)] and versions(lake) == ["1"] * 3
    assert values(table, "score") == FIRST


def test_kept_rows_between_and_behind_batches_that_are_all_computed(table: Table) -> None:
    """Values that stay are read in order, also past a batch for which none was asked."""
    table.backfill("score", where="id in (0, 9)")
    table.backfill("score", udf=tenfold, where="id between 1 and 8", checkpoint_size=4, max_checkpoint_size=4)
    assert [values(table, "score")[i] for i in range(10)] == [1.0, *(i * 10.0 for i in range(1, 9)), 19.0]


def test_fragments_are_skipped_and_counted(table: Table) -> None:
    assert table.backfill("score", skip_frags=1, num_frags=1).rows == 10
    assert values(table, "score") == {i: FIRST[i] if 10 <= i < 20 else None for i in range(30)}
    assert table.plan_backfill("score", skip_frags=2).rows == 10
    assert table.backfill("score", num_frags=2).rows == 10
    assert table.backfill("score", num_frags=100).rows == 10
    assert values(table, "score") == FIRST


def test_fragments_of_a_version(table: Table) -> None:
    then = table.version
    table.add(with_computed(rows(30, 40)))
    assert table.backfill("score", read_version=then).rows == 30
    assert values(table, "score") == FIRST | dict.fromkeys(range(30, 40))
    with pytest.raises(NotFound, match="the table has no version 999"):
        table.backfill("score", read_version=999)


def test_results_become_visible_portion_by_portion(table: Table) -> None:
    before = table.version
    assert table.backfill("score", commit_granularity=1).stats.commits == 3
    assert table.version == before + 3
    assert table.backfill("km", commit_granularity=None).stats.commits == 1


def test_a_plan_says_what_is_computed_by_which_version(table: Table) -> None:
    plan = table.plan_backfill("score")
    assert (plan.rows, plan.fragments, plan.total_rows, plan.by_version) == (30, 3, 30, {"": 30})
    assert plan.seconds is None and plan.version == "1" and plan.commits == 1
    table.backfill("score", num_frags=2)
    plan = table.plan_backfill("score", task_size=4)
    assert (plan.rows, plan.fragments, plan.tasks, plan.by_version) == (10, 1, 3, {"1": 20, "": 10})
    assert plan.seconds is not None and plan.seconds > 0


def test_values_whose_inputs_were_loaded_are_outdated(table: Table, lake: Lake) -> None:
    table.backfill("score")
    path = lake.file(pa.table({"id": [*range(10, 20)], "rating": [float(i * 100) for i in range(10, 20)]}))
    table.load_columns(str(path), "id", ["rating"], on_missing="carry")
    assert "outdated" in versions(lake)
    assert table.plan_backfill("score").by_version.get("outdated", 0) >= 10
    compact_table(lake.root, "flights", {"min_files": 2})
    table.backfill("score")
    assert values(table, "score") == {i: i * (200 if 10 <= i < 20 else 2) + 1.0 for i in range(30)}
    assert versions(lake) == ["1"]


def test_inputs_that_plain_lance_writes_make_values_outdated(table: Table, lake: Lake) -> None:
    table.backfill("score")
    opened = lake.open().opened
    lance.dataset(opened.location).drop_columns(["name"])
    refresh(lake.store, lake.root, opened.entry.table_id)
    assert versions(lake) == ["1"] * 3
    dataset = lance.dataset(opened.location)
    field = pa.field("rating", pa.float64())
    written = write_column_file(
        dataset,
        opened.location,
        1,
        pa.schema([field]),
        [pa.record_batch([pa.array([1.0] * 10)], schema=pa.schema([field]))],
    )
    group = lance.LanceOperation.DataReplacementGroup(1, to_data_file(written))
    lance.LanceDataset.commit(
        opened.location, lance.LanceOperation.DataReplacement([group]), read_version=dataset.version
    )
    refresh(lake.store, lake.root, opened.entry.table_id)
    assert versions(lake) == ["1", "outdated", "1"]
    assert table.backfill("score").rows == 10


def test_a_service_that_keeps_other_versions_computes_outdated_values(table: Table, lake: Lake) -> None:
    table.backfill("km")
    path = lake.file(pa.table({"id": [*range(30)], "rating": [float(i * 10) for i in range(30)]}))
    table.load_columns(str(path), "id", ["rating"])
    done = BACKFILL.run(lake.root, "flights", {"columns": ["km"]}, engine="driver")
    assert [each.rows for each in done.columns] == [30] and values(table, "km")[10] == 160.9344


def test_plans_and_results_have_the_version_that_the_definition_names(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    computed = ComputedByUdf(TRUSTED[0], "", ("rating",), "7")
    score = arrow_field(Column("score", Scalar("float64"), computed=computed))
    lake.table(pa.schema([*SCHEMA, score]), row_keys=("id",), splits=())
    with connect(lake.root, trusted_functions=TRUSTED) as connection:
        table = connection.open_table("flights")
        table.add(rows(0, 5))
        assert table.plan_backfill("score").version == "7"
        assert table.backfill("score").version == "7" and versions(lake) == ["7"]
        assert table.plan_backfill("score", udf=scalar).version == "1"
