"""The rows that a rule reads: one for each planned change, each declared resource and each declared column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.errors import Position


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation that a rule found. `column` is a dotted path. `at` is the line of the specs that caused the
    violation."""

    address: str
    message: str
    column: str = ""
    at: Position | None = None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change of the plan. `change` is its kind in docs/changes.md, such as `DropColumn`.

    `rows` and `bytes` count the rewritten or destroyed data; `sizes_known` is False in `preview --against`. `before`
    and `after` are texts: a name, a type, keys with commas between them, else JSON. For a dropped column, `added_at`
    (UTC) is the time when it was added, None where the time is unknown. `tags` are the declared tags of the table, or
    the live tags where it is not declared. `sends_to` are the catalogs outside the lake to which the change begins to
    publish: hosts, or `KIND:PLACE`.
    """

    address: str
    kind: str  #: `table`, `dataset` or `instance`
    database: str
    name: str
    action: str  #: the action on the resource: `create`, `update` or `delete`
    change: str
    risk: str  #: `safe`, `rewrites`, `external` or `destroys`
    summary: str
    column: str = ""
    before: str | None = None
    after: str | None = None
    rows: int = 0
    bytes: int = 0
    sizes_known: bool = True
    added_at: dt.datetime | None = None
    added_at_is_bound: bool = False  #: the column was added at `added_at` or earlier; the exact time is not kept
    refused: str | None = None
    sends_to: tuple[str, ...] = ()
    token_variables: tuple[str, ...] = ()  #: variables whose tokens are sent to these catalogs
    tags: Mapping[str, str] = field(default_factory=dict)
    at: Position | None = None

    def violation(self, message: str) -> Finding:
        """Returns a finding that this change violates the rule. `message` says why."""
        return Finding(self.address, message, self.column, self.at)


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One declared instance, table or dataset, whether the plan changes it or not. `is_new`: the plan creates or
    renames the resource."""

    address: str
    kind: str  #: `table`, `dataset` or `instance`
    database: str
    name: str
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    row_keys: tuple[str, ...] = ()
    sort_keys: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()  #: names of indexes; for a dataset, the columns of its search indexes
    leaves: int = 1  #: the declared number of leaves
    online: bool = True
    deletion_protection: bool = True
    action: str = "same"  #: `unreadable` for a table that cannot be read
    is_new: bool = False
    rows: int = 0
    bytes: int = 0
    at: Position | None = None

    def violation(self, message: str) -> Finding:
        """Returns a finding that this resource violates the rule. `message` says why."""
        return Finding(self.address, message, "", self.at)


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """One declared column, or a nested field of a column. `is_new`: the plan adds or renames the column."""

    address: str
    database: str
    table: str
    column: str  #: dotted path
    type: str
    nullable: bool = True
    description: str = ""
    default: str = ""
    is_row_key: bool = False
    is_sort_key: bool = False
    is_new: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)  #: the tags of the table
    at: Position | None = None

    def violation(self, message: str) -> Finding:
        """Returns a finding that this column violates the rule. `message` says why."""
        return Finding(self.address, message, self.column, self.at)


@dataclass(frozen=True, slots=True)
class PlanView:
    """The plan of one stack, in the form for rules.

    `now` (UTC) is the time when the plan was made. `is_live` is False in `preview --against`. `unreadable` has the
    tables that cannot be read, by address, with the reason; the plan has no changes of these tables.
    """

    stack: str
    instance: str
    changes: tuple[ChangeRow, ...]
    resources: tuple[ResourceRow, ...]
    columns: tuple[ColumnRow, ...]
    now: dt.datetime
    is_live: bool = True
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[ResourceRow, ...]:
        """The declared tables."""
        return tuple(resource for resource in self.resources if resource.kind == "table")
