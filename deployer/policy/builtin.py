"""The built-in rules. Each rule has options, and a check of the rows of the plan."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from deployer.platform.text.formatting import count, size
from deployer.policy.model import Check, Found, Unchecked
from deployer.policy.rows import ChangeRow, PlanView
from deployer.specs.values.target_server import is_named

Options = Mapping[str, Any]
_FLAG = {"type": "boolean"}
_PATTERN = {"type": "string", "minLength": 1, "format": "regex"}
_NEW_ONLY = _FLAG | {"description": "Check only what the plan creates, adds or renames."}


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in rule: its options, as `properties` of the JSON Schema of its document, and the function that returns
    its check."""

    summary: str
    properties: Mapping[str, Any]
    check: Callable[[Options], Check]
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()  #: at least one of these options must be given


def _column_age(options: Options) -> Check:
    least = dt.timedelta(days=options["days"])
    wanted = count(options["days"], "day")

    def check(plan: PlanView) -> Iterator[Found]:
        for change in plan.changes:
            if change.change != "DropColumn":
                continue
            if not plan.is_live:
                yield Unchecked(change.address, f"only live state knows the age of column {change.column}")
            elif change.added_at is None:
                yield change.violation(f"column {change.column} may be dropped after {wanted}, and its age is unknown")
            elif plan.now - change.added_at < least:
                age = count((plan.now - change.added_at).days, "day")
                known = f"{age} old, or older than its log shows," if change.added_at_is_bound else f"{age} old"
                yield change.violation(f"column {change.column} is {known} and may be dropped after {wanted}")

    return check


_KEYS = {"row_keys": "ChangeRowKeys", "sort_keys": "ChangeSortKeys", "split_points": "ChangeSplitPoints"}


def _key_change(options: Options) -> Check:
    wanted = {kind for name, kind in _KEYS.items() if options.get(name, name == "row_keys")}

    def check(plan: PlanView) -> Iterator[Found]:
        for change in plan.changes:
            if change.change in wanted:
                yield change.violation(f"{change.summary}: a change of keys needs an approval")

    return check


def _destroys_data(_: Options) -> Check:
    def check(plan: PlanView) -> Iterator[Found]:
        for change in plan.changes:
            if change.risk == "destroys":
                yield change.violation(f"{change.summary}: what destroys data needs an approval")

    return check


_ALLOWED = r"(glue|directory|plugin):.+|(\*\.)?[a-zA-Z0-9._-]+(:[0-9]+)?|\[[0-9a-fA-F:.]+\](:[0-9]+)?"


def _external_targets(options: Options) -> Check:
    allowed: list[str] = options.get("allow", [])

    def check(plan: PlanView) -> Iterator[Found]:
        for change in plan.changes:
            for name in change.sends_to:
                if not any(is_named(name, each) for each in allowed):
                    yield change.violation(f"it publishes the table to {name}, which the rule's `allow` does not list")

    return check


def _rewrite_size(options: Options) -> Check:
    rows, bytes_ = options.get("rows"), options.get("bytes")

    def over(change: ChangeRow) -> str:
        if rows is not None and change.rows > rows:
            return f"rewrites {count(change.rows, 'row')}, more than {rows:,}"
        if bytes_ is not None and change.bytes > bytes_:
            return f"rewrites {size(change.bytes)}, more than {size(bytes_)}"
        return ""

    def check(plan: PlanView) -> Iterator[Found]:
        for change in plan.changes:
            if change.risk != "rewrites":
                continue
            if not change.sizes_known:
                yield Unchecked(change.address, f"only live state knows how much is rewritten ({change.summary})")
            elif excess := over(change):
                yield change.violation(f"{change.summary}: {excess}")

    return check


