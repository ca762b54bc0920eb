"""Columns that one call of a function makes: a backfill of one fills all of them, by one call for each row."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from deployer.functions import Columns, UnpackedUDF, udf
from deployer.services.kinds.backfill import BACKFILL
from deployer.table import Table
from tests.columns.backfill.conftest import with_computed
from tests.columns.backfill.functions import CALLS, calls
from tests.columns.rows import rows, values
from tests.tables.lakes import Lake


class Parts(NamedTuple):
    half: float
    label: str


@pytest.fixture
def siblings(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """The table with `p_half` and `p_label`, which one function makes that counts its calls."""
    monkeypatch.setenv(CALLS, str(tmp_path / "calls"))
    path = str(tmp_path / "calls")

    @udf(version="1")
    def parts(id: int, rating: float) -> Columns[Parts]:
        with Path(path).open("a") as file:
            file.write(f"{id}\n")
        return Parts(rating / 2, f"row {id}")

    table.add_columns(UnpackedUDF(parts, "p_"))
    return table


def halves(ids: range) -> dict[int, float | None]:
    return {i: i / 2 for i in ids}


@pytest.mark.parametrize("asked", ["p_half", "p_label"])
def test_a_row_is_computed_once_for_all_columns(asked: str, siblings: Table) -> None:
    done = siblings.backfill(asked)
    assert (done.rows, {asked, *done.siblings}) == (30, {"p_half", "p_label"})
    assert sorted(calls()) == [*range(30)]
    assert values(siblings, "p_half") == halves(range(30))
    assert values(siblings, "p_label") == {i: f"row {i}" for i in range(30)}
    for name in ("p_half", "p_label"):
        assert siblings.plan_backfill(name).rows == 0 and siblings.plan_backfill(name).by_version == {"1": 30}
        assert siblings.backfill(name).stats.fragments == 0
    assert len(calls()) == 30


def test_rows_by_a_condition_get_all_columns(siblings: Table) -> None:
    assert siblings.backfill("p_label", where="id < 3").rows == 3
    assert values(siblings, "p_half") == {i: i / 2 if i < 3 else None for i in range(30)}
    siblings.backfill("p_half")
    assert sorted(calls()) == [*range(30)] and values(siblings, "p_half") == halves(range(30))


def test_a_service_computes_them_once(siblings: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYER_TRUST_UDFS", "1")
    done = BACKFILL.run(lake.root, "flights", {"columns": ["p_half", "p_label"]}, engine="driver")
    assert [each.rows for each in done.columns] == [30] and sorted(calls()) == [*range(30)]
    siblings.add(with_computed(rows(30, 35)))
    BACKFILL.run(lake.root, "flights", {"columns": ["p_label"]}, engine="driver")
    assert sorted(calls()) == [*range(35)] and values(siblings, "p_half") == halves(range(35))


def test_a_column_of_another_version_is_left_alone(siblings: Table) -> None:
    siblings.backfill("p_half")

    @udf(version="2")
    def again(id: int, rating: float) -> Columns[Parts]:
        return Parts(-rating, "other")

    siblings.alter_columns({"path": "p_half", "udf": again})
    assert siblings.backfill("p_half").siblings == ()
    assert values(siblings, "p_half") == {i: -float(i) for i in range(30)}
    assert values(siblings, "p_label") == {i: f"row {i}" for i in range(30)}
