"""Which tables share data, looked at one by one and all at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deployer.datasets.storage.removal import _near, _overlap
from deployer.state.model.entities import TableEntry
from deployer.state.model.location import Location
from deployer.state.model.table_locations import fault_between, is_shared

PLACES = st.sampled_from(
    [
        "air/a-00000000.lance",
        "air/a-00000000-g2.lance",
        "air/a.lance",
        "air/b-11111111.lance",
        "air/b-11111111-g10.lance",
        "Air/A-00000000.lance",
        "air/old/a.lance",
        "air/old",
        "air",
        "sea/a-00000000.lance",
        "air/a",
        "air/Ä",
        "air/A\u0308",
    ]
)
IDS = ("0" * 32, "1" * 32, "2" * 32)


def entry(place: str, number: int) -> TableEntry:
    return TableEntry(IDS[number % 3], "air", f"t{number}", Location(place), "active", 0)


@given(st.lists(PLACES, max_size=6))
def test_looked_at_one_by_one_and_all_at_once(places: list[str]) -> None:
    entries = [entry(each, number) for number, each in enumerate(places)]
    assert any(is_shared(each, entries) for each in entries) == (fault_between(entries) is not None)


@given(PLACES, PLACES, st.integers(0, 2))
def test_no_table_that_may_need_a_place_is_passed_over(place: str, other: str, number: int) -> None:
    location, table = Location(place), entry(other, number)
    base = table.location.base(table.table_id).casefold()
    may_need = (
        _overlap(location, table.location)
        or base.startswith(location.comparable)
        or (location.comparable.startswith(base) and location.comparable[len(base)] in "-./")
    )
    assert not may_need or _near([table], location) == [table]
