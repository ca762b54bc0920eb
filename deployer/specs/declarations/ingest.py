"""Converts the `ingest` of a table to the service INGEST, and back."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deployer.errors import Position
from deployer.specs.rules import Rule
from deployer.specs.schema.ingest import IN_TRIGGER, INGEST_OPTIONS
from deployer.specs.types.types import Column
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

Report = Callable[[Position, Rule, str, str], None]


def with_ingest(services: Node | None, ingest: Node | None) -> Node | None:
    """Returns the services with INGEST as `ingest` declares it, each value with its place."""
    if ingest is None or not isinstance(ingest.value, dict):
        return services
    form = dict(ingest.value)
    options = {name: form.pop(name) for name in tuple(form) if name in INGEST_OPTIONS}
    trigger = form.get("trigger")
    if trigger is not None and isinstance(trigger.value, dict):
        parts = dict(trigger.value)
        options |= {name: parts.pop(name) for name in IN_TRIGGER if name in parts}
        form["trigger"] = trigger._replace(value=parts)
        if not parts and trigger.value:
            form.pop("trigger")  # only a queue: the schedule is the default one
    form["options"] = ingest._replace(value=options)
    own = services.value if services is not None and isinstance(services.value, dict) else {}
    return (services or ingest)._replace(value={**own, "ingest": ingest._replace(value=form)})


def ingest_document(form: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a service INGEST in the form of `services` as the property `ingest` declares it."""
    options = dict(form.get("options", {}))
    trigger = {**form.get("trigger", {}), **{name: options.pop(name) for name in IN_TRIGGER if name in options}}
    found: dict[str, Any] = {"files": options.pop("files", "")}
    found |= {"trigger": trigger} if trigger else {}
    found |= {name: form[name] for name in ("trigger_mode", "cluster") if name in form}
    if found.get("trigger_mode") == "AUTOMATIC":
        found.pop("trigger_mode")
    return found | options


def check_ingest(
    node: Node | None,
    columns: Sequence[Column],
    row_keys: Sequence[str],
    lacks: Callable[[str], bool],
    root: str,
    report: Report,
) -> None:
    """Reports columns of `on` that the table does not have, options that exclude each other, and a place within the
    lake's `root`, which is absolute. A run checks the place again: on a disk, paths may be links."""
    parts: Mapping[str, Node] = node.value if node is not None and isinstance(node.value, dict) else {}
    if node is None:
        return
    mode = parts["mode"].value if "mode" in parts else "append"
    on = parts.get("on")
    if on is not None and mode != "upsert":
        report(on.key_at, Rule.SERVICE_OPTION, "`on` is given without `mode: upsert`", "add it, or remove `on`")
    if mode == "upsert" and on is None and not row_keys:
        what = "`mode: upsert` needs columns to find rows by, and the table has no row keys"
        report(parts["mode"].at, Rule.SERVICE_OPTION, what, "add `on: [COLUMN]`, or declare `row_keys`")
    names = tuple(column.name for column in columns)
    for item in on.value if on is not None and isinstance(on.value, list) else ():
        if item.value not in names and lacks(str(item.value)):
            near = nearest(item.value, names)
            remedy = f"did you mean {near}?" if near else "name one of the table's columns"
            report(item.at, Rule.SERVICE_OPTION, f"no column `{item.value}`, which `on` names", remedy)
    files, queue = parts.get("files"), parts.get("trigger")
    places = files.value if files is not None and isinstance(files.value, list) else [each for each in (files,) if each]
    for each in places:
        if root and _normal(str(each.value)).startswith(_normal(root)):
            what = f"the place lies within the lake's own root {root}"
            report(each.at, Rule.SERVICE_OPTION, what, "use a place outside of the root")
    named = queue.value.get("queue") if queue is not None and isinstance(queue.value, dict) else None
    if named is not None and any(not str(each.value).startswith("s3://") for each in places):
        report(named.at, Rule.SERVICE_OPTION, "a queue names objects on S3, and `files` is on the disk", "remove it")


def _normal(place: str) -> str:
    """Returns the canonical place of a folder or file, with a slash at its end."""
    return f"{place if '://' in place else posixpath.normpath(place)}".rstrip("/") + "/"
