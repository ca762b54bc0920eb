from __future__ import annotations

import math
from typing import Any

import pytest

from deployer.specs.yaml.nodes import parse_yaml


def only(text: str) -> Any:
    parsed = parse_yaml(text.encode(), "f.yaml")
    assert not parsed.problems
    (document,) = parsed.documents
    return document.plain()


SCALARS = {
    "no": "no",
    "NO": "NO",
    "on": "on",
    "yes": "yes",
    "y": "y",
    "1_000": "1_000",
    "1:30": "1:30",
    "190:20:30": "190:20:30",
    "012": 12,
    "0o14": 12,
    "0x1F": 31,
    "0b11": "0b11",
    "+3": 3,
    "-7": -7,
    "1.": 1.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "1.5E-2": 0.015,
    ".inf": math.inf,
    "-.inf": -math.inf,
    "true": True,
    "False": False,
    "~": None,
    "Null": None,
    "": None,
    "2013-01-01": "2013-01-01",
    "2013-01-01T00:00:00Z": "2013-01-01T00:00:00Z",
    "'true'": "true",
    '"12"': "12",
    "!!str 12": "12",
    "!!int 12": 12,
    "=": "=",
    "-": "-",
    ".": ".",
    "1.2.3": "1.2.3",
    "9" * 500: "9" * 500,
}


@pytest.mark.parametrize("text", [text for text in SCALARS if text != "-"])
def test_scalars_have_the_values_of_yaml_1_2(text: str) -> None:
    value = only(f"a: {text}\n")["a"]
    assert value == SCALARS[text]
    assert type(value) is type(SCALARS[text])


MERGES = {
    "own keys win": ("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}", {"x": 1, "y": 3}),
    "own keys win wherever the merge stands": ("base: &b {x: 1, y: 2}\nuse: {y: 3, <<: *b}", {"x": 1, "y": 3}),
    "the first of several wins": ("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nuse: {<<: [*a, *b]}", {"x": 1, "y": 2}),
    "merges of merges": ("a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nuse: {<<: *b}", {"x": 1, "y": 2}),
    "in place": ("use: {<<: {x: 1}, y: 2}", {"x": 1, "y": 2}),
}


@pytest.mark.parametrize("case", MERGES)
def test_merge_keys(case: str) -> None:
    text, expected = MERGES[case]
    assert only(text)["use"] == expected


def test_documents_are_told_apart_and_empty_ones_left_out() -> None:
    parsed = parse_yaml(b"---\n# nothing\n---\na: 1\n---\n~\n---\nb: 2\n...\n", "f.yaml")
    assert [document.plain() for document in parsed.documents] == [{"a": 1}, {"b": 2}]
    assert [document.line for document in parsed.documents] == [4, 8]


def test_positions_count_characters_from_one() -> None:
    (document,) = parse_yaml("ü: [é, ö]\nb:\n  c: {d: 1}\n".encode(), "dir/f.yaml").documents
    assert isinstance(document.value, dict)
    items = document.value["ü"].value
    assert isinstance(items, list)
    assert str(items[1].at) == "dir/f.yaml:1:8"
    inner = document.value["b"].value
    assert isinstance(inner, dict)
    assert str(inner["c"].key_at) == "dir/f.yaml:3:3"
    assert str(inner["c"].at) == "dir/f.yaml:3:6"


def test_a_merged_value_keeps_the_place_of_its_anchor() -> None:
    (document,) = parse_yaml(b"base: &b\n  x: 1\nuse:\n  <<: *b\n", "f.yaml").documents
    assert isinstance(document.value, dict)
    use = document.value["use"].value
    assert isinstance(use, dict)
    assert use["x"].line == 2


HOSTILE = {
    "deep flow": b"[" * 300_000,
    "deep block": b"".join(b" " * i + b"a:\n" for i in range(500)),
    "not UTF-8": b"a: \xff\xfe",
    "control character": b"a: \x00",
    "UTF-16": "a: 1".encode("utf-16-le"),
    "only an anchor": b"&a",
    "directive": b"%YAML 9.9\n---\na: 1",
    "unfinished tag": b"a: !<",
    "number without end": b"a: " + b"9" * 100_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_nothing_in_a_file_raises(case: str) -> None:
    parsed = parse_yaml(HOSTILE[case], "f.yaml")
    assert all(problem.at.file == "f.yaml" and problem.at.line > 0 for problem in parsed.problems)


def test_tabs_in_texts_and_comments_are_content() -> None:
    assert only("a: 'x\ty' # \t\nb: |\n  one\ttwo\n") == {"a": "x\ty", "b": "one\ttwo\n"}
