"""The text of each change, as every rendering shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from deployer.plan import changes as c
from deployer.plan.render.services import describe_service_change, service_names
from deployer.platform.sql.select import without_comments
from deployer.platform.text.formatting import count
from deployer.specs.model import Embedding, Hold, IndexSpec, Retention
from deployer.specs.types.column_names import listed, shown
from deployer.specs.types.computed import describe_computed
from deployer.specs.types.dataset import BlueprintFile, DatasetService, RecordingSource, SearchIndexSpec
from deployer.specs.types.types import Column, format_type
from deployer.specs.types.view import ViewFunction, ViewSpec, staleness_text

_POINTS, _LONGEST = 3, 40  #: how many split points are shown, and how many characters of each value


def describe(change: c.Change) -> str:
    """Returns one line that says what the change does, without its address."""
    if isinstance(change, c.ServiceChange):
        return describe_service_change(change)
    match change:
        case c.CreateInstance(spec=spec):
            return f"create instance at {spec.root}"
        case c.DeleteInstance():
            return "delete instance"
        case c.ChangeRoot(before=before, after=after, found=found):
            return f"{'record' if found else 'move'} root {before} → {after}"
        case c.ChangeStateBackend(before=old, after=new, found=found):
            return f"{'record' if found else 'move'} state store {old.backend} → {new.backend}"
        case c.ChangeEngine(before=before, after=after):
            return f"engine {before} → {after}"
        case c.ChangeClusters(before=old_clusters, after=new_clusters):
            old_names, new_names = ([cluster.name for cluster in side] for side in (old_clusters, new_clusters))
            return f"clusters {_names(old_names)} → {_names(new_names)}" + (
                " (options changed)" if old_names == new_names else ""
            )
        case c.ChangeNotify(before=old_names, after=new_names):
            return f"notified of failed runs {_names(old_names)} → {_names(new_names)}"
        case c.CreateDataset(spec=dataset):
            indexes = [index.column for index in dataset.search_indexes]
            searched = f", search indexes {', '.join(indexes)}" if indexes else ""
            return f"create dataset: {_sources(dataset.recordings)}, register {dataset.register}{searched}"
        case c.DeleteDataset():
            return "delete dataset and what is registered with it"
        case c.ChangeSources(before=old_sources, after=new_sources):
            return f"sources {_sources(old_sources)} → {_sources(new_sources)}"
        case c.ChangeRegister(before=before, after=after):
            return f"register {before} → {after}"
        case c.CreateSearchIndex(index=search):
            return f"create search index {_search(search)}"
        case c.DropSearchIndex(index=search):
            return f"drop search index {_search(search)}"
        case c.RebuildSearchIndex(before=old_search, after=search):
            return f"rebuild search index {_search(old_search)} → {_search(search)}"
        case c.ChangeDefaultBlueprint(before=old_blueprint, after=new_blueprint):
            return _blueprint(old_blueprint, new_blueprint)
        case c.ChangeDatasetServices(before=old_services, after=new_services):
            return f"services {_dataset_services(old_services)} → {_dataset_services(new_services)}"
        case c.ChangeVersionsKept(before=old_time, after=new_time):
            return f"replaced versions kept {old_time or 'until removed'} → {new_time or 'until removed'}"
        case c.CreateTable(spec=spec) if spec.view is not None:
            keys = f", row keys {listed(spec.row_keys)}" if spec.row_keys else ""
            services = f", services {service_names(spec.services)}" if spec.services else ""
            return f"create view of {listed(spec.view.tables)}: {count(len(spec.columns), 'column')}{keys}{services}"
        case c.CreateTable(spec=spec):
            leaves = len(spec.split_points) + 1
            keys = f", row keys {listed(spec.row_keys)}" if spec.row_keys else ", no keys"
            services = f", services {service_names(spec.services)}" if spec.services else ""
            parted = count(leaves, "leaf", "leaves")
            return f"create table: {count(len(spec.columns), 'column')}{keys}, {parted}{services}"
        case c.DeleteTable(name=name):
            return f"delete table, which is {name} now, and its data" if name else "delete table and its data"
        case c.RenameTable(before=before, after=after):
            return f"rename table {before} → {after}"
        case c.AddColumn(column=path, definition=column):
            null = "" if column.nullable else " not null"
            default = f" default {column.default}" if column.default else ""
            source = "" if column.source is None else f" source {column.source!r}"
            computed = "" if column.computed is None else f" computed {describe_computed(column.computed)}"
            hidden = " sensitive" if column.sensitive else ""
            return f"add column {_path(path)}: {format_type(column.type)}{null}{hidden}{default}{source}{computed}"
        case c.DropColumn(column=path):
            return f"drop column {_path(path)}"
        case c.RenameColumn(column=path, after=after):
            return f"rename column {_path(path)} → {shown(after)}"
        case c.WidenColumn(column=path, before=old, after=new):
            return f"widen column {_path(path)}: {format_type(old)} → {format_type(new)}"
        case c.ConvertColumn(column=path, before=old, after=new, using=expression):
            using = f" using {expression}" if expression else ""
            return f"convert column {_path(path)}: {format_type(old)} → {format_type(new)}{using}"
        case c.RelaxNullability(column=path):
            return f"allow null in column {_path(path)}"
        case c.TightenNullability(column=path):
            return f"forbid null in column {_path(path)}"
        case c.ReorderColumns(column=path, before=old_order, after=new_order):
            place = f" of {_path(path)}" if path else ""
            moved = [name for name, other in zip(new_order, old_order, strict=True) if name != other]
            return f"reorder columns{place}: {listed(moved)}"
        case c.ChangeColumnDescription(column=path, before=before, after=after):
            return f"describe column {_path(path)}: {_text(before)} → {_text(after)}"
        case c.ChangeColumnDefault(column=path, before=before, after=after):
            return f"default of column {_path(path)}: {before or 'none'} → {after or 'none'}"
        case c.ChangeColumnSource(column=path, before=old_source, after=new_source):
            named = ("none" if name is None else repr(name) for name in (old_source, new_source))
            return f"source of column {_path(path)}: {' → '.join(named)}"
        case c.ChangeColumnSensitive(column=path, after=is_sensitive):
            return f"{'hide' if is_sensitive else 'show'} the values of column {_path(path)}: " + (
                "sensitive" if is_sensitive else "not sensitive"
            )
        case c.ChangeColumnComputed(column=path, before=old_computed, after=new_computed):
            return (
                f"compute column {_path(path)}: {describe_computed(old_computed)} → {describe_computed(new_computed)}"
            )
        case c.ChangeRowKeys(before=old_keys, after=new_keys):
            return f"row keys {listed(old_keys) or 'none'} → {listed(new_keys) or 'none'}"
        case c.SetUnique(unique=unique, keys=keys):
            return f"row keys {listed(keys)} are unique" if unique else "row keys need not be unique"
        case c.ChangeSortKeys(before=old_keys, after=new_keys):
            return f"sort keys {listed(old_keys) or 'none'} → {listed(new_keys) or 'none'}"
        case c.ChangeSplitPoints(before=old_points, after=new_points, keys=key_columns):
            parted = f"partitions {len(old_points) + 1} → {count(len(new_points) + 1, 'leaf', 'leaves')}"
            return parted + _points(old_points, new_points, key_columns)
        case c.ChangeLeafLimit(before=old_limit, after=new_limit):
            before_text, after_text = (f"{n:,}" if n is not None else "none" for n in (old_limit, new_limit))
            return f"most rows of a leaf {before_text} → {after_text}"
        case c.ChangeEmbedding(before=old_embedding, after=new_embedding):
            functions = (_embedding(each) for each in (old_embedding, new_embedding))
            return f"embedding {' → '.join(functions)}"
        case c.ChangeRetention(before=old_keep, after=new_keep):
            return f"retention {_retention(old_keep)} → {_retention(new_keep)}"
        case c.ChangeHolds(before=old_holds, after=new_holds):
            return describe_holds(old_holds, new_holds)
        case c.ChangeRetainedChanges(before=old_time, after=new_time):
            return f"changes kept {old_time or 'while versions are'} → {new_time or 'while versions are'}"
        case c.ChangeViewQuery(before=old_view, after=new_view):
            return f"query {_view(old_view)} → {_view(new_view)}" + _functions(old_view, new_view)
        case c.ChangeMaxStaleness(before=old_time, after=new_time):
            times = ("any time" if time is None else staleness_text(time) for time in (old_time, new_time))
            return f"late after {' → '.join(times)}"
        case c.ChangeStorage(before=old_storage, after=new_storage):
            return "storage " + ", ".join(
                f"{name} {getattr(old_storage, name)} → {getattr(new_storage, name)}"
                for name in old_storage.__slots__
                if getattr(old_storage, name) != getattr(new_storage, name)
            )
        case c.CreateIndex(index=index):
            return f"create index {shown(index.name)}: {_index(index)}"
        case c.DropIndex(index=index):
            return f"drop index {shown(index.name)}: {_index(index)}"
        case c.RebuildIndex(before=old_index, after=new_index):
            return f"rebuild index {shown(new_index.name)}: {_index(old_index)} → {_index(new_index)}"
        case c.RenameIndex(before=old_index, after=new_index):
            return f"rename index {shown(old_index.name)} → {shown(new_index.name)}"
        case c.SetOnline(online=online):
            return "put table online" if online else "take table offline"
        case c.SetDeletionProtection(protected=protected):
            return "turn deletion protection on" if protected else "turn deletion protection off"
        case c.ChangeDescription(before=before, after=after):
            return f"description {_text(before)} → {_text(after)}"
        case c.ChangeTags(before=old_tags, after=new_tags):
            return f"tags {_pairs(old_tags)} → {_pairs(new_tags)}"
        case _:
            assert_never(change)


def _sources(sources: Sequence[RecordingSource]) -> str:
    return ", ".join(f"{each.prefix} (layer {each.layer})" for each in sources) or "no sources"


def _dataset_services(services: Sequence[DatasetService]) -> str:
    zones = ("" if each.timezone == "UTC" else f" {each.timezone}" for each in services)
    found = (f"{each.name} at {each.schedule}{zone}" for each, zone in zip(services, zones, strict=True))
    return ", ".join(found) or "none"


def _search(index: SearchIndexSpec) -> str:
    options = describe_options(index.parameters)
    return f"{index.column}: {index.kind} by {index.timeline}" + (f" ({options})" if options else "")


def _blueprint(before: BlueprintFile | None, after: BlueprintFile | None) -> str:
    old, new = (each.file if each is not None else "none" for each in (before, after))
    return f"default blueprint {old}: its content changed" if old == new else f"default blueprint {old} → {new}"


def describe_holds(before: Sequence[Hold], after: Sequence[Hold]) -> str:
    """Returns `place legal hold audit: account = 'A-17' (case 12); release legal hold old`."""
    old, new = ({hold.name: hold for hold in side} for side in (before, after))
    parts = [f"release legal hold {name}" for name in old if name not in new]
    for name, hold in new.items():
        if old.get(name) != hold:
            verb = "change" if name in old else "place"
            parts.append(f"{verb} legal hold {name}: {_hold(hold)}")
    return "; ".join(parts)


def _hold(hold: Hold) -> str:
    return (_text(hold.where) if hold.where else "every row") + (f" ({hold.reason})" if hold.reason else "")


def _retention(retention: Retention | None) -> str:
    return f"{retention.keep} by {shown(retention.column)}" if retention else "none"


def dotted(path: c.ColumnPath) -> str:
    return ".".join(path)


def _path(path: c.ColumnPath) -> str:
    return shown(dotted(path))


def _points(before: c.SplitPoints, after: c.SplitPoints, keys: Sequence[Column]) -> str:
    """Returns `, new at DL; (UA, 100) and 12 more`: the first added split points, or otherwise removed ones, in the
    form of specs."""
    from deployer.specs.editing.write import split_point_document  # it loads the writer of YAML

    new = [point for point in after if point not in before]
    points = new or [point for point in before if point not in after]
    if not points or not keys:
        return ""
    documents = [split_point_document(point, keys) for point in points[:_POINTS]]
    shown = [f"({', '.join(map(_value, each))})" if isinstance(each, list) else _value(each) for each in documents]
    more = f" and {len(points) - _POINTS:,} more" if len(points) > _POINTS else ""
    return f", {'new' if new else 'no longer'} at {'; '.join(shown)}{more}"


def _value(value: object) -> str:
    text = repr(value)[1:-1] if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _view(view: ViewSpec | None) -> str:
    return "none" if view is None else f"“{' '.join(without_comments(view.query).split())}”"


def _functions(before: ViewSpec | None, after: ViewSpec | None) -> str:
    """Returns `, function embed features.text:embed@1 → features.text:embed@2`: the changed functions."""
    if before is None or after is None:
        return ""
    return "".join(
        f", function {name} {_source(before.functions.get(name))} → {_source(after.functions.get(name))}"
        for name in sorted({*before.functions, *after.functions})
        if before.functions.get(name) != after.functions.get(name)
    )


def _source(function: ViewFunction | None) -> str:
    return "none" if function is None else function.source


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _pairs(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(tags.items())) or "none"


def _embedding(embedding: Embedding | None) -> str:
    if embedding is None:
        return "none"
    return f"{embedding.function} of {shown(embedding.column)} for {shown(embedding.vector)}"


def _index(index: IndexSpec) -> str:
    options = describe_options(index.parameters)
    return f"{index.kind} on {listed(index.columns)}" + (f" ({options})" if options else "")


def describe_options(parameters: Mapping[str, object]) -> str:
    """Returns the parameters of an index: `metric cosine, m 16`."""
    return ", ".join(f"{name} {_option(value)}" for name, value in parameters.items())


def _option(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _text(text: str) -> str:
    short = text if len(text) <= 60 else text[:57] + "…"
    return f"“{short}”" if text else "none"
