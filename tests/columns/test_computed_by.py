"""Which definition computed the values of a file: recorded with them, and kept as long as it is true."""

from __future__ import annotations

import lance
import pytest

from deployer.datasets.recovery.as_recorded import as_recorded
from deployer.datasets.recovery.rollforward import current, refresh
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.state.model.entities import TableState
from deployer.state.model.files.computed_by import (
    definitions_of,
    has_others,
    is_computed,
    joined,
    rows_by_definition,
    to_text,
    with_definitions,
    with_rows_of,
    without_fields,
)
from deployer.state.model.files.data_file import File
from deployer.state.store import StateStore
from deployer.table import connect
from deployer.tables.maintenance.verify.verify import verify
from tests.columns.fills import fill
from tests.columns.rows import rows, source
from tests.tables.lakes import Lake
from tests.tables.verify.test_rebuild import lose, rebuild

V1, V2, V1_OF_8 = '{"7":["v1"]}', '{"7":["v2"]}', '{"8":["v1"]}'

JOINED = [
    ("no file", [], ""),
    ("files without any", ["", ""], ""),
    ("files that agree", [V1, V1], V1),
    ("one of nobody's", [V1, ""], '{"7":["","v1"]}'),
    ("two definitions", [V2, V1], '{"7":["v1","v2"]}'),
    ("other columns", [V1, V1_OF_8], '{"7":["","v1"],"8":["","v1"]}'),
    ("joined files", ['{"7":["","v1"]}', V2], '{"7":["","v1","v2"]}'),
]


@pytest.mark.parametrize(("texts", "expected"), [case[1:] for case in JOINED], ids=[case[0] for case in JOINED])
def test_joined_files_have_all_definitions(texts: list[str], expected: str) -> None:
    assert joined(texts) == joined(reversed(texts)) == expected


def test_a_text_says_what_it_was_made_of() -> None:
    assert definitions_of(to_text({7: ("v2", "v1", "v2"), 3: ("",)})) == {7: ("v1", "v2")}
    assert definitions_of("") == definitions_of("{") == definitions_of("[1]") == definitions_of('{"a":1}') == {}
    assert with_definitions(V1_OF_8, {7: "v2"}) == '{"7":["v2"],"8":["v1"]}'
    assert without_fields('{"7":["v2"],"8":["v1"]}', {7}) == V1_OF_8 and without_fields(V1, [7]) == ""
    assert with_rows_of(V2, '{"7":["","v1"],"8":["","v1"]}') == '{"7":["v2"],"8":["","v1"]}'


def test_whether_a_file_is_computed() -> None:
    assert is_computed(V1, 7, "v1") and not is_computed(V1, 7, "v2") and not is_computed(V1, 8, "v1")
    mixed = joined([V1, ""])
    assert not is_computed(mixed, 7, "v1") and not has_others(mixed, 7, "v1") and has_others(mixed, 7, "v2")
    files = [File(1, None, 10, 1, computed=V1), File(2, None, 5, 1), File(3, None, 3, 1, computed=V1)]
    assert rows_by_definition(files, 7) == {("v1",): 13, (): 5}


def computed(lake: Lake) -> list[tuple[int, str]]:
    """The rows of each file, and the identities of the definitions of the column `score`."""
    table = lake.open().opened
    field = {each.name(): each.id() for each in table.dataset().lance_schema.fields()}["score"]
    return [(file.rows, "|".join(definitions_of(file.computed).get(field, ()))) for file in table.state.files]


def test_a_fill_records_what_computed_the_values(lake: Lake) -> None:
    fill(lake, "score", "v1")
    assert computed(lake) == [(10, "v1")] * 3
    fill(lake, "score", "v2", 2, completes=False)
    assert computed(lake) == [(10, "v1")] * 3
    with connect(lake.root) as connection:
        connection.open_table("flights").add(rows(30, 40))
        connection.open_table("flights").delete("id = 4")
    assert computed(lake) == [(9, "v1"), (10, "v1"), (10, "v1"), (10, "")]
    fill(lake, "score", "v2", 2)
    assert [by for _, by in computed(lake)] == ["v2"] * 4
    assert [str(one) for each in verify(lake.store, lake.root, full=True) for one in each.differences] == []


