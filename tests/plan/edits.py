"""Single edits of one spec by the kind of change that each is, to be combined: what a spec pair has two of.

Each kind has an edit of the same column, `delay`, as far as it is one of columns, so that two kinds meet there; its
further edits are for pairs that cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from deployer.plan import changes as c
from deployer.specs.model import Embedding, Hold, IndexSpec, Retention, ServiceSpec, Storage, TableSpec, Trigger
from deployer.specs.schema.services import KINDS
from deployer.specs.types.computed import ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, FixedSizeList, Scalar, Struct

TEXT, INT64 = Scalar("string"), Scalar("int64")

TABLE = TableSpec(
    database="air",
    name="flights",
    columns=(
        Column("carrier", TEXT, nullable=False),
        Column("flight", Scalar("int32"), nullable=False),
        Column("delay", Scalar("int32"), nullable=False),
        Column("late", Scalar("int32")),
        Column("gate", Struct((Column("hall", TEXT), Column("number", Scalar("int16"), nullable=False)))),
        Column("note", TEXT),
        Column("vector", FixedSizeList(Column("item", Scalar("float32")), 2)),
        Column("day", Scalar("date32")),
    ),
    row_keys=("carrier", "flight"),
    sort_keys=("late",),
    split_points=(("DL",),),
    description="Flights.",
    tags={"tier": "gold"},
    indexes=(IndexSpec("by_delay", ("delay",), "btree"), IndexSpec("by_hall", ("gate.hall",), "bitmap")),
    services=(ServiceSpec("COMPACT", Trigger(commits=10)), ServiceSpec("CLEAN", Trigger("0 3 * * *"))),
)


@dataclass(frozen=True, slots=True)
class Edit:
    """What it does to a spec; it finds columns by the name that they have in TABLE, whatever was edited before."""

    name: str
    of: Callable[[TableSpec], TableSpec]


def was(column: Column) -> str:
    return column.renamed_from or column.name


def _column(spec: TableSpec, name: str, change: Callable[[Column], Column | None]) -> TableSpec:
    found = ((change(each) if was(each) == name else each) for each in spec.columns)
    return replace(spec, columns=tuple(each for each in found if each is not None))


def column(name: str, what: str, **values: object) -> Edit:
    return Edit(f"{name} {what}", lambda spec: _column(spec, name, lambda each: replace(each, **values)))  # type: ignore[arg-type]


def field(path: str, what: str, **values: object) -> Edit:
    """Of a field of `gate`."""

    def change(gate: Column) -> Column:
        assert isinstance(gate.type, Struct)
        fields = (replace(each, **values) if was(each) == path else each for each in gate.type.fields)  # type: ignore[arg-type]
        return replace(gate, type=Struct(tuple(fields)))

    return Edit(f"gate.{path} {what}", lambda spec: _column(spec, "gate", change))


def fields(what: str, change: Callable[[tuple[Column, ...]], tuple[Column, ...]]) -> Edit:
    def changed(gate: Column) -> Column:
        assert isinstance(gate.type, Struct)
        return replace(gate, type=Struct(change(gate.type.fields)))

    return Edit(f"gate {what}", lambda spec: _column(spec, "gate", changed))


def renamed(before: str, after: str) -> Edit:
    """With the keys and indexes that name it."""

    def names(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(after if path == before else path for path in paths)

    def rename(spec: TableSpec) -> TableSpec:
        spec = _column(spec, before, lambda each: replace(each, name=after, renamed_from=before))
        indexes = tuple(replace(index, columns=names(index.columns)) for index in spec.indexes)
        return replace(spec, row_keys=names(spec.row_keys), sort_keys=names(spec.sort_keys), indexes=indexes)

    return Edit(f"{before} renamed", rename)


def keys(what: str, *names: str) -> Edit:
    """Row keys or sort keys, under the names that their columns have by then."""

    def change(spec: TableSpec) -> TableSpec:
        now = {was(each): each.name for each in spec.columns}
        return replace(spec, **{what: tuple(now.get(name, name) for name in names)})  # type: ignore[arg-type]

    return Edit(f"{what} {', '.join(names) or 'none'}", change)


def index(name: str, what: str, of: IndexSpec | None) -> Edit:
    """The index of that name as `of`, or none."""

    def change(spec: TableSpec) -> TableSpec:
        now = {was(each): each.name for each in spec.columns}
        kept = [each for each in spec.indexes if each.name != name]
        new = [replace(of, columns=tuple(now.get(path, path) for path in of.columns))] if of else []
        return replace(spec, indexes=tuple(sorted([*kept, *new], key=lambda each: each.name)))

    return Edit(f"index {name} {what}", change)


def called(name: str, new: str) -> Edit:
    """The index of that name under a new one."""

    def change(spec: TableSpec) -> TableSpec:
        renamed = (replace(each, name=new) if each.name == name else each for each in spec.indexes)
        return replace(spec, indexes=tuple(sorted(renamed, key=lambda each: each.name)))

    return Edit(f"index {name} called {new}", change)


def service(what: str, kind: str, change: Callable[[ServiceSpec], ServiceSpec | None]) -> Edit:
    """The service of that kind changed, attached where the table has none, or detached."""

    def edited(spec: TableSpec) -> TableSpec:
        services = {each.kind: each for each in spec.services}
        changed = change(services.get(kind) or ServiceSpec(kind))
        found = {each: services.get(each) for each in KINDS} | {kind: changed}
        return replace(spec, services=tuple(each for each in found.values() if each))

    return Edit(f"service {kind.lower()} {what}", edited)


def table(what: str, **values: object) -> Edit:
    return Edit(what, lambda spec: replace(spec, **values))  # type: ignore[arg-type]


def _added(new: Column, place: int) -> Callable[[TableSpec], TableSpec]:
    return lambda spec: replace(spec, columns=(*spec.columns[:place], new, *spec.columns[place:]))


EDITS: Mapping[type, tuple[Edit, ...]] = {
    c.RenameTable: (table("departures renamed from flights", name="departures", renamed_from="flights"),),
    c.AddColumn: (
        Edit("remark added", _added(Column("remark", TEXT), 3)),
        fields("with floor", lambda now: (*now, Column("floor", Scalar("int16")))),
        Edit("must added, never null", _added(Column("must", TEXT, nullable=False), 3)),
    ),
    c.DropColumn: (
        Edit("delay dropped", lambda spec: _column(spec, "delay", lambda _: None)),
        Edit("late dropped", lambda spec: _column(spec, "late", lambda _: None)),
        fields("without number", lambda now: tuple(each for each in now if was(each) != "number")),
        Edit("note dropped", lambda spec: _column(spec, "note", lambda _: None)),
        Edit("gate dropped", lambda spec: _column(spec, "gate", lambda _: None)),
    ),
    c.RenameColumn: (renamed("delay", "minutes"), renamed("late", "lateness")),
    c.WidenColumn: (column("delay", "int64", type=INT64), column("late", "int64", type=INT64)),
    c.ConvertColumn: (
        column("delay", "text", type=TEXT, using="CAST(flight AS VARCHAR)"),
        column("late", "text", type=TEXT, using="CAST(flight AS VARCHAR)"),
        field("number", "text", type=TEXT),
        column("delay", "text, not said how", type=TEXT),
    ),
    c.RelaxNullability: (column("delay", "nullable", nullable=True), field("number", "nullable", nullable=True)),
    c.TightenNullability: (column("late", "never null", nullable=False), field("hall", "never null", nullable=False)),
    c.ReorderColumns: (
        Edit("columns reversed", lambda spec: replace(spec, columns=spec.columns[::-1])),
        fields("reversed", lambda now: now[::-1]),
    ),
    c.ChangeColumnDescription: (
        column("delay", "described", description="Minutes."),
        column("late", "described", description="Minutes."),
    ),
    c.ChangeColumnSensitive: (
        column("delay", "sensitive", sensitive=True),
        field("number", "sensitive", sensitive=True),
    ),
    c.ChangeColumnDefault: (column("delay", "default", default="0"), column("late", "default", default="0")),
    c.ChangeColumnSource: (
        column("delay", "source", source="Delay (min.)"),
        column("late", "empty source", source=""),
    ),
    c.ChangeColumnComputed: (
        column("note", "computed", computed=ComputedBySql("concat(carrier, '!')", ("carrier",))),
        column("day", "computed", computed=ComputedByUdf("air:day", "", ("flight",), "2")),
    ),
    c.ChangeRowKeys: (
        keys("row_keys", "carrier", "flight", "delay"),
        keys("row_keys", "carrier", "late"),
        keys("row_keys", "carrier"),
    ),
    c.ChangeSortKeys: (keys("sort_keys", "delay"), keys("sort_keys")),
    c.ChangeSplitPoints: (table("split points DL, UA", split_points=(("DL",), ("UA",))),),
    c.ChangeLeafLimit: (table("a limit of leaves", max_rows_per_leaf=1000),),
    c.ChangeEmbedding: (table("an embedding", embedding=Embedding("words:vectors", "carrier", "vector")),),
    c.ChangeRetention: (
        table("rows kept for 400 days", retention=Retention("day", "400d")),
        table("rows kept for 30 days", retention=Retention("day", "30d")),
    ),
    c.ChangeRetainedChanges: (table("changes kept", retain_changes="7d"),),
    c.ChangeHolds: (table("a hold", holds=(Hold("audit", "flight = 7"),)),),
    c.SetUnique: (table("unique row keys", unique=True),),
    c.ChangeStorage: (
        table("file format 2.2", storage=Storage(data_storage_version="2.2")),
        table("smaller files", storage=Storage(max_rows_per_file=1000)),
    ),
    c.CreateIndex: (
        index("more", "on delay", IndexSpec("more", ("delay",), "bitmap")),
        index("other", "on late", IndexSpec("other", ("late",), "btree")),
    ),
    c.DropIndex: (index("by_delay", "dropped", None), index("by_hall", "dropped", None)),
    c.RebuildIndex: (
        index("by_delay", "bitmap", IndexSpec("by_delay", ("delay",), "bitmap")),
        index("by_hall", "btree", IndexSpec("by_hall", ("gate.hall",), "btree")),
    ),
    c.RenameIndex: (called("by_delay", "late_index"), called("by_hall", "hall_index")),
    c.CreateService: (
        service("attached", "CLUSTER", lambda each: replace(each, options={"curve": "zorder"})),
        service("attached", "AUTOSAVEPOINT", lambda each: each),
    ),
    c.DeleteService: (
        service("detached", "COMPACT", lambda _: None),
        service("detached", "CLEAN", lambda _: None),
    ),
    c.ChangeTrigger: (
        service("on demand", "COMPACT", lambda each: replace(each, trigger=None)),
        service("nightly", "CLEAN", lambda each: replace(each, trigger=Trigger("0 3 * * *", "Europe/Berlin", rows=9))),
    ),
    c.ChangeServiceOptions: (
        service("tiered", "COMPACT", lambda each: replace(each, options={"strategy": "tiered"})),
        service("unchecked", "CLEAN", lambda each: replace(each, options={"new": "on"}, unsafe_raw=True)),
    ),
    c.MoveServiceToCluster: (
        service("on small", "COMPACT", lambda each: replace(each, cluster="small")),
        service("on small", "CLEAN", lambda each: replace(each, cluster="small")),
    ),
    c.SetOnline: (table("offline", online=False),),
    c.SetDeletionProtection: (table("unprotected", deletion_protection=False),),
    c.ChangeDescription: (table("other description", description="Departures."),),
    c.ChangeTags: (table("no tags", tags={}),),
}

#: Pairs beyond one of each two kinds: where two edits of the same column, or of keys, could go wrong together.
MORE: Mapping[str, tuple[Edit, ...]] = {
    "a row key widened": (column("flight", "int64", type=INT64),),
    "a row key widened and renamed": (column("flight", "int64", type=INT64), renamed("flight", "number")),
    "a row key widened that is one no more": (column("flight", "int64", type=INT64), keys("row_keys", "carrier")),
    "a row key converted that is one no more": (
        column("flight", "text", type=TEXT, using="CAST(flight AS VARCHAR)"),
        keys("row_keys", "carrier"),
    ),
    "a row key converted": (column("flight", "text", type=TEXT, using="CAST(flight AS VARCHAR)"),),
    "a row key dropped that is one no more": (
        keys("row_keys", "carrier"),
        Edit("flight dropped", lambda spec: _column(spec, "flight", lambda _: None)),
    ),
    "a row key that may be null once it is one no more": (
        keys("row_keys", "carrier"),
        column("flight", "nullable", nullable=True),
    ),
    "a row key that becomes a sort key and is widened": (
        keys("row_keys", "carrier"),
        keys("sort_keys", "flight"),
        column("flight", "int64", type=INT64),
    ),
    "a column forbidden to be null that becomes a row key": (
        column("late", "never null", nullable=False),
        keys("sort_keys"),
        keys("row_keys", "carrier", "late"),
    ),
    "a new row key in the place of a dropped one": (
        Edit("number added", _added(Column("number", INT64, nullable=False, default="flight"), 3)),
        keys("row_keys", "carrier", "number"),
        Edit("flight dropped", lambda spec: _column(spec, "flight", lambda _: None)),
    ),
    "a sort key converted": (column("late", "text", type=TEXT, using="CAST(flight AS VARCHAR)"),),
    "a sort key converted that is one no more": (
        column("late", "text", type=TEXT, using="CAST(flight AS VARCHAR)"),
        keys("sort_keys"),
    ),
    "a sort key widened": (column("late", "int64", type=INT64),),
    "a struct renamed with a field of it": (
        renamed("gate", "door"),
        field("hall", "called lounge", name="lounge", renamed_from="hall"),
        field("number", "int32", type=Scalar("int32")),
        index("by_hall", "on door.lounge", IndexSpec("by_hall", ("door.lounge",), "bitmap")),
    ),
    "an index moved to another column": (index("by_delay", "on late", IndexSpec("by_delay", ("late",), "btree")),),
}
