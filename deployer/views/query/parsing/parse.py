"""Parses, checks and types the query of a view. Rejects a query that cannot be maintained, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.sql.one_expression import TOKEN
from deployer.tables.read.zoned_literals import with_instants
from deployer.views.query.model import ROW_ID, ChangeKind, FunctionSignature, ViewQuery, ViewSource
from deployer.views.query.parsing.clauses import SelectText, split_query
from deployer.views.query.parsing.grouping import Grouping
from deployer.views.query.parsing.rejections import AGGREGATES, Rejections, reject_constructs
from deployer.views.query.parsing.scope import Scope
from deployer.views.query.parsing.select import Select, SourceSchemas
from deployer.views.query.parsing.tokens import Token, text_of, tokenize
from deployer.views.query.program import BRANCH, Expression, Identity, Output, RowProgram, Rows, quoted

#: Hidden columns that identify rows: the row id of the source, and the columns of its row keys (a prefix).
SOURCE_ROW_ID, SOURCE_KEY = "__source_row_id", "__source_key_"

_WORDS_OF_LANCE = frozenset(
    (
        *("and", "or", "not", "in", "is", "null", "true", "false", "like", "between", "distinct", "from", "date"),
        *("timestamp", "arrow_cast"),
    )
)


def parse_view(
    query: str,
    source_schema: SourceSchemas,
    functions: Mapping[str, FunctionSignature] | None = None,
    where: str = "query",
) -> ViewQuery:
    """Returns the query of a view. `functions` has the functions that it may call, by their names in small letters;
    `where` is the place that errors name.

    Raises InvalidInput for constructs that cannot be maintained from changes; the error names all of them and lists
    what can be used. Raises InvalidInput for columns that do not exist, with the nearest existing name, and the errors
    of `source_schema` for a table that does not exist.
    """
    known = dict(functions or {})
    tokens = tokenize(with_instants(query), where)
    rejections = Rejections(where)
    reject_constructs(tokens, known, rejections)
    selects = list[Select]()
    for part in split_query(tokens, rejections):
        select = Select(part, Scope(where, known, rejections), source_schema)
        select.read_sources()
        selects.append(select)
    for select in selects:
        if _is_grouped(select.text, known) and len(selects) > 1:
            at = select.text.table.at
            rejections.add("GROUP BY in a part of UNION ALL", at, "group in a view of its own")
    rejections.raise_any()
    text, grouped = text_of(tokens), _is_grouped(selects[0].text, known)
    found = _group_view(text, selects[0]) if grouped else _row_view(text, selects, where)
    rejections.raise_any()
    return found


def _is_grouped(text: SelectText, functions: Mapping[str, FunctionSignature]) -> bool:
    return bool(text.group) or any(_has_aggregate(item.tokens, functions) for item in text.items)


def _has_aggregate(tokens: Sequence[Token], functions: Mapping[str, FunctionSignature]) -> bool:
    return any(
        token.word in AGGREGATES and token.word not in functions and after.text == "("
        for token, after in pairwise(tokens)
    )


def _group_view(text: str, select: Select) -> ViewQuery:
    program, fields, lineage = Grouping(select).program()
    visible = pa.schema(list(fields.values()))
    hidden = [pa.field(each.stored, each.type) for each in program.keys if each.stored not in fields]
    hidden += [pa.field(each.stored, each.type) for each in program.states if each.stored not in fields]
    identity = tuple(each.stored for each in program.keys)
    usable = all(name in fields and not fields[name].nullable for name in identity)
    return ViewQuery(
        text=text,
        sources=_sources([program.rows]),
        schema=visible,
        stored_schema=pa.schema([*visible, *hidden]),
        identity=identity,
        default_keys=identity if usable else (),
        unique_keys=usable,
        lineage={name: _sources_of(columns, program.rows) for name, columns in lineage.items()},
        full_refresh={},
        functions=tuple(sorted({each.function for each in program.rows.calls})),
        program=program,
    )


def _row_view(text: str, selects: Sequence[Select], where: str) -> ViewQuery:
    outputs = list[list[Output]]()
    for number, select in enumerate(selects):
        items = select.items(named=not number)
        outputs.append([Output(str(each.name), select.scope.expression(each.tokens)) for each in items])
    visible = _common_schema(selects, outputs, where)
    outputs = [_renamed(each, visible.names) for each in outputs]
    if len(selects) == 1:
        identity = _own_identity(selects[0], outputs[0])
        hidden = [
            pa.field(each.name, _identity_type(selects[0], column))
            for each, column in zip(identity, selects[0].source_identity().columns, strict=True)
            if each.name not in visible.names
        ]
        identities = [identity]
    else:
        hidden, identities = _union_identity(selects)
    branches = tuple(
        select.rows([*columns, *(each for each in identity if each.name not in visible.names)], identity)
        for select, columns, identity in zip(selects, outputs, identities, strict=True)
    )
    names = tuple(each.name for each in identities[0])
    keys, unique = _default_keys(selects, outputs, names, visible)
    return ViewQuery(
        text=text,
        sources=_sources(branches),
        schema=visible,
        stored_schema=pa.schema([*visible, *hidden]),
        identity=names,
        default_keys=keys,
        unique_keys=unique,
        lineage=_lineage(branches, visible.names),
        full_refresh=_full_refresh(branches),
        functions=tuple(sorted({call.function for each in branches for call in each.calls})),
        program=RowProgram(branches),
    )


def _common_schema(selects: Sequence[Select], outputs: Sequence[Sequence[Output]], where: str) -> pa.Schema:
    """Returns the visible columns. UNION ALL has the column names of its first part. Raises InvalidInput where the
    parts differ in the number or types of their columns."""
    schemas = [
        [select.scope.field_of(each.value).with_name(each.name) for each in columns]
        for select, columns in zip(selects, outputs, strict=True)
    ]
    first = schemas[0]
    for number, schema in enumerate(schemas[1:], 2):
        if len(schema) != len(first):
            raise InvalidInput(
                f"part {number} of UNION ALL has {len(schema)} columns, and part 1 has {len(first)}",
                where=where,
                remedy="select as many columns in each part, in one order",
            )
        for place, (one, other) in enumerate(zip(first, schema, strict=True)):
            if one.type != other.type:
                raise InvalidInput(
                    f"column {one.name!r} of UNION ALL is {one.type} in part 1, and {other.type} in part {number}",
                    where=where,
                    remedy="convert one: CAST(… AS …)",
                )
            first[place] = one.with_nullable(one.nullable or other.nullable)
    return pa.schema(first)


def _renamed(outputs: Sequence[Output], names: Sequence[str]) -> list[Output]:
    return [Output(name, each.value) for name, each in zip(names, outputs, strict=True)]


def _identity_type(select: Select, column: str) -> pa.DataType:
    return pa.uint64() if column == ROW_ID else select.tables[0][1].schema.field(column).type


def _own_identity(select: Select, outputs: Sequence[Output]) -> list[Output]:
    """Returns the columns that identify rows of a single SELECT. A visible column is used where it has the same
    value."""
    alias, found = select.tables[0][0].alias, list[Output]()
    for number, column in enumerate(select.source_identity().columns):
        flat = f"{alias}.{column}"
        visible = [each.name for each in outputs if each.value.sql == quoted(flat)]
        hidden = SOURCE_ROW_ID if column == ROW_ID else f"{SOURCE_KEY}{number}"
        found.append(Output(visible[0] if visible else hidden, Expression(quoted(flat), frozenset((flat,)))))
    return found


def _union_identity(selects: Sequence[Select]) -> tuple[list[pa.Field], list[list[Output]]]:
    """Returns the hidden columns that identify rows of UNION ALL, and how each part computes them.

    The columns are the number of the part, and the columns of the source's identity. Identity columns whose types
    differ between the parts are stored as texts.
    """
    identities = [select.source_identity().columns for select in selects]
    fields = [pa.field(BRANCH, pa.int16())]
    found = [[Output(BRANCH, Expression(f"arrow_cast({number}, 'Int16')"))] for number in range(len(selects))]
    for place in range(max(map(len, identities))):
        types = {
            _identity_type(select, columns[place])
            for select, columns in zip(selects, identities, strict=True)
            if place < len(columns)
        }
        kind = types.pop() if len(types) == 1 else pa.string()
        name = f"{SOURCE_KEY}{place}"
        fields.append(pa.field(name, kind))
        for select, columns, outputs in zip(selects, identities, found, strict=True):
            if place >= len(columns):
                outputs.append(Output(name, Expression("NULL")))
                continue
            flat = f"{select.tables[0][0].alias}.{columns[place]}"
            sql = quoted(flat) if kind != pa.string() else f"CAST({quoted(flat)} AS VARCHAR)"
            outputs.append(Output(name, Expression(sql, frozenset((flat,)))))
    return fields, found


def _default_keys(
    selects: Sequence[Select], outputs: Sequence[Sequence[Output]], identity: Sequence[str], visible: pa.Schema
) -> tuple[tuple[str, ...], bool]:
    select, source = selects[0], selects[0].source_identity()
    if (
        len(selects) > 1
        or not identity
        or ROW_ID in source.columns
        or any(each not in visible.names for each in identity)
    ):
        return (), False
    if select.unnest is None:
        return tuple(identity), source.unique
    position = [each.name for each in outputs[0] if each.value.sql == quoted(select.unnest.position)]
    return (*identity, *position[:1]), bool(position) and source.unique


def _sources(branches: Sequence[Rows]) -> tuple[ViewSource, ...]:
    columns, driven, conditions = dict[str, dict[str, None]](), set[str](), dict[str, list[str]]()
    for rows in branches:
        driven.add(rows.scan.table)
        conditions.setdefault(rows.scan.table, []).append(source_condition(rows))
        for scan in rows.scans:
            columns.setdefault(scan.table, {}).update(dict.fromkeys(scan.columns))
    looked_up = {each.scan.table for rows in branches for each in rows.lookups}
    found = []
    for table, names in columns.items():
        given = conditions.get(table, [""])
        where = given[0] if len(given) == 1 and table not in looked_up else ""
        found.append(ViewSource(table, tuple(names), where, table not in driven))
    return tuple(found)


def source_condition(rows: Rows) -> str:
    """Returns the conditions that use only columns of the scanned table, with its own column names; empty for none.

    Includes only conditions whose words Lance accepts in a condition, because Lance may read the source.
    """
    names = {rows.scan.flat(name): name for name in rows.scan.columns}
    own = [
        each
        for each in rows.conditions
        if each.columns and each.columns <= names.keys() and _words_of(each.sql) <= _WORDS_OF_LANCE
    ]
    return " AND ".join(f"({renamed(each.sql, names)})" for each in own)


def _words_of(sql: str) -> set[str]:
    return {match[0].lower() for match in TOKEN.finditer(sql) if match.lastgroup == "word"}


def renamed(sql: str, names: Mapping[str, str]) -> str:
    """Returns an expression in which the quoted column names are replaced by `names`, in the quotes that Lance
    reads."""

    def written(kind: str | None, text: str) -> str:
        name = text[1:-1].replace('""', '"') if kind == "name" else None
        return source_name(names[name]) if name is not None and name in names else text

    return "".join(written(match.lastgroup, match[0]) for match in TOKEN.finditer(sql))


def source_name(name: str) -> str:
    """Returns the name of a source's column in backticks, which Lance and DataFusion read. Lance takes a name in double
    quotes for a text."""
    return f"`{name}`"


def _lineage(branches: Sequence[Rows], names: Sequence[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    found = dict[str, tuple[tuple[str, str], ...]]()
    for rows in branches:
        for each in rows.outputs:
            if each.name in names:
                own = _sources_of(each.value.columns, rows)
                found[each.name] = tuple(dict.fromkeys((*found.get(each.name, ()), *own)))
    return found


def _sources_of(columns: frozenset[str], rows: Rows) -> tuple[tuple[str, str], ...]:
    """Returns the columns of tables from which flat columns are computed, directly or through functions and UNNEST."""
    calls = {each.output: each for each in rows.calls}
    items = {name for name, _ in rows.unnest.fields} if rows.unnest is not None else set[str]()
    found, pending = dict[tuple[str, str], None](), sorted(columns)
    while pending:
        flat = pending.pop(0)
        if flat in calls:
            pending += sorted({name for value in calls[flat].arguments for name in value.columns})
        elif flat in items and rows.unnest is not None:
            pending += sorted(rows.unnest.value.columns)
        for scan in rows.scans:
            own = [name for name in scan.columns if scan.flat(name) == flat]
            found.update(dict.fromkeys((scan.table, name) for name in own))
    return tuple(found)


def _full_refresh(branches: Sequence[Rows]) -> dict[tuple[str, ChangeKind], str]:
    """Returns the kinds of changes that need a full refresh, with the reason: those of rows that cannot be
    identified."""
    found = dict[tuple[str, ChangeKind], str]()
    for rows in branches:
        if rows.source != Identity():
            continue
        reason = (
            f"{rows.scan.table} has neither row keys nor stable row ids, so rows of the view cannot be identified again"
        )
        kinds: list[tuple[str, ChangeKind]] = [(rows.scan.table, "update"), (rows.scan.table, "delete")]
        for each in rows.lookups:
            kinds += [(each.scan.table, "update"), (each.scan.table, "delete")]
            kinds += [(each.scan.table, "insert")] if each.kind == "left" else []
        found.update(dict.fromkeys(kinds, reason))
    return found