def _naming(options: Options) -> Check:
    patterns = {name: options.get(name) for name in ("databases", "tables", "columns")}
    new_only = options.get("new_only", False)

    def breaks(what: str, name: str) -> bool:
        pattern = patterns[what]
        return pattern is not None and not re.fullmatch(pattern, name)

    def check(plan: PlanView) -> Iterator[Found]:
        for table in plan.tables:
            if new_only and not table.is_new:
                continue
            if breaks("databases", table.database):
                yield table.violation(f"the database's name {table.database} is not {patterns['databases']}")
            if breaks("tables", table.name):
                yield table.violation(f"the table's name {table.name} is not {patterns['tables']}")
        for column in plan.columns:
            name = column.column.rpartition(".")[2]
            if (column.is_new or not new_only) and breaks("columns", name):
                yield column.violation(f"the name of column {column.column} is not {patterns['columns']}")

    return check


def _required_tags(options: Options) -> Check:
    required: list[str] = options.get("tags", ["owner"])
    values: Mapping[str, str] = options.get("values", {})
    instances, new_only = options.get("instances", False), options.get("new_only", False)

    def check(plan: PlanView) -> Iterator[Found]:
        for resource in plan.resources:
            if (new_only and not resource.is_new) or (resource.kind == "instance" and not instances):
                continue
            for tag in required:
                if not resource.tags.get(tag, "").strip():
                    yield resource.violation(f"it has no tag {tag}")
            for tag, pattern in values.items():
                value = resource.tags.get(tag, "")
                if value.strip() and not re.fullmatch(pattern, value):
                    yield resource.violation(f"its tag {tag} is {value!r}, which is not {pattern}")

    return check


def _descriptions(options: Options) -> Check:
    tables, columns = options.get("tables", True), options.get("columns", False)
    new_only = options.get("new_only", False)

    def check(plan: PlanView) -> Iterator[Found]:
        for table in plan.tables if tables else ():
            if (table.is_new or not new_only) and not table.description.strip():
                yield table.violation("it has no description")
        for column in plan.columns if columns else ():
            if "." not in column.column and (column.is_new or not new_only) and not column.description.strip():
                yield column.violation(f"column {column.column} has no description")

    return check


_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}

BUILTIN: Mapping[str, Builtin] = MappingProxyType(
    {
        "column-age": Builtin(
            "A column may only be dropped when it is at least this many days old.",
            {"days": {"type": "integer", "minimum": 1, "maximum": 36_500}},
            _column_age,
            required=("days",),
        ),
        "key-change": Builtin("Keys do not change without an approval.", dict.fromkeys(_KEYS, _FLAG), _key_change),
        "destroys-data": Builtin("Nothing destroys data without an approval.", {}, _destroys_data),
        "rewrite-size": Builtin(
            "No single change rewrites more than this many rows or bytes.",
            {"rows": _COUNT, "bytes": _COUNT},
            _rewrite_size,
            one_of=("rows", "bytes"),
        ),
        "naming": Builtin(
            "Names match a pattern.",
            {"databases": _PATTERN, "tables": _PATTERN, "columns": _PATTERN, "new_only": _NEW_ONLY},
            _naming,
            one_of=("databases", "tables", "columns"),
        ),
        "required-tags": Builtin(
            "Tables have an owner, and the other required tags.",
            {
                "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
                "values": {"type": "object", "additionalProperties": _PATTERN},
                "instances": _FLAG,
                "new_only": _NEW_ONLY,
            },
            _required_tags,
        ),
        "descriptions": Builtin(
            "Tables, and optionally columns, have a description.",
            {"tables": _FLAG, "columns": _FLAG, "new_only": _NEW_ONLY},
            _descriptions,
        ),
        "external-targets": Builtin(
            "Tables are published to no catalog beyond the lake but those that are listed.",
            {
                "allow": {
                    "type": "array",
                    "items": {
                        "type": "string",
                        "pattern": f"^({_ALLOWED})$",
                        "patternErrorMessage": "write a host such as catalog.example.com or *.example.com, or "
                        "glue:…, directory:… or plugin:…",
                    },
                    "description": "Hosts of REST servers, and `glue:PLACE`, `directory:FOLDER`, `plugin:NAME`.",
                }
            },
            _external_targets,
        ),
    }
)
