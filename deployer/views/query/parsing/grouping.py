"""The parsing of GROUP BY: the keys of groups, and the states from which the aggregates of a query are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from deployer.platform.sql.one_expression import TOKEN
from deployer.views.query.parsing.clauses import ItemText
from deployer.views.query.parsing.scope import AggregateCall, Scope
from deployer.views.query.parsing.select import Select
from deployer.views.query.parsing.tokens import Token, text_of
from deployer.views.query.program import (
    GROUP,
    ROWS,
    Expression,
    GroupProgram,
    Key,
    Output,
    State,
    StateKind,
    estimate_of,
    quoted,
)

_WHOLE = pa.decimal128(38, 0)


@dataclass(slots=True)
class Grouping:
    """One SELECT with aggregates while it is read."""

    select: Select
    arguments: list[Output] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    values: dict[str, tuple[str, pa.DataType]] = field(default_factory=dict)  #: SQL and type, by aggregate
    written: list[tuple[tuple[str, ...], str]] = field(default_factory=list)  #: tokens of keys, and their columns

    @property
    def scope(self) -> Scope:
        return self.select.scope

    def program(self) -> tuple[GroupProgram, dict[str, pa.Field], dict[str, frozenset[str]]]:
        """Returns the program, the fields of the visible columns, and the flat columns that each is computed from."""
        items = self.select.items()
        keys, outputs = self._keys(items)
        self._state("rows", None, pa.int64())
        written = [self._item(item) for item in items]
        for each in self.scope.aggregates:
            self.values[each.output] = self._value(each)
        key_types = {each.name: each.type for each in keys}
        types = key_types | {name: kind for name, (_, kind) in self.values.items()}
        fields, visible = dict[str, pa.Field](), list[Output]()
        for item, value in zip(items, written, strict=True):
            name = str(item.name)
            found = self.scope.field_of(value, types)
            fields[name] = pa.field(name, found.type, self._may_be_null(value, found, outputs))
            visible.append(Output(name, self._final(value)))
        lineage = {str(item.name): self._read_by(value, outputs) for item, value in zip(items, written, strict=True)}
        keys = [replace(each, stored=self._stored(each.name, f"{GROUP}_{n}", visible)) for n, each in enumerate(keys)]
        single = not keys
        if single:
            keys = [Key("__g0", GROUP, pa.int8())]
            outputs = [Output("__g0", Expression("arrow_cast(0, 'Int8')"))]
        states = [
            replace(each, stored=self._stored(each.name, _hidden(each, number), visible))
            for number, each in enumerate(self.states)
        ]
        rows = self.select.rows([*outputs, *self.arguments], ())
        return GroupProgram(rows, tuple(keys), tuple(states), tuple(visible), single), fields, lineage

    def _keys(self, items: Sequence[ItemText]) -> tuple[list[Key], list[Output]]:
        keys, outputs = list[Key](), list[Output]()
        for number, part in enumerate(self.select.text.group):
            value = self.scope.expression(self._meant(part, items))
            kind = self.scope.field_of(value).type
            source = self._source_column(value)
            self.written.append((_words(value.sql), f"__g{number}"))
            if pa.types.is_dictionary(kind):
                value, kind, source = _decoded(value, kind), kind.value_type, ""
            if pa.types.is_floating(kind):
                raise self.scope.wrong(
                    f"`{text_of(part)}` in GROUP BY is of type {kind}, whose equal values may differ in the last digit",
                    "round it to a decimal: CAST(… AS DECIMAL(18, 3))",
                )
            if pa.types.is_nested(kind):
                raise self.scope.wrong(f"`{text_of(part)}` in GROUP BY is of type {kind}", "group by plain values")
            keys.append(Key(f"__g{number}", "", kind, source))
            outputs.append(Output(f"__g{number}", value))
        return keys, outputs

    def _meant(self, part: Sequence[Token], items: Sequence[ItemText]) -> Sequence[Token]:
        """Returns the tokens that an entry of GROUP BY stands for. The number or the name of a selected column stands
        for that column."""
        if len(part) != 1:
            return part
        [token] = part
        if token.kind == "number":
            if not token.text.isdigit() or not 0 < int(token.text) <= len(items):
                raise self.scope.wrong(f"there is no column {token.text} in SELECT", "group by names of columns")
            return items[int(token.text) - 1].tokens
        if any(token.name in each.types for each in self.scope.relations):
            return part
        named = [each for each in items if each.name == token.name]
        return named[0].tokens if named else part

    def _source_column(self, value: Expression) -> str:
        scan = self.scope.relations[0]
        [column] = value.columns if len(value.columns) == 1 else [""]
        own = column.removeprefix(f"{scan.alias}.")
        return own if own in scan.types and value.sql == quoted(scan.flat(own)) else ""

    def _item(self, item: ItemText) -> Expression:
        """Returns the expression of a selected column over the columns of keys and aggregates."""
        value = self.scope.expression(item.tokens, aggregates=True)
        sql = _with_names(value.sql, sorted(self.written, key=lambda each: -len(each[0])))
        names = {match[0][1:-1].replace('""', '"') for match in TOKEN.finditer(sql) if match.lastgroup == "name"}
        if left := sorted(names & (self.scope.types().keys())):
            column = self.scope.readable(quoted(left[0]))
            raise self.scope.wrong(
                f"the column {column!r} is neither in GROUP BY nor in an aggregate",
                f"add it to GROUP BY, or aggregate it: min({column})",
            )
        return Expression(sql, frozenset(names))

    def _read_by(self, value: Expression, keys: Sequence[Output]) -> frozenset[str]:
        found = set[str]()
        for key in keys:
            found |= key.value.columns if key.name in value.columns else frozenset()
        for each in self.scope.aggregates:
            if each.output in value.columns and each.argument is not None:
                found |= each.argument.columns
        return frozenset(found)

    def _may_be_null(self, value: Expression, found: pa.Field, keys: Sequence[Output]) -> bool:
        for key in keys:
            if value.sql == quoted(key.name):
                return bool(self.scope.field_of(key.value).nullable)
        counts = {each.output for each in self.scope.aggregates if each.function in ("count", "approx_distinct")}
        return not (value.sql in {quoted(each) for each in counts} or not found.nullable)

    def _final(self, value: Expression) -> Expression:
        """Returns the expression with its aggregates replaced by expressions over the columns of states."""
        sql = value.sql
        for name, (text, _) in self.values.items():
            sql = text if sql == quoted(name) else sql.replace(quoted(name), f"({text})")
        names = {match[0][1:-1] for match in TOKEN.finditer(sql) if match.lastgroup == "name"}
        return Expression(sql, frozenset(names))

    def _stored(self, name: str, hidden: str, visible: Sequence[Output]) -> str:
        """Returns the visible column with the same value, or the hidden column where there is none."""
        for each in visible:
            if each.value.sql == quoted(name):
                return each.name
        return hidden

    def _state(self, kind: StateKind, value: Expression | None, state_type: pa.DataType, counted: str = "") -> str:
        argument = ""
        if value is not None:
            same = [each.name for each in self.arguments if each.value == value]
            argument = same[0] if same else f"__x{len(self.arguments)}"
            if not same:
                self.arguments.append(Output(argument, value))
        for each in self.states:
            if (each.kind, each.argument, each.type) == (kind, argument, state_type):
                return each.name
        name = f"__s{len(self.states)}"
        self.states.append(State(name, kind, argument, state_type, "", counted))
        return name

    def _value(self, call: AggregateCall) -> tuple[str, pa.DataType]:
        """Returns the SQL of an aggregate over its states, and its type."""
        value = call.argument
        if value is None:
            return quoted(self._state("rows", None, pa.int64())), pa.int64()
        kind = self.scope.field_of(value).type
        if pa.types.is_dictionary(kind):
            value, kind = _decoded(value, kind), kind.value_type
        match call.function:
            case "count":
                return quoted(self._count(value)), pa.int64()
            case "sum" | "avg":
                return self._sum(call.function, value, kind)
            case "min" | "max":
                return self._extreme("min" if call.function == "min" else "max", value, kind)
            case _:
                return self._distinct(value, kind)

    def _count(self, value: Expression) -> str:
        if not self.scope.field_of(value).nullable:
            return self._state("rows", None, pa.int64())
        given = Expression(f"CASE WHEN ({value.sql}) IS NOT NULL THEN true END", value.columns)
        return self._state("count", given, pa.int64())

    def _sum(self, function: str, value: Expression, kind: pa.DataType) -> tuple[str, pa.DataType]:
        count = self._count(value)
        if pa.types.is_floating(kind):
            state = self._state("float sum", _cast(value, "Float64"), pa.float64(), count)
            if function == "avg":
                return f"{quoted(state)} / nullif({quoted(count)}, 0)", pa.float64()
            return quoted(state), pa.float64()
        if pa.types.is_integer(kind):
            small = kind.bit_width < 64
            sum_type = pa.int64() if small else _WHOLE
            given = _cast(value, "Int64" if small else "Decimal128(38, 0)")
            state = self._state("sum", given, sum_type, count)
            if function == "avg":
                return f"CAST({quoted(state)} AS DOUBLE) / nullif({quoted(count)}, 0)", pa.float64()
            signed = pa.types.is_signed_integer(kind)
            if small and signed:
                return quoted(state), pa.int64()
            return f"arrow_cast({quoted(state)}, '{'Int64' if signed else 'UInt64'}')", (
                pa.int64() if signed else pa.uint64()
            )
        if pa.types.is_decimal128(kind):
            widest = f"Decimal128(38, {kind.scale})"
            state = self._state("sum", _cast(value, widest), pa.decimal128(38, kind.scale), count)
            if function == "avg":
                precision, scale = min(38, kind.precision + 4), min(38, kind.scale + 4)
                mean = f"{quoted(state)} / CAST(nullif({quoted(count)}, 0) AS DECIMAL(20, 0))"
                return f"arrow_cast({mean}, 'Decimal128({precision}, {scale})')", pa.decimal128(precision, scale)
            precision = min(38, kind.precision + 10)
            if precision == 38:
                return quoted(state), pa.decimal128(38, kind.scale)
            return f"arrow_cast({quoted(state)}, 'Decimal128({precision}, {kind.scale})')", pa.decimal128(
                precision, kind.scale
            )
        raise self.scope.wrong(
            f"{function} of `{self.scope.readable(value.sql)}`, which is of type {kind}", f"give numbers to {function}"
        )

    def _extreme(self, kind: StateKind, value: Expression, of: pa.DataType) -> tuple[str, pa.DataType]:
        if pa.types.is_nested(of) or pa.types.is_null(of) or isinstance(of, pa.BaseExtensionType):
            raise self.scope.wrong(
                f"{kind} of `{self.scope.readable(value.sql)}`, which is of type {of}", "give plain values"
            )
        if not pa.types.is_floating(of):
            return quoted(self._state(kind, value, of)), of
        # NaN is greater than all other numbers. In DataFusion, its order would depend on the order of the rows.
        sql = value.sql
        state = self._state(kind, Expression(f"CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END", value.columns), of)
        nans = self._state("count", Expression(f"CASE WHEN isnan({sql}) THEN true END", value.columns), pa.int64())
        nan = f"arrow_cast('NaN', '{_ARROW_FLOATS[of]}')"
        if kind == "min":
            return f"CASE WHEN {quoted(state)} IS NULL AND {quoted(nans)} > 0 THEN {nan} ELSE {quoted(state)} END", of
        return f"CASE WHEN {quoted(nans)} > 0 THEN {nan} ELSE {quoted(state)} END", of

    def _distinct(self, value: Expression, kind: pa.DataType) -> tuple[str, pa.DataType]:
        if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise self.scope.wrong(
                f"approx_distinct of `{self.scope.readable(value.sql)}`, which is of type {kind}", "give plain values"
            )
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
            value = Expression(f"encode({value.sql}, 'hex')", value.columns)
        elif pa.types.is_floating(kind):
            value = Expression(f"CAST({value.sql} + 0.0 AS VARCHAR)", value.columns)
        elif pa.types.is_integer(kind) and kind != pa.uint64():
            value = Expression(f"CAST({value.sql} AS BIGINT)", value.columns)
        else:
            value = Expression(f"CAST({value.sql} AS VARCHAR)", value.columns)
        state = self._state("sketch", value, pa.binary())
        return quoted(estimate_of(state)), pa.int64()


def _hidden(state: State, number: int) -> str:
    return ROWS if state.kind == "rows" else f"__{state.kind.replace(' ', '_')}_{number}"


_ARROW_FLOATS = {pa.float16(): "Float16", pa.float32(): "Float32", pa.float64(): "Float64"}


def _cast(value: Expression, kind: str) -> Expression:
    return Expression(f"arrow_cast({value.sql}, '{kind}')", value.columns)


def _decoded(value: Expression, kind: pa.DataType) -> Expression:
    names = {pa.string(): "Utf8", pa.large_string(): "LargeUtf8", pa.binary(): "Binary"}
    name = names.get(kind.value_type, str(kind.value_type).capitalize())
    return _cast(value, name)


def _words(sql: str) -> tuple[str, ...]:
    """Returns the tokens of an expression without blanks, with words in small letters."""
    found = ((match.lastgroup, match[0]) for match in TOKEN.finditer(sql))
    return tuple(text.lower() if kind == "word" else text for kind, text in found if kind != "blank")


def _with_names(sql: str, patterns: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """Returns the expression with the given parts replaced by names.

    A part with operators is replaced only where it stands alone, between brackets or commas: `a + b` is not a part of
    `a + b * 2`.
    """
    matches = [match for match in TOKEN.finditer(sql) if match.lastgroup != "blank"]
    words = [match[0].lower() if match.lastgroup == "word" else match[0] for match in matches]
    parts, place, copied = list[str](), 0, 0
    while place < len(words):
        for pattern, name in patterns:
            stop = place + len(pattern)
            before = words[place - 1] if place else ""
            after = words[stop] if stop < len(words) else ""
            alone = before in ("", "(", ",") and after in ("", ")", ",")
            if tuple(words[place:stop]) == pattern and (alone or _is_unit(pattern)) and before != ".":
                parts += [sql[copied : matches[place].start()], quoted(name)]
                copied, place = matches[stop - 1].end(), stop
                break
        else:
            place += 1
    return "".join((*parts, sql[copied:]))


def _is_unit(words: Sequence[str]) -> bool:
    """Returns whether a part is a single name, or a single call of a function."""
    if len(words) == 1:
        return True
    if words[1] != "(" or words[-1] != ")":
        return False
    depth = 0
    for place, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if word == ")" and not depth:
            return place == len(words) - 1
    return False
