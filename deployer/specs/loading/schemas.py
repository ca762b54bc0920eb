"""Reusable schemas: the columns of each, after checks of references, cycles and repeated names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from deployer.errors import Position, Problem
from deployer.specs.declarations.columns import DeclaredColumn, read_columns
from deployer.specs.rules import Rule
from deployer.specs.sources.files import Document
from deployer.specs.types.column_names import alike, name_fault
from deployer.specs.types.lance_support import type_findings
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest, reference_remedy


@dataclass(slots=True)
class ComposedColumns:
    """Columns in order. `complete` is false when some are unknown, so that a missing name may still exist.

    `invalid` are the names of columns with problems; None where these names are unknown.
    """

    columns: tuple[DeclaredColumn, ...]
    complete: bool
    invalid: frozenset[str] | None

    def lacks(self, name: str) -> bool:
        """Returns whether no column has that name, including columns with problems."""
        names = {declared.column.name for declared in self.columns}
        return self.invalid is not None and name not in names | self.invalid


@dataclass(slots=True)
class Schemas:
    """The declared schemas by name; `compose` resolves references to them."""

    documents: Mapping[str, Document]
    incomplete: bool  #: whether unread files or documents may declare schemas
    problems: list[Problem]
    resolved: dict[str, ComposedColumns] = field(default_factory=dict)

    def compose(self, document: Document, name: str, chain: tuple[str, ...] = ()) -> ComposedColumns:
        """Returns the columns of a Table or Schema document: those of its `schemas` first, then its own."""
        complete = not document.invalid & {"schemas", "columns"}
        invalid: frozenset[str] | None = None if "schemas" in document.invalid else frozenset()
        parts: list[tuple[str | None, Position | None, Iterable[DeclaredColumn]]] = []
        used: set[str] = set()
        for reference in _items(document.get("schemas")):
            target = str(reference.value)
            if target in used:
                what = f"schema `{target}` is already used by {name}"
                self.problems.append(Problem(reference.at, what, "remove the second one", Rule.REPEATED_SCHEMA))
                continue
            used.add(target)
            composed = self._refer(target, reference, chain)
            complete = complete and composed.complete
            invalid = None if invalid is None or composed.invalid is None else invalid | composed.invalid
            parts.append((target, reference.at, composed.columns))
        valid = _items(document.valid("columns"))
        own = read_columns(valid)
        for declared in own:
            self._check_own(declared)
        parts.append((None, None, own))
        joined = self._joined(parts, name)
        if "columns" in document.invalid:
            others = _others(document.node, valid)
            named = None if others is None else _names(others)
            invalid = None if invalid is None or named is None else invalid | named
            self._check_others(others or (), joined, name)
        return ComposedColumns(joined, complete, invalid)

    def _refer(self, target: str, reference: Node, chain: tuple[str, ...]) -> ComposedColumns:
        document = self.documents.get(target)
        if document is None:
            names = tuple(self.documents)
            if not self.incomplete or nearest(target, names):
                remedy = reference_remedy(target, names, f"declare it: `kind: Schema` with `name: {target}`")
                self.problems.append(Problem(reference.at, f"unknown schema `{target}`", remedy, Rule.UNKNOWN_SCHEMA))
            return ComposedColumns((), False, None)
        if target in chain:
            cycle = " → ".join((*chain[chain.index(target) :], target))
            what = f"schemas form a cycle: {cycle}"
            self.problems.append(Problem(reference.at, what, "remove one of the references", Rule.SCHEMA_CYCLE))
            return ComposedColumns((), False, None)
        return self.of(target, chain)

    def of(self, name: str, chain: tuple[str, ...] = ()) -> ComposedColumns:
        """Returns the columns of a schema; its problems are reported once, even if many tables use it."""
        if name not in self.resolved:
            self.resolved[name] = self.compose(self.documents[name], f"schema `{name}`", (*chain, name))
        return self.resolved[name]

    def _check_own(self, declared: DeclaredColumn) -> None:
        column = declared.column
        if fault := name_fault(column.name):
            self.problems.append(Problem(declared.at, fault.what, fault.remedy, fault.rule))
        for finding in type_findings(column):
            self.problems.append(Problem(declared.type_at, finding.what, finding.remedy, finding.rule))

    def _check_others(self, others: Sequence[Node], joined: Sequence[DeclaredColumn], table: str) -> None:
        """Reports columns with problems whose names another column has too."""
        first = {declared.column.name.lower(): (declared.column.name, declared.at) for declared in joined}
        for node in others:
            name = _name(node)
            if name is None:
                continue
            there, at = first.setdefault(name.lower(), (name, node.at))
            if at != node.at:
                what = f"column `{name}` " + _same(name, there, table, at)
                self.problems.append(Problem(node.at, what, _RENAME, Rule.DUPLICATE_COLUMN))

    def _joined(
        self, parts: Sequence[tuple[str | None, Position | None, Iterable[DeclaredColumn]]], name: str
    ) -> tuple[DeclaredColumn, ...]:
        columns: dict[str, tuple[DeclaredColumn, str | None]] = {}
        for schema, reference, part in parts:
            for declared in part:
                own = (declared, schema)
                first = columns.setdefault(alike(declared.column.name), own)
                if first is own:
                    continue
                at = reference or declared.at
                self.problems.append(
                    Problem(at, _clash(declared, schema, *first, name), _RENAME, Rule.DUPLICATE_COLUMN)
                )
        return tuple(declared for declared, _ in columns.values())


def _others(document: Node, valid: Sequence[Node]) -> Sequence[Node] | None:
    """Returns the document's columns that have problems; None if `columns` is not a list."""
    columns = document.value.get("columns") if isinstance(document.value, dict) else None
    if columns is None or not isinstance(columns.value, list):
        return None
    known = {id(node) for node in valid}
    return [node for node in columns.value if id(node) not in known]


def _name(column: Node) -> str | None:
    name = column.value.get("name") if isinstance(column.value, dict) else None
    return name.value if name is not None and isinstance(name.value, str) else None


def _names(columns: Sequence[Node]) -> frozenset[str] | None:
    """Returns the names of columns with problems; None where one has no name."""
    names = [name for column in columns if (name := _name(column)) is not None]
    return frozenset(names) if len(names) == len(columns) else None


_RENAME = "rename or remove one of them"


def _clash(
    second: DeclaredColumn, schema: str | None, first: DeclaredColumn, first_schema: str | None, name: str
) -> str:
    here, there = second.column.name, first.column.name
    origin = f"schema `{first_schema}`" if first_schema else name
    what = f"column `{here}`" + (f" of schema `{schema}`" if schema else "")
    return f"{what} {_same(here, there, origin, first.at)}"


def _same(here: str, there: str, origin: str, at: Position) -> str:
    if here == there:
        return f"is already in {origin} ({at})"
    how = "differs only in case from" if here.lower() == there.lower() else "looks the same as"
    return f"{how} `{there}` in {origin} ({at})"


def _items(node: Node | None) -> Sequence[Node]:
    return node.value if node is not None and isinstance(node.value, list) else ()
