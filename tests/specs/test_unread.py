"""Spec files that nothing reads are found, and no other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.specs import load_lake
from deployer.specs.sources.unread import unread_files
from tests.specs.test_files import INSTANCE, table

#: Files below specs/ by case, with those that are unread in stack dev.
CASES = {
    "a subfolder that nothing includes": (
        {"lake.yaml": INSTANCE, "air/a.yaml": table("a"), "air/deep/b.yml": table("b")},
        ["specs/air/a.yaml", "specs/air/deep/b.yml"],
    ),
    "an included subfolder": (
        {"lake.yaml": INSTANCE + "---\ninclude: [air/**/*.yaml]\n", "air/a.yaml": table("a"), "sea/b.yaml": table("b")},
        ["specs/sea/b.yaml"],
    ),
    "files of another stack, and what they include": (
        {
            "lake.yaml": INSTANCE + "---\nstack: prod\ninclude: [prod/main.yaml]\n",
            "prod/main.yaml": "include: [more/*.yaml]\n",
            "prod/more/a.yaml": table("a"),
            "prod/b.yaml": table("b"),
        },
        ["specs/prod/b.yaml"],
    ),
    "the specs of another lake": (
        {"lake.yaml": INSTANCE, "other/lake.yaml": INSTANCE, "other/air/a.yaml": table("a")},
        [],
    ),
    "files that are not specs": (
        {
            "lake.yaml": INSTANCE,
            "Pulumi.dev.yaml": "config: {}\n",
            "sub/Pulumi.dev.yaml": "kind: Table\n",
            "sub/values.yaml": "a: 1\n",
            "sub/deployment.yaml": "kind: Deployment\n",
            "sub/binary.yaml": "\x00",
            "policies/rules.yaml": "kind: Table\n",
            ".hidden/a.yaml": table("a"),
            "sub/.a.yaml": table("a"),
            "sub/a.txt": table("a"),
        },
        [],
    ),
    "a file that is no YAML": ({"lake.yaml": INSTANCE, "air/a.yaml": "kind: Table\nname: [\n"}, ["specs/air/a.yaml"]),
}


@pytest.mark.parametrize("name", CASES)
def test_files_that_nothing_reads_are_found(name: str, tmp_path: Path) -> None:
    texts, unread = CASES[name]
    for file, text in texts.items():
        path = tmp_path / "specs" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    lake = load_lake(tmp_path, Path("specs"), "dev")
    assert unread_files(tmp_path, tmp_path / "specs", lake.files) == unread


def test_one_file_of_specs_has_its_folder_and_the_project_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    for file, text in (("specs/lake.yaml", INSTANCE), ("specs/a.yaml", table("a")), ("lake.yaml", INSTANCE)):
        (tmp_path / file).write_text(text)
    assert unread_files(tmp_path, tmp_path / "specs" / "lake.yaml", ["specs/lake.yaml"]) == ["specs/a.yaml"]
    assert unread_files(tmp_path, tmp_path / "lake.yaml", ["lake.yaml"]) == []
