"""Merges against the same on plain dictionaries, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.specs.model import Storage
from deployer.state.model.entities import RowCounts
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.merging.rules import MergeRules
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows
from tests.tables.rows.test_delete import differences, filled, opened

KEY = ("carrier", "flight")
RULES = {
    "upsert": MergeRules(),
    "insert only": MergeRules("ignore"),
    "update only": MergeRules("update", "ignore"),
    "delete matched": MergeRules("delete", "ignore"),
    "delete matched, insert others": MergeRules("delete"),
    "replace a part": MergeRules(when_not_matched_by_source="delete", where="carrier = 'AA'"),
    "make equal": MergeRules(when_not_matched_by_source="delete"),
}


def merged(table: list[dict[str, Any]], source: list[dict[str, Any]], rules: MergeRules) -> list[dict[str, Any]]:
    """What a merge makes of the rows, one after the other."""
    mine = {tuple(row[name] for name in KEY): row for row in source}
    empty: dict[str, Any] = dict.fromkeys(FLIGHTS.names)
    found, keys = [], {tuple(row[name] for name in KEY) for row in table}
    for row in table:
        new = mine.get(tuple(row[name] for name in KEY))
        if new is None:
            is_in_part = rules.where is None or row["carrier"] == "AA"
            if rules.when_not_matched_by_source == "keep" or not is_in_part:
                found.append(row)
        elif rules.when_matched != "delete":
            found.append(row | (new if rules.when_matched == "update" else {}))
    if rules.when_not_matched == "insert":
        found += [empty | row for key, row in mine.items() if key not in keys]
    return sorted(found, key=repr)


@pytest.mark.thinned(5, to="full")
@pytest.mark.parametrize(
    "options",
    [{}, {"row_keys": ()}, {"storage": Storage(stable_row_ids=True)}, {"unique": True}],
    ids=["keyed", "keyless", "stable row ids", "unique keys"],
)
@pytest.mark.parametrize("columns", [FLIGHTS.names, ["delay", "flight", "carrier"]], ids=["all columns", "some"])
@pytest.mark.parametrize("case", RULES)
def test_rows_are_merged(lake: Lake, case: str, columns: list[str], options: dict[str, Any]) -> None:
    table, rules = filled(lake, 200, **options), RULES[case]
    values = pa.array([(7 * i) % 100 for i in range(60)], pa.int16())
    source = flights(60, 170).set_column(2, FLIGHTS.field(2), values).select(columns)
    on = KEY if not table.row_keys else None
    foreseen = merge_rows(table, source, on, rules, dry_run=True)
    assert lake.open().opened.state == table.state
    change = merge_rows(table, source, on, rules, job_id="j")
    assert sorted_rows(lake.open().scan().to_table()) == merged(flights(200).to_pylist(), source.to_pylist(), rules)
    assert (change.counts, change.leaves) == (foreseen.counts, foreseen.leaves)
    assert differences(lake) == [] and all(file.partition for file in lake.open().opened.state.files)
    assert merge_rows(opened(lake), source, on, rules, job_id="j").already_done


def test_several_rows_of_one_key_are_all_updated(lake: Lake) -> None:
    table = filled(lake, 200)
    change = merge_rows(table, [{"carrier": "AA", "delay": 1}, {"carrier": "UA", "delay": 2}], "carrier")
    assert change.counts == RowCounts(updated=80)
    rows = lake.open().scan(columns=["carrier", "delay"]).to_table().to_pylist()
    assert {row["delay"] for row in rows if row["carrier"] == "AA"} == {1}
    assert {row["delay"] for row in rows if row["carrier"] == "UA"} == {2}


def test_a_null_matches_nothing(lake: Lake) -> None:
    table = filled(lake, 50)
    rows = [{"carrier": "XX", "flight": i, "delay": delay} for i, delay in enumerate((None, None, 4000))]
    change = merge_rows(table, rows, "delay")
    assert change.counts == RowCounts(inserted=3) and lake.open().count() == 53


def test_only_fragments_that_can_match_are_read(lake: Lake) -> None:
    from deployer.tables.rows.candidates import fragments_for, keys_in
    from deployer.tables.rows.source import MergeSource

    table = filled(lake, 200)
    dataset = table.dataset()
    for rows, on, fragments in (
        ([{"carrier": "AA", "flight": 500, "delay": 1}], None, 1),
        ([{"carrier": "AA", "flight": 500, "delay": 1}, {"carrier": "UA", "flight": 500, "delay": 1}], None, 2),
        ([{"carrier": "AA", "delay": 1}], "carrier", 1),
        ([{"carrier": "ZZ", "flight": 500, "delay": 1}], None, 0),
        ([{"carrier": "AA", "flight": 500, "delay": 1}], "delay", 4),
    ):
        found = len(fragments_for(table, dataset, keys_in(MergeSource.of(rows, on, table))))
        assert found == fragments


@pytest.mark.parametrize(
    ("rows", "on", "rules", "error", "message"),
    [
        (
            [{"carrier": "AA", "flight": 1, "delay": i} for i in range(3)],
            None,
            MergeRules(),
            Refused,
            r"1 key is in more than one of the rows \(first: \(carrier=AA, flight=1\)\)",
        ),
        ([{"carrier": "AA", "delay": 1}], None, MergeRules(), InvalidInput, "the rows have no column 'flight'"),
        ([{"carrier": "AA"}], "carier", MergeRules(), InvalidInput, "no column 'carier'; did you mean 'carrier'"),
        ([{"carrier": "AA"}], [], MergeRules(), InvalidInput, "`on` names no column"),
        ([{"carrier": "AA"}], ["carrier", "carrier"], MergeRules(), InvalidInput, "`on` names a column twice"),
        ([{"carrier": "XX"}], "carrier", MergeRules(), InvalidInput, "'flight' is missing, and the table needs it"),
        ([{"carrier": "AA", "flight": 1, "extra": 2}], None, MergeRules(), InvalidInput, "no column 'extra'"),
        ([{"carrier": "AA", "flight": 2**40}], None, MergeRules(), Refused, "1 row cannot be merged, so nothing was"),
        ([{"carrier": None, "flight": 1}], None, MergeRules(), Refused, "cannot be merged"),
        ([{"carrier": "AA", "flight": 1}], None, MergeRules("upsert"), InvalidInput, "`when_matched` is 'upsert'"),  # type: ignore[arg-type]
        ([{"carrier": "AA", "flight": 1}], None, MergeRules(where="true"), InvalidInput, "a condition limits"),
        ("rows", None, MergeRules(), InvalidInput, "str is not a kind of rows"),
    ],
)
def test_what_cannot_be_changes_nothing(
    lake: Lake, rows: Any, on: Any, rules: MergeRules, error: type[Exception], message: str
) -> None:
    table, files = filled(lake, 50), lake.data_files()
    with pytest.raises(error, match=message):
        merge_rows(table, rows, on, rules)
    assert lake.open().opened.state == table.state and lake.data_files() == files


def test_unique_keys_stay_unique_whatever_rows_are_matched_by(lake: Lake) -> None:
    table, files = filled(lake, 50, unique=True), lake.data_files()
    first = lake.open().scan(limit=1).to_table().to_pylist()[0]
    with pytest.raises(Refused, match="1 changed row would have a key that another row has"):
        merge_rows(table, [first | {"delay": 4000}], "delay")
    assert lake.open().opened.state == table.state and lake.data_files() == files


def test_a_merge_into_an_empty_table_inserts(lake: Lake) -> None:
    lake.table()
    change = merge_rows(opened(lake), flights(30))
    assert change.counts == RowCounts(inserted=30) and sorted_rows(lake.open().scan().to_table()) == sorted_rows(
        flights(30)
    )
    assert merge_rows(opened(lake), flights(0)).rows == 0


def test_a_protected_table_is_not_emptied(lake: Lake) -> None:
    table = filled(lake, 20)
    with pytest.raises(Refused, match="would remove all 20 rows of the table, which is protected"):
        merge_rows(table, flights(0), rules=MergeRules(when_not_matched_by_source="delete"))
    assert lake.open().count() == 20
