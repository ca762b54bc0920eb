"""docs/services.md says what the schema says, and its example and that of docs/expire.md are lakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

from deployer.specs import load_lake
from deployer.specs.schema.services import CONDITIONS, KINDS, default_trigger, option_names, option_schema

PAGE = (Path(__file__).parents[2] / "docs" / "services.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0] if title else PAGE.split("\n## ")[0]


def said(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def test_every_option_is_there_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| ?(.*?) ?\|$", section("Options"), re.MULTILINE)
    assert rows == [
        (
            kind.lower(),
            name,
            said(option_schema(kind, name)["default"]) if "default" in option_schema(kind, name) else "",
        )
        for kind in KINDS
        for name in option_names(kind)
    ]


def test_every_kind_is_there_with_its_trigger() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| ", section(""), re.MULTILINE))
    assert rows == {
        kind.lower(): ", ".join(f"`{name}: {json.dumps(value)}`" for name, value in default_trigger(kind).items())
        for kind in KINDS
    }


def test_every_condition_is_there() -> None:
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \| ", section("Triggers"), re.MULTILINE))))
    assert named == {"schedule", "timezone", *CONDITIONS}


def test_the_example_is_a_lake(tmp_path: Path) -> None:
    expire = (Path(__file__).parents[2] / "docs" / "expire.md").read_text(encoding="utf-8")
    lake, expiring = re.findall(r"```yaml\n(.*?)```", PAGE + expire, re.DOTALL)
    (tmp_path / "lake.yaml").write_text(lake, encoding="utf-8")
    [table] = load_lake(tmp_path, tmp_path).tables
    assert [each.kind for each in table.services] == ["COMPACT", "CLUSTER", "CLEAN"]
    instance = lake.partition("---\n")[0]
    (tmp_path / "lake.yaml").write_text(f"{instance}---\n{expiring}", encoding="utf-8")
    [table] = load_lake(tmp_path, tmp_path).tables
    assert [each.kind for each in table.services] == ["CLEAN", "EXPIRE"]
