"""Property values: across the wire, to providers and back, hidden and compared."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.engine.program.requests import timeout_seconds
from deployer.engine.program.service import RefusedCall
from deployer.engine.values import values as v
from deployer.engine.values.assets import hashed, with_hashes
from deployer.engine.values.property_paths import contains, parse_path, with_old_values
from deployer.engine.values.resource import ResourceState
from deployer.engine.values.snapshot import in_dependency_order
from deployer.errors import NotFound, Refused
from tests.engine.sdk_client import RESOURCE, from_property, to_property

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number != int(number))
    | st.text()
)
KEYS = st.text(min_size=1).filter(lambda key: key != v.SIG)
PLAIN = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)
REFERENCE = {v.SIG: RESOURCE, "urn": "urn:pulumi:a::b::c:d:E::f", "id": "x"}
VALUES = PLAIN | PLAIN.map(v.secret) | st.just(REFERENCE) | PLAIN.map(lambda value: {"in": [v.secret(value)]})


@given(st.dictionaries(KEYS, VALUES))
def test_values_cross_the_wire_unchanged(properties: dict[str, Any]) -> None:
    struct = v.to_struct(properties)
    assert v.from_struct(struct) == properties
    assert v.from_struct(type(struct).FromString(struct.SerializeToString())) == properties


@given(VALUES)
def test_values_go_to_a_provider_and_come_back(value: Any) -> None:
    assert from_property(to_property(value)) == value


@given(VALUES)
def test_what_is_shown_has_no_secret_and_the_value_stays(value: Any) -> None:
    before = copy.deepcopy(value)
    assert not v.contains_secret(v.blinded(value))
    assert not v.contains_secret(v.without_secrets(value))
    assert value == before
    assert v.same(value, v.without_secrets(value))


def test_output_values_become_what_they_carry() -> None:
    struct = v.to_struct({"a": {v.SIG: v.OUTPUT, "value": "x", "secret": True}, "b": {v.SIG: v.OUTPUT}})
    assert v.from_struct(struct) == {"a": v.secret("x"), "b": v.UNKNOWN}


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [(1, 1.0, True), (1, True, False), ([0], [False], False), ({"a": 1}, {"a": 1}, True), ({"a": 1}, {}, False)],
)
def test_equality_tells_booleans_from_numbers(left: Any, right: Any, equal: bool) -> None:
    assert v.same(left, right) is equal


def test_secrecy_is_kept_under_the_same_name() -> None:
    known = {"a": v.secret(1), "b": {"c": v.secret(1), "d": 2}, "e": [v.secret(1)]}
    assert v.keep_secrecy({"a": 1, "b": {"c": 1, "d": 2}, "e": [1], "f": 1}, known) == {
        "a": v.secret(1),
        "b": {"c": v.secret(1), "d": 2},
        "e": v.secret([1]),
        "f": 1,
    }


PATHS = {
    "key": ("a", ("a",)),
    "below": ("a.b", ("a", "b")),
    "index": ("a[0].b", ("a", 0, "b")),
    "quoted": ('a["b.c"]', ("a", "b.c")),
    "any": ("a[*].b", ("a", "*", "b")),
    "no path": ("a[", ("a[",)),
}


@pytest.mark.parametrize(("text", "parts"), PATHS.values(), ids=PATHS.keys())
def test_property_paths(text: str, parts: tuple[Any, ...]) -> None:
    assert parse_path(text) == parts


@pytest.mark.parametrize(
    ("outer", "inner", "inside"),
    [("a", "a.b", True), ("a.b", "a", False), ("a[*].c", "a[3].c", True), ("*", "x.y", True), ("a", "b", False)],
)
def test_paths_within_paths(outer: str, inner: str, inside: bool) -> None:
    assert contains(parse_path(outer), parse_path(inner)) is inside


IGNORED = {
    "a value": ({"a": 1}, {"a": 2, "b": 3}, ("a",), {"a": 1, "b": 3}),
    "one that came": ({}, {"a": 2}, ("a",), {}),
    "one that went": ({"a": 1}, {}, ("a",), {"a": 1}),
    "below": ({"a": {"x": 1, "y": 1}}, {"a": {"x": 2, "y": 2}}, ("a.x",), {"a": {"x": 1, "y": 2}}),
    "below what came": ({}, {"a": {"x": 2}}, ("a.x",), {"a": {"x": 2}}),
    "in a list": ({"a": [{"x": 1}, {"x": 1}]}, {"a": [{"x": 2}, {"x": 2}]}, ("a[1].x",), {"a": [{"x": 2}, {"x": 1}]}),
    "in every item": ({"a": [{"x": 1}, {"x": 1}]}, {"a": [{"x": 2}, {"x": 2}]}, ("a[*].x",), {"a": [{"x": 1}] * 2}),
    "everything": ({"a": 1}, {"a": 2}, ("*",), {"a": 1}),
}


@pytest.mark.parametrize(("old", "new", "paths", "expected"), IGNORED.values(), ids=IGNORED.keys())
def test_ignored_changes_take_the_old_values(
    old: dict[str, Any], new: dict[str, Any], paths: tuple[str, ...], expected: dict[str, Any]
) -> None:
    before = copy.deepcopy(new)
    assert with_old_values(old, new, paths) == expected
    assert new == before


@pytest.mark.parametrize(("text", "seconds"), [("5m", 300.0), ("1h30m", 5400.0), ("1.5s", 1.5), ("250ms", 0.25)])
def test_durations(text: str, seconds: float) -> None:
    assert timeout_seconds(text) == seconds


@pytest.mark.parametrize("text", ["5", "m", "5 m", "five"])
def test_bad_durations_are_refused(text: str) -> None:
    with pytest.raises(RefusedCall, match="is not a valid duration"):
        timeout_seconds(text)


def test_assets_have_the_hash_of_their_contents(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file"
    file.parent.mkdir()
    file.write_text("text")
    by_text = hashed({v.SIG: v.ASSET, "text": "text"})
    assert hashed({v.SIG: v.ASSET, "path": str(file)})["hash"] == by_text["hash"]
    folder = hashed({v.SIG: v.ARCHIVE, "path": str(file.parent)})
    archive = with_hashes({"a": [{v.SIG: v.ARCHIVE, "assets": {"file": {v.SIG: v.ASSET, "text": "text"}}}]})
    assert archive["a"][0]["hash"] == folder["hash"]
    file.write_text("other")
    assert hashed({v.SIG: v.ARCHIVE, "path": str(file.parent)})["hash"] != folder["hash"]
    with pytest.raises(NotFound):
        hashed({v.SIG: v.ASSET, "path": str(tmp_path / "none")})
    with pytest.raises(Refused, match="over the network"):
        hashed({v.SIG: v.ASSET, "uri": "https://example.org/x"})


@given(st.permutations(list(range(8))))
def test_resources_are_saved_after_what_they_need(order: list[int]) -> None:
    needs = {1: (0,), 2: (1,), 3: (0, 2), 5: (4,), 7: (3, 5)}
    states = [
        ResourceState(str(index), "t", True, dependencies=tuple(map(str, needs.get(index, ())))) for index in order
    ]
    seen: set[str] = set()
    for state in in_dependency_order(states):
        assert state.needs() <= seen
        seen.add(state.urn)
    assert len(seen) == 8


def test_an_order_that_is_right_is_kept() -> None:
    states = [ResourceState("b", "t", True), ResourceState("a", "t", True), ResourceState("c", "t", True)]
    assert in_dependency_order(states) == states
