"""The check whether the rows of a table allow a change: counted before it is shown, and again when it is applied."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.dataset import open_dataset
from deployer.errors import InvalidInput, Refused
from deployer.plan import changes as c
from deployer.plan.render.changes import dotted
from deployer.plan.render.escaping import plain
from deployer.platform.sql.process import OverLimit
from deployer.platform.text.formatting import count
from deployer.specs.types.arrow import arrow_type
from deployer.specs.types.types import Column
from deployer.tables.conversion.sql_values import MOST_COUNTED, NeverNull, check_expression, failing_rows, named_columns
from deployer.tables.ingest.keys.repeated import repeated_keys
from deployer.tables.read.export import plain_values

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.live.model import LiveLake, LiveTable
    from deployer.plan.model import Plan, PlannedChange


@dataclass(frozen=True, slots=True)
class Failing:
    """The number of the table's rows that prevent a change, and the reason."""

    rows: int
    of: int
    reason: str
    examples: tuple[str, ...] = ()  #: values of a few of those rows, as messages show them

    def __str__(self) -> str:
        return f"{self.counted}{self.such}"

    @property
    def counted(self) -> str:
        least = "at least " if self.rows >= MOST_COUNTED and self.reason not in (_NULL, _NO_VALUE, _REPEATED) else ""
        return f"{least}{self.rows:,} of {count(self.of, 'row')} {self.reason}"

    @property
    def such(self) -> str:
        return f", such as {' and '.join(self.examples)}" if self.examples else ""


_EXAMPLES, _NAMED, _LONGEST = 2, 3, 40  #: rows that are shown, columns of each, and characters of a value
_TRIED = 100  #: failing rows of a batch that are looked through for values that differ
_BATCH_BYTES = 64 * 2**20
SECONDS, SECONDS_A_ROW = 60.0, 0.001  #: that an expression may take on all rows of a table
_NULL, _NO_VALUE = "hold null", "have no value"  #: what is counted in full
_REPEATED = "have row keys that another row has"
_NO_RENAMES: Mapping[c.ColumnPath, c.ColumnPath] = MappingProxyType({})


def failing(
    dataset: LanceDataset,
    change: c.Change,
    renames: Mapping[c.ColumnPath, c.ColumnPath] = _NO_RENAMES,
    cause: object = None,
) -> Failing | None:
    """Returns the rows that `change` fails for; None for a change that looks at no rows.

    `renames` are made before the change: paths after them to the paths that the dataset has. `cause` is where the specs
    ask for it. Raises InvalidInput for an expression that cannot be computed at all.
    """
    where = cause or change.address
    names = {before[0]: after[0] for after, before in renames.items() if len(after) == 1}
    match change:
        case c.TightenNullability(column=path):
            return Failing(_nulls(dataset, _path_before(path, renames)), dataset.count_rows(), _NULL)
        case c.ConvertColumn(column=(name,), after=after, using=str(expression)):
            target = arrow_type(after)
            return _failing(dataset, names, where, expression, target, lambda rows: pc.is_valid(rows[name]), name)
        case c.AddColumn(definition=column) if column.default:
            never_null = None if column.nullable else lambda rows: pa.repeat(True, rows.num_rows)
            return _failing(dataset, names, where, column.default, arrow_type(column.type), never_null)
        case c.AddColumn(definition=column) if not column.nullable:
            rows = dataset.count_rows()
            return Failing(rows, rows, _NO_VALUE)
        case c.SetUnique(unique=True, keys=keys) | c.ChangeRowKeys(unique=True, after=keys):
            return _repeated(dataset, [_path_before((key,), renames)[0] for key in keys], keys)
        case _:
            return None


def _repeated(dataset: LanceDataset, columns: Sequence[str], keys: Sequence[str]) -> Failing:
    found = repeated_keys(dataset, columns, keys)
    return Failing(found.rows, dataset.count_rows(), _REPEATED, found.examples)


