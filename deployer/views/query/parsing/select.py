"""The check of one SELECT of a query: the tables that it reads, the joins with small tables, and its expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import Blob
from deployer.specs.types.view import HIDDEN
from deployer.views.query.model import ROW_ID, SourceSchema
from deployer.views.query.parsing.clauses import ItemText, JoinText, SelectText, TableText, UnnestText
from deployer.views.query.parsing.scope import Relation, Scope
from deployer.views.query.parsing.tokens import Token, closing, has_word, split, text_of
from deployer.views.query.program import Expression, Identity, Lookup, Output, Rows, Scan, Unnest, quoted

SourceSchemas = Callable[[str], SourceSchema]


@dataclass(slots=True)
class Select:
    """One SELECT while it is checked. `schemas` returns the schema of a table by its full name."""

    text: SelectText
    scope: Scope
    schemas: SourceSchemas
    tables: list[tuple[TableText, SourceSchema]] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)
    unnest: Unnest | None = None

    def read_sources(self) -> None:
        """Reads FROM, JOIN, UNNEST and WHERE. Raises InvalidInput for errors in these clauses."""
        self._add_table(self.text.table, is_left=False)
        for join in self.text.joins:
            self._add_table(join.table, is_left=join.kind == "left")
            self._look_up(join)
        if self.text.unnest is not None:
            self.unnest = self._unnested(self.text.unnest)
        if self.text.where:
            for part in conjuncts(self.text.where):
                condition = self.scope.expression(part)
                self.check_condition(condition, "WHERE")
                self.conditions.append(condition)

    def check_condition(self, condition: Expression, clause: str) -> None:
        """Raises InvalidInput for a condition that is not of type boolean."""
        kind = self.scope.field_of(condition).type
        if not pa.types.is_boolean(kind):
            text = self.scope.readable(condition.sql)
            raise self.scope.wrong(f"`{text}` in {clause} is of type {kind}", "give a condition")

    def items(self, *, named: bool = True) -> list[ItemText]:
        """Returns the selected columns, with `*` expanded. `named` says that each needs a name. Raises InvalidInput for
        a column without a name, for repeated names and for names that begin like hidden columns."""
        found = list[ItemText]()
        for item in self.text.items:
            if item.tokens[-1].text == "*" and len(item.tokens) in (1, 3, 5) and item.name is None:
                found += self._all_of(item.tokens)
            else:
                found.append(self._named(item) if named else item)
        if not named:
            return found
        names = [str(each.name) for each in found]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise self.scope.wrong(f"two columns have the name {name!r}", f"name one: AS {name}_2")
            if name.startswith(HIDDEN):
                raise self.scope.wrong(
                    f"the column {name!r} begins with {HIDDEN!r}, as hidden columns do", "give it another name by AS"
                )
        return found

    def rows(self, outputs: Sequence[Output], identity: Sequence[Output]) -> Rows:
        """Returns the SELECT with these outputs."""
        used = {column for each in (*outputs, *identity, *self._all_values()) for column in each.value.columns}
        scans = [
            Scan(
                table.alias,
                schema.table,
                tuple(
                    name
                    for name in (*schema.schema.names, ROW_ID)
                    if f"{table.alias}.{name}" in used or (place and self._is_key(self.lookups[place - 1], name))
                ),
            )
            for place, (table, schema) in enumerate(self.tables)
        ]
        self._refuse_blobs(scans)
        lookups = tuple(
            Lookup(scan, each.kind, each.keys, each.driver, each.condition)
            for scan, each in zip(scans[1:], self.lookups, strict=True)
        )
        types = {**self.scope.types(), f"{scans[0].alias}.{ROW_ID}": pa.uint64()}
        return Rows(
            scan=scans[0],
            lookups=lookups,
            calls=tuple(self.scope.calls),
            unnest=self.unnest,
            conditions=tuple(self.conditions),
            outputs=tuple(outputs),
            source=self.source_identity(),
            identity=tuple(identity),
            types=types,
        )

    def source_identity(self) -> Identity:
        """Returns the columns that identify a row of the first table; no columns where nothing identifies it."""
        schema = self.tables[0][1]
        if schema.row_keys and (schema.unique or not schema.stable_row_ids):
            return Identity(schema.row_keys, schema.unique)
        return Identity((ROW_ID,), unique=True) if schema.stable_row_ids else Identity()

    def _all_values(self) -> list[Output]:
        values = [*self.conditions, *(argument for call in self.scope.calls for argument in call.arguments)]
        values += [value for each in self.lookups for value, _ in each.keys]
        values += [self.unnest.value] if self.unnest is not None else []
        return [Output("", each) for each in values]

    def _is_key(self, lookup: Lookup, name: str) -> bool:
        in_condition = quoted(lookup.scan.flat(name)) in lookup.condition
        return in_condition or any(column == name for _, column in lookup.keys)

    def _add_table(self, table: TableText, *, is_left: bool) -> None:
        if len(table.path) != 2:
            raise self.scope.wrong(
                f"`{'.'.join(table.path)}` is not the full name of a table", "name its database too: database.table"
            )
        if "." in table.alias or table.alias.startswith(HIDDEN):
            raise self.scope.wrong(f"a table cannot have the name {table.alias!r}", "name it by AS")
        if any(each.alias == table.alias for each in self.scope.relations):
            raise self.scope.wrong(f"two tables have the name {table.alias!r}", "name one of them by AS")
        schema = self.schemas(".".join(table.path))
        types = {each.name: each.type for each in schema.schema}
        required = frozenset(each.name for each in schema.schema if not each.nullable and not is_left)
        self.tables.append((table, schema))
        self.scope.relations.append(Relation(table.alias, table.path, types, required))

    def _look_up(self, join: JoinText) -> None:
        table, schema = self.tables[-1]
        keys, own, drivers = dict[str, Expression](), list[str](), set[str]()
        for part in conjuncts(join.on):
            pair = self._key_pair(part, table.alias)
            if pair is not None:
                keys[pair[1]] = pair[0]
                drivers |= self._aliases(pair[0])
                self.scope.field_of(pair[0])
                continue
            condition = self.scope.expression(part)
            if self._aliases(condition) != {table.alias} or condition.columns & {c.output for c in self.scope.calls}:
                self.scope.rejections.add(
                    f"a join on `{text_of(part)}`", part[0], f"compare the row keys of {schema.table} by ="
                )
                return self._placeholder(join)
            self.check_condition(condition, "ON")
            own.append(f"({condition.sql})")
        by_key = bool(schema.row_keys) and schema.unique and set(keys) >= set(schema.row_keys)
        if not by_key or set(keys) != set(schema.row_keys):
            named = ", ".join(schema.row_keys) if schema.row_keys and schema.unique else ""
            remedy = (
                f"compare all of its row keys ({named}) and nothing else of it; "
                if named
                else f"give {schema.table} row_keys with `unique: true`; "
            )
            what = f"a join with {schema.table} that is not by its unique row keys"
            self.scope.rejections.add(what, join.table.at, remedy + "name the table whose rows all come first")
            return self._placeholder(join)
        if len(drivers) != 1 or any(
            each.output in value.columns for value in keys.values() for each in self.scope.calls
        ):
            self.scope.rejections.add(
                f"a join with {schema.table} on values of several tables or functions",
                join.table.at,
                "compare its row keys with columns of one table before it",
            )
            return self._placeholder(join)
        pairs = tuple((keys[name], name) for name in schema.row_keys)
        scan = Scan(table.alias, schema.table, ())
        self.lookups.append(Lookup(scan, join.kind, pairs, drivers.pop(), " AND ".join(own)))
        return None

    def _placeholder(self, join: JoinText) -> None:
        """Adds an empty lookup in place of a rejected join, so that the rest of the query can be checked."""
        self.lookups.append(Lookup(Scan(join.table.alias, "", ()), join.kind, (), ""))

    def _key_pair(self, part: Sequence[Token], alias: str) -> tuple[Expression, str] | None:
        """Returns the value and the own column of `value = table.column`, in either order; None for another
        condition."""
        places = [
            place
            for place, token in enumerate(part)
            if token.text == "=" and token.depth == part[0].depth and not _is_longer_operator(part, place)
        ]
        if len(places) != 1 or has_word(part, "or"):
            return None
        sides = [self.scope.expression(part[: places[0]]), self.scope.expression(part[places[0] + 1 :])]
        for value, own in (sides, sides[::-1]):
            [column] = own.columns if len(own.columns) == 1 else [""]
            is_own = column.startswith(f"{alias}.") and own.sql == quoted(column)
            if is_own and alias not in self._aliases(value) and value.columns:
                return value, column.removeprefix(f"{alias}.")
        return None

    def _aliases(self, value: Expression) -> set[str]:
        return {each.alias for each in self.scope.relations for name in each.types if each.flat(name) in value.columns}

    def _unnested(self, text: UnnestText) -> Unnest:
        value = self.scope.expression(text.value)
        kind = self.scope.field_of(value).type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise self.scope.wrong(
                f"`{text_of(text.value)}` in UNNEST is of type {kind}", "give a list, or a function that returns one"
            )
        item = kind.value_type
        fields = [(each.name, each.type) for each in item] if pa.types.is_struct(item) else [(None, item)]
        own = [name or text.alias for name, _ in fields]
        own += ["ordinality"] if text.ordinality else []
        if len(text.columns) > len(own):
            raise self.scope.wrong(
                f"UNNEST has {len(own)} columns, and {len(text.columns)} names are given", "give a name for each"
            )
        names = (*text.columns, *own[len(text.columns) :])
        if any(each.alias == text.alias for each in self.scope.relations) or len(set(names)) != len(names):
            raise self.scope.wrong(f"the names of UNNEST {text.alias!r} repeat others", "give other names")
        kinds = [each for _, each in fields] + ([pa.int64()] if text.ordinality else [])
        relation = Relation(text.alias, (text.alias,), dict(zip(names, kinds, strict=True)))
        self.scope.relations.append(relation)
        pairs = tuple((relation.flat(name), part) for name, (part, _) in zip(names, fields, strict=False))
        return Unnest(value, pairs, relation.flat(names[-1]) if text.ordinality else "")

    def _all_of(self, tokens: Sequence[Token]) -> list[ItemText]:
        path = tuple(str(each.name) for each in tokens[:-1] if each.text != ".")
        chosen = [
            each
            for each in self.scope.relations
            if not path or path == (each.alias,) or (path == each.path and each.alias == each.path[-1])
        ]
        if not chosen:
            aliases = ", ".join(each.alias for each in self.scope.relations)
            raise self.scope.wrong(f"there is no table {'.'.join(path)!r} in the query", f"its tables are {aliases}")
        at = tokens[0].at
        return [
            ItemText([_name(each.alias, at), Token("operator", ".", at, 0), _name(column, at)], column)
            for each in chosen
            for column in each.types
        ]

    def _named(self, item: ItemText) -> ItemText:
        if item.name is not None:
            return item
        *path, last = item.tokens
        dotted = all(each.text == "." for each in path[1::2]) and all(each.name is not None for each in path[::2])
        if last.name is None or len(path) % 2 or not dotted:
            text = text_of(item.tokens)
            raise self.scope.wrong(f"the column `{text}` has no name", f"name it: {text} AS name")
        return ItemText(item.tokens, last.name)

    def _refuse_blobs(self, scans: Sequence[Scan]) -> None:
        for scan, (_, schema) in zip(scans, self.tables, strict=True):
            blobs = {each.name for each in columns_of(schema.schema) if isinstance(each.type, Blob)}
            if used := [name for name in scan.columns if name in blobs]:
                raise InvalidInput(
                    f"the column {used[0]!r} of {scan.table} is a blob, which views do not have",
                    where=self.scope.where,
                    remedy="leave it out, and read it from the source by the row's key",
                )


def conjuncts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Returns the conditions that AND joins. Returns one condition where OR is outside of all brackets."""
    while tokens and tokens[0].text == "(" and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    if has_word(tokens, "or"):
        return [list(tokens)]
    parts = list(split(tokens, "and"))
    return [list(tokens)] if len(parts) == 1 else [each for part in parts for each in conjuncts(part)]


def _is_longer_operator(tokens: Sequence[Token], place: int) -> bool:
    """Returns whether `=` belongs to `<=`, `>=`, `!=`, `==` or `~=`."""
    before = tokens[place - 1] if place else None
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    return any(
        each is not None and each.kind == "operator" and each.text in "<>!=~" and abs(each.at - tokens[place].at) == 1
        for each in (before, after)
    )


def _name(name: str, at: int) -> Token:
    return Token("name", quoted(name), at, 0)
