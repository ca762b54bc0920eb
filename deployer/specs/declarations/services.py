"""Service declarations: reads the `services` of a table, merged over those of its instance, as `ServiceSpec`s."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import available_timezones

from deployer.errors import InvalidInput, Position
from deployer.specs.declarations.indexes import find_column, is_unknown
from deployer.specs.model import ServiceSpec, Trigger
from deployer.specs.rules import Rule
from deployer.specs.schema.services import (
    KINDS,
    declared_options,
    default_trigger,
    trigger_values,
)
from deployer.specs.types.lance_support import is_time_zone
from deployer.specs.types.types import Column, format_type
from deployer.specs.values.keys import is_key_type
from deployer.specs.values.schedules import check_schedule
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest, reference_remedy

Report = Callable[[Position, Rule, str, str], None]
Nodes = Mapping[str, Node]


@dataclass(frozen=True, slots=True)
class Defaults:
    """An instance's declarations for services of its tables. `clusters` is None where not all are known. `root` is the
    absolute root of the lake, empty where it is unknown."""

    services: Node | None = None
    clusters: Collection[str] | None = ()
    root: str = ""


def read_services(
    node: Node | None,
    defaults: Defaults,
    columns: Sequence[Column],
    keys: Sequence[str] | None,
    lacks: Callable[[str], bool],
    report: Report,
    *,
    expires: bool = False,
) -> tuple[ServiceSpec, ...]:
    """Returns the services of a table with those `columns` and row and sort `keys`, None where keys have problems.

    `lacks` returns whether the table has no column of a name. `expires`: the table has retention, and so the service
    EXPIRE, declared or not.
    """
    found = []
    for kind, properties, at in declarations(node, defaults, expires=expires):
        raw = "unsafe_raw" in properties
        if not raw and kind == "CLUSTER":
            _check_columns(properties, at, columns, keys, lacks, report)
        if not raw and kind == "BACKFILL":
            _check_computed(properties, columns, lacks, report)
        _check_cluster(properties, defaults.clusters, report)
        options = {name: option.plain() for name, option in _options(properties).items()}
        cluster = properties.get("cluster")
        found.append(
            ServiceSpec(
                kind,
                _trigger(kind, properties, report),
                str(cluster.value) if cluster else None,
                {name: str(options[name]) for name in sorted(options)} if raw else declared_options(kind, options),
                raw,
            )
        )
    return tuple(found)


def declarations(
    node: Node | None, defaults: Defaults, *, expires: bool = False
) -> Iterator[tuple[str, Nodes, Position]]:
    """Returns the kind, properties and place of each service of a table."""
    own, of_all = _properties(node), _properties(defaults.services)
    for kind in KINDS:
        mine, theirs = own.get(kind.lower()), of_all.get(kind.lower())
        declared = mine or theirs
        if declared is None and expires and kind == "EXPIRE":
            declared = _IMPLIED
        if declared is None:
            continue
        properties = _over(_properties(mine), _properties(theirs))
        enabled = properties.get("enabled")
        if enabled is None or enabled.value is True:
            yield kind, properties, declared.key_at


_IMPLIED = Node({}, "", 1, 1)  #: the declaration of a service that another property implies


def _over(own: Nodes, defaults: Nodes) -> Nodes:
    """Returns a table's declaration of a service, merged over that of its instance. Options are merged one by one,
    unless they are unchecked."""
    if not own or not defaults or "unsafe_raw" in own or ("unsafe_raw" in defaults and "options" in own):
        return own or defaults
    kept = {name: node for name, node in defaults.items() if name != "trigger" or "trigger_mode" not in own}
    joined = {**kept, **own}
    if "options" in own and "options" in kept:
        values = {**_properties(kept["options"]), **_properties(own["options"])}
        joined["options"] = own["options"]._replace(value=values)
    return joined


def service_places(node: Node | None, defaults: Defaults) -> Iterator[tuple[str, Position]]:
    """Yields the places of services and their properties, by path: `compact`, `compact.trigger`,
    `compact.options.strategy`."""
    for kind, properties, at in declarations(node, defaults):
        name = kind.lower()
        yield name, at
        for key, child in properties.items():
            yield f"{name}.{key}", child.key_at
            if key in ("options", "trigger"):
                yield from ((f"{name}.{key}.{part}", each.key_at) for part, each in _properties(child).items())


def _trigger(kind: str, properties: Nodes, report: Report) -> Trigger | None:
    mode, node = properties.get("trigger_mode"), properties.get("trigger")
    if mode is not None and mode.value == "ON_DEMAND":
        if node is not None:
            what = f"{kind} has a trigger and runs on demand only"
            report(node.key_at, Rule.SERVICE_TRIGGER, what, "remove the trigger, or write `trigger_mode: AUTOMATIC`")
        return None
    parts = _properties(node)
    if node is None:
        return Trigger(**default_trigger(kind))
    schedule, zone = parts.get("schedule"), parts.get("timezone")
    if check_times(schedule, zone, report) and zone is not None and schedule is None:
        what = "a time zone without a schedule has no effect"
        report(zone.key_at, Rule.SERVICE_TRIGGER, what, "add `schedule:`, or remove it")
    if not parts:
        what = f"the trigger of {kind} has no condition"
        report(node.at, Rule.SERVICE_TRIGGER, what, "add a schedule or a number of commits, or remove `trigger:`")
    return Trigger(**trigger_values({name: each.value for name, each in parts.items()}))


def check_times(schedule: Node | None, zone: Node | None, report: Report) -> bool:
    """Reports faults of a schedule and its time zone. Returns whether the zone is valid."""
    if schedule is not None:
        try:
            check_schedule(str(schedule.value))
        except InvalidInput as error:
            report(schedule.at, Rule.SERVICE_SCHEDULE, error.what, error.remedy)
    if zone is not None and not is_time_zone(str(zone.value)):
        near = nearest(zone.value, sorted(available_timezones()))
        remedy = f"did you mean {near}?" if near else "use a name such as UTC or Europe/Berlin"
        report(zone.at, Rule.UNKNOWN_TIME_ZONE, f"unknown time zone `{zone.value}`", remedy)
        return False
    if zone is not None and str(zone.value)[0] in "+-":
        what, remedy = f"`{zone.value}` is an offset, not a time zone", "use a name such as UTC or Europe/Berlin"
        report(zone.at, Rule.UNKNOWN_TIME_ZONE, what, remedy)
        return False
    return True


def _check_cluster(properties: Nodes, clusters: Collection[str] | None, report: Report) -> None:
    node = properties.get("cluster")
    if node is None or clusters is None or node.value in clusters:
        return
    name, names = str(node.value), tuple(clusters)
    otherwise = f"use one of {', '.join(names)}" if names else "declare it in the instance's `clusters:`"
    report(node.at, Rule.UNKNOWN_CLUSTER, f"unknown cluster `{name}`", reference_remedy(name, names, otherwise))


def _check_columns(
    properties: Nodes,
    at: Position,
    columns: Sequence[Column],
    keys: Sequence[str] | None,
    lacks: Callable[[str], bool],
    report: Report,
) -> None:
    node = _options(properties).get("columns")
    if node is None:
        if keys is not None and not keys:
            what = "CLUSTER has no `columns`, and the table has no keys to take instead"
            report(at, Rule.SERVICE_OPTION, what, "add `columns:` to its `options`, or `enabled: false`")
        return
    assert isinstance(node.value, list)  # noqa: S101
    seen: set[object] = set()
    for item in node.value:
        column = find_column(columns, str(item.value))
        if item.value in seen:
            report(item.at, Rule.SERVICE_OPTION, f"`{item.value}` is in `columns` twice", "remove the second one")
        elif column is None and is_unknown(columns, str(item.value), lacks):
            near = nearest(item.value, tuple(each.name for each in columns))
            remedy = f"did you mean {near}?" if near else "name one of the table's columns"
            report(item.at, Rule.SERVICE_OPTION, f"no column `{item.value}`, which CLUSTER names", remedy)
        elif column is not None and not is_key_type(column.type):
            what = f"column `{item.value}` of type {format_type(column.type)} has no order to cluster by"
            report(item.at, Rule.SERVICE_OPTION, what, "cluster by numbers, text, binary, dates or times")
        seen.add(item.value)


def _check_computed(properties: Nodes, columns: Sequence[Column], lacks: Callable[[str], bool], report: Report) -> None:
    """Reports columns of BACKFILL that the table does not have, or that are not computed."""
    node = _options(properties).get("columns")
    by_name = {each.name: each for each in columns}
    for item in node.value if node is not None and isinstance(node.value, list) else ():
        column = by_name.get(str(item.value))
        computed = tuple(each.name for each in columns if each.computed is not None)
        if column is None and lacks(str(item.value)):
            near = nearest(item.value, computed)
            remedy = f"did you mean {near}?" if near else "name one of the table's computed columns"
            report(item.at, Rule.SERVICE_OPTION, f"no column `{item.value}`, which BACKFILL names", remedy)
        elif column is not None and column.computed is None:
            what = f"column `{item.value}`, which BACKFILL names, is not computed"
            report(item.at, Rule.SERVICE_OPTION, what, "declare `computed:` for it, or leave it out")


def _options(properties: Nodes) -> Nodes:
    return _properties(properties.get("options"))


def _properties(node: Node | None) -> Nodes:
    return node.value if node is not None and isinstance(node.value, dict) else {}
