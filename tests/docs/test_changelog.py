"""CHANGELOG.md keeps the form of Keep a Changelog: groups in order, and one short line for each change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tests.projects import REPOSITORY

GROUPS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_, _, RELEASES = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## ")


def groups_of(release: str) -> Mapping[str, Sequence[str]]:
    """Returns the lines of each group of a release that are not empty."""
    _, *groups = release.split("\n### ")
    titled = (group.partition("\n") for group in groups)
    return {title: [line for line in text.splitlines() if line] for title, _, text in titled}


def test_each_release_has_the_groups_in_order() -> None:
    releases = RELEASES.split("\n## ")
    assert releases[0].startswith("Unreleased\n")
    for release in releases:
        title, *before = release.partition("\n### ")[0].splitlines()
        assert re.fullmatch(r"Unreleased|\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", title)
        assert not any(before), "an entry stands before the first group"
        headings = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert headings == [group for group in GROUPS if group in headings]
        assert all(groups_of(release).values()), "a group has no entry"


def test_each_entry_is_one_line_of_at_most_100_characters() -> None:
    for release in RELEASES.split("\n## "):
        entries = [line for lines in groups_of(release).values() for line in lines]
        assert [line for line in entries if not re.fullmatch(r"- \S.*\.", line)] == []
        assert [line for line in entries if len(line) > 100] == []


def test_no_entry_is_there_twice() -> None:
    entries = re.findall(r"^- .*$", RELEASES, re.MULTILINE)
    assert sorted(entries) == sorted(set(entries))