def _failing(
    dataset: LanceDataset,
    names: Mapping[str, str],
    where: object,
    expression: str,
    target: pa.DataType,
    never_null: NeverNull | None,
    looked_at: str = "",
) -> Failing:
    schema = pa.schema([field.with_name(names.get(field.name, field.name)) for field in dataset.schema])
    renamed = {before: after for before, after in names.items() if before != after}
    before = {after: name for name, after in names.items()}
    columns = list(dict.fromkeys([*named_columns(schema, expression), *([looked_at] if looked_at else ())]))
    failing = tried = 0
    examples: list[str] = []
    since = time.monotonic()
    try:
        check_expression(schema, expression, where, renamed)
        for rows in _batches(dataset, [before.get(name, name) for name in columns], columns):
            places = failing_rows(rows, expression, target, never_null)
            failing, tried = failing + len(places), tried + rows.num_rows
            for place in places[:_TRIED]:
                example = _example(rows, place, looked_at) if len(examples) < _EXAMPLES else ""
                examples += [example] if example and example not in examples else []
            if failing >= MOST_COUNTED:
                break
            if time.monotonic() - since > SECONDS + tried * SECONDS_A_ROW:
                raise OverLimit(f"takes more than {time.monotonic() - since:,.0f} s for {count(tried, 'row')}")
    except OverLimit as over:
        raise InvalidInput(
            f"the expression {_short(expression)} cannot be computed: it {over}",
            where=where,
            remedy="write one that takes less; deployer tries it on the table's rows",
        ) from None
    return Failing(failing, dataset.count_rows(), "fail or become null", tuple(examples))