@pytest.mark.parametrize("records", [False, True], ids=["a reader", "a writer"])
def test_who_read_the_state_before_the_fill_began_knows_it_too(
    records: bool, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process reads the log, then the fill begins and commits to Lance, then the other one looks there."""
    fill(lake, "score", "v1")
    entry = lake.open().opened.entry
    before: list[TableState] = []
    seen: list[TableState] = []

    def reached(point: str) -> None:
        if point == "columns.commit.before-intent":
            before.append(lake.store.table(entry.table_id))
        elif point == "columns.commit.after-lance" and records:
            seen.append(current(lake.store, lake.root, entry, before[0])[1])
        elif point == "columns.commit.after-lance":
            former = iter([before[0]])  # what is read the second time is as old, and the intent is there the third time
            monkeypatch.setattr(lake.store, "table", lambda _: next(former, None) or StateStore.table(lake.store, _))
            seen.append(as_recorded(lake.store, lake.root, entry, before[0]).state)
            monkeypatch.delattr(lake.store, "table")

    monkeypatch.setattr("deployer.columns.fill.commit.reached", reached)
    fill(lake, "score", "v2", 2)
    [state] = seen
    assert {file.computed for file in state.files} == {file.computed for file in lake.open().opened.state.files}
    assert [by for _, by in computed(lake)] == ["v2"] * 3
    assert not lake.open().opened.state.intents


def test_another_column_is_recorded_beside(lake: Lake) -> None:
    fill(lake, "score", "v1")
    fill(lake, "other", "w1")
    assert computed(lake) == [(10, "v1")] * 3
    table = lake.open().opened
    assert {len(definitions_of(file.computed)) for file in table.state.files} == {2}


def test_values_of_others_are_of_no_definition(lake: Lake) -> None:
    fill(lake, "score", "v1")
    fill(lake, "score", "", 3)
    assert computed(lake) == [(10, "")] * 3
    fill(lake, "score", "v1")
    lance.dataset(lake.open().opened.location).update({"score": "1"}, where="id = 12")
    refresh(lake.store, lake.root, lake.open().opened.entry.table_id)
    assert [by for _, by in computed(lake)].count("v1") >= 2 and sum(n for n, by in computed(lake) if not by) >= 1


def test_a_dropped_column_takes_it_along(lake: Lake) -> None:
    fill(lake, "score", "v1")
    lance.dataset(lake.open().opened.location).drop_columns(["score"])
    refresh(lake.store, lake.root, lake.open().opened.entry.table_id)
    assert {file.computed for file in lake.open().opened.state.files} == {""}


def test_merged_files_keep_it(lake: Lake) -> None:
    fill(lake, "score", "v1")
    compact_table(lake.root, "flights", {"min_files": 2})
    assert computed(lake) == [(30, "v1")]
    with connect(lake.root) as connection:
        connection.open_table("flights").add(rows(30, 40))
    cluster_table(lake.root, "flights", {"columns": ["rating"]})
    assert computed(lake) == [(40, "|v1")]


def test_changed_rows_stay_of_the_definition_that_computed_them(lake: Lake) -> None:
    fill(lake, "score", "v1")
    with connect(lake.root) as connection:
        connection.open_table("flights").update(where="id = 3", values={"name": "another"})
    assert computed(lake) == [(9, "v1"), (10, "v1"), (10, "v1"), (1, "|v1")]


def test_a_rebuilt_state_has_it(lake: Lake) -> None:
    fill(lake, "score", "v1")
    with connect(lake.root) as connection:
        connection.open_table("flights").add(rows(30, 40))
    before = [file.computed for file in lake.open().opened.state.files]
    lose(lake)
    rebuild(lake)
    assert [file.computed for file in lake.open().opened.state.files] == before


def test_a_load_of_a_source_is_of_no_definition(lake: Lake) -> None:
    fill(lake, "score", "v1")
    path = lake.file(source(range(30)).select(["id"]).append_column("score", source(range(30))["id"]))
    with connect(lake.root) as connection:
        connection.open_table("flights").load_columns(str(path), "id", ["score"])
    assert computed(lake) == [(10, "")] * 3