def _batches(dataset: LanceDataset, names: Sequence[str], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yields the rows in pieces that fit well into the process that computes."""
    for batch in dataset.scanner(columns=list(names), batch_size=8192).to_batches():
        rows = batch.rename_columns(list(columns))
        step = max(1, rows.num_rows * _BATCH_BYTES // max(rows.nbytes, _BATCH_BYTES))
        for start in range(0, rows.num_rows, step):
            yield rows.slice(start, step)


def _example(rows: pa.RecordBatch, place: int, looked_at: str) -> str:
    """Returns a row's values in the column that is converted, or in those that a default is computed from."""
    names = [looked_at] if looked_at else rows.schema.names[:_NAMED]
    values = [_short(plain_values(rows.column(name).slice(place, 1))[0]) for name in names]
    return values[0] if looked_at else ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def _short(value: Any) -> str:
    """Returns a value on one line: text in quotes, what is not printed escaped, cut after a few characters."""
    text = "null" if value is None else repr(value) if isinstance(value, str) else plain(str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def refuse_what_fails(
    dataset: LanceDataset, change: c.Change, renames: Mapping[c.ColumnPath, c.ColumnPath] = _NO_RENAMES
) -> None:
    """Raises Refused when rows prevent the change."""
    found = failing(dataset, change, renames)
    if found is not None and found.rows:
        column = f" in column {_column(change)}" if _column(change) else ""
        what = f"{found.counted}{column}{found.such}"
        raise Refused(what, where=change.address, remedy=_remedy(change))


def refuse_what_rows_forbid(root: str, live: LiveTable, changes: Sequence[c.Change]) -> None:
    """`refuse_what_fails` for all changes of a table at once, before the first of them is made."""
    if live.statistics.rows and any(isinstance(each, _LOOKING) for each in changes):
        dataset = _dataset(root, live)
        renames = _renames(changes)
        for change in changes:
            if _can_be_asked(change, changes):
                refuse_what_fails(dataset, change, renames)


def checked_on_data(plan: Plan, live: LiveLake, root: str) -> Plan:
    """Returns the plan, with the counts of live rows for the changes that depend on them."""
    resources = []
    for resource in plan.resources:
        table = live.tables.get(resource.live_address)
        if table is not None and table.statistics.rows and any(_looks(each) for each in resource.changes):
            dataset = _dataset(root, table)
            planned = [each.change for each in resource.changes]
            changes = tuple(
                _checked(dataset, each, _renames(planned)) if _can_be_asked(each.change, planned) else each
                for each in resource.changes
            )
            resource = replace(resource, changes=changes)
        resources.append(resource)
    return replace(plan, resources=tuple(resources))


def _dataset(root: str, table: LiveTable) -> LanceDataset:
    return open_dataset(f"{root.rstrip('/')}/{table.location}", table.statistics.lance_version)


_LOOKING = (
    c.TightenNullability,
    c.ConvertColumn,
    c.AddColumn,
    c.SetUnique,
    c.ChangeRowKeys,
)  #: changes that rows can prevent


def _looks(planned: PlannedChange) -> bool:
    return planned.refused is None and isinstance(planned.change, _LOOKING)


def _checked(
    dataset: LanceDataset, planned: PlannedChange, renames: Mapping[c.ColumnPath, c.ColumnPath]
) -> PlannedChange:
    found = failing(dataset, planned.change, renames, planned.cause) if _looks(planned) else None
    if found is None:
        return planned
    if found.rows:
        return replace(_named(planned, str(found)), refused=f"{found}; {_remedy(planned.change)}")
    if isinstance(planned.change, c.SetUnique):
        return _named(planned, f"none of {count(found.of, 'row')} has the row keys of another")
    if isinstance(planned.change, c.TightenNullability):
        return _named(planned, f"none of {count(found.of, 'row')} holds null")
    return _named(planned, f"{planned.assessment.why}; tried on {count(found.of, 'row')}, none fails")


def _gives_values(change: c.Change) -> TypeGuard[c.AddColumn | c.ConvertColumn]:
    return isinstance(change, c.AddColumn) or (isinstance(change, c.ConvertColumn) and change.using is not None)


def _can_be_asked(change: c.Change, changes: Sequence[c.Change]) -> bool:
    """Returns whether the rows can be checked before any of `changes` is made.

    An expression over fields that are renamed, and keys with columns that are added or converted by SQL with it, are
    checked when their turn comes.
    """
    match change:
        case c.TightenNullability() | c.SetUnique(unique=True) | c.ChangeRowKeys(unique=True):
            wanted = change.keys if isinstance(change, c.SetUnique) else ()
            wanted = change.after if isinstance(change, c.ChangeRowKeys) else wanted
            return not any(_gives_values(each) and each.column[0] in wanted for each in changes)
        case c.ConvertColumn(using=str(expression)) | c.AddColumn(definition=Column(default=expression)):
            nested = any(isinstance(each, c.RenameColumn) and len(each.column) > 1 for each in changes)
            added = (each.column[-1] for each in changes if isinstance(each, c.AddColumn) and each is not change)
            return not nested and not any(name in expression for name in added)
        case _:
            return False


def _named(planned: PlannedChange, why: str) -> PlannedChange:
    return replace(planned, assessment=replace(planned.assessment, why=why))


def _renames(changes: Iterable[c.Change]) -> dict[c.ColumnPath, c.ColumnPath]:
    """Returns paths after the renames to the paths before, of each level by itself."""
    renames = (change for change in changes if isinstance(change, c.RenameColumn))
    return {(*change.column[:-1], change.after): change.column for change in renames}


def _path_before(path: c.ColumnPath, renames: Mapping[c.ColumnPath, c.ColumnPath]) -> c.ColumnPath:
    before: c.ColumnPath = ()
    for end in range(1, len(path) + 1):
        before = (*before, renames.get(path[:end], path[:end])[-1])
    return before


def _column(change: c.Change) -> str:
    return dotted(getattr(change, "column", ()))


def _remedy(change: c.Change) -> str:
    if isinstance(change, c.AddColumn) and not change.definition.default:
        return "preview again: there were none when this was planned"
    if isinstance(change, c.SetUnique):
        return "remove all but one of the rows of each key, or leave `unique` out"
    if isinstance(change, c.ChangeRowKeys):
        return "remove all but one of the rows of each key, choose other keys, or leave `unique` out"
    if isinstance(change, c.AddColumn):
        return "fix `default:` so that it has a value for each row"
    if isinstance(change, c.ConvertColumn):
        return "fix the rows, or let `using:` give them a value"
    return "give them values first, or leave the column nullable"


def _nulls(dataset: LanceDataset, path: c.ColumnPath) -> int:
    """Rows, or values inside of rows, that are null at `path` where what holds them is not."""
    found = 0
    for batch in dataset.scanner(columns=[path[0]]).to_batches():
        found += _null_values(batch.column(0), path[1:])
    return found


def _null_values(values: Any, path: c.ColumnPath) -> int:
    if not path:
        return int(values.null_count) if not pa.types.is_null(values.type) else len(values)
    values = values.filter(pc.is_valid(values))
    kind = values.type
    if pa.types.is_struct(kind):
        return _null_values(pc.struct_field(values, [path[0]]), path[1:])
    if pa.types.is_map(kind):
        return _null_values(_entries(values, path[0]), path[1:])
    return _null_values(pc.list_flatten(values), path[1:])


def _entries(values: Any, part: str) -> Any:
    """Returns keys or values of the entries of maps; those of a slice only."""
    whole = values.keys if part == "key" else values.items
    offsets = values.offsets
    return (
        whole.slice(offsets[0].as_py(), offsets[-1].as_py() - offsets[0].as_py()) if len(values) else whole.slice(0, 0)
    )
