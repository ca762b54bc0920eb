"""Dataset declarations: reads documents as `DatasetSpec`s, and checks the rules of datasets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from deployer.errors import Position, Problem
from deployer.platform.files.reading import read_limited
from deployer.platform.text.units import canonical_duration
from deployer.specs.declarations.services import check_times
from deployer.specs.model import TableSpec
from deployer.specs.rules import Rule
from deployer.specs.serialized.datasets import dataset_document
from deployer.specs.sources.files import Document
from deployer.specs.types.dataset import (
    BASE,
    SERVICES,
    BlueprintFile,
    DatasetService,
    DatasetSpec,
    RecordingSource,
    SearchIndexSpec,
    defaults_of,
)
from deployer.specs.validation.plain_values import as_node
from deployer.specs.validation.validate import check_shape
from deployer.specs.yaml.nodes import Node
from deployer.state.model.declared_properties import DEFAULT_DATABASE

LARGEST_BLUEPRINT = 64 << 20  #: bytes
Report = Callable[[Position, Rule, str, str], None]


def read_datasets(
    documents: Sequence[Document], project: Path, tables: Sequence[TableSpec], problems: list[Problem]
) -> tuple[DatasetSpec, ...]:
    """Returns the valid parts of datasets; faults are added to `problems`. `tables` are those of the lake, whose names
    datasets cannot have."""

    def report(at: Position, rule: Rule, what: str, remedy: str) -> None:
        problems.append(Problem(at, what, remedy, rule))

    found = [read_dataset(document, project, report) for document in documents]
    names: dict[str, DatasetSpec] = {}
    of_tables = {table.full_name: table for table in tables}
    for spec, document in zip(found, documents, strict=True):
        if "name" in document.invalid:
            continue
        at = spec.sources.get("name", spec.sources[""])
        if (table := of_tables.get(f"{DEFAULT_DATABASE}.{spec.name}")) is not None:
            what = f"dataset `{spec.name}` has the name of table `{table.full_name}` ({table.sources['']})"
            report(
                at, Rule.DUPLICATE_DATASET, what, "rename one of them: each entry of the catalog has a name of its own"
            )
        first = names.setdefault(spec.name.lower(), spec)
        if first is not spec:
            same = "is declared already" if first.name == spec.name else f"differs only in case from `{first.name}`"
            what = f"dataset `{spec.name}` {same} ({first.sources['']})"
            report(at, Rule.DUPLICATE_DATASET, what, "rename or remove one of them")
    return tuple(found)


def problems_of_dataset(spec: DatasetSpec) -> list[Problem]:
    """Returns the problems of a dataset that does not come from specs; files are not read. The place of a problem has
    no file."""
    problems: list[Problem] = []

    def report(at: Position, rule: Rule, what: str, remedy: str) -> None:
        problems.append(Problem(at, what, remedy, rule))

    node = as_node(dataset_document(spec))
    if shape := check_shape(node, problems):
        read_dataset(Document(node, *shape), None, report)
    return problems


def read_dataset(document: Document, project: Path | None, report: Report) -> DatasetSpec:
    """Returns the valid parts of one dataset. Without a `project`, no file is read."""
    values = document.node.value
    assert isinstance(values, dict)  # noqa: S101
    sources = {"": document.node.at} | {key: node.key_at for key, node in values.items()}
    for item in _items(document.valid("search_indexes")):
        if "column" in item:
            sources[f"search_indexes.{item['column'].value}"] = item["column"].at
    register = _text(document, "register") or "auto"
    protection = document.get("deletion_protection")
    return DatasetSpec(
        name=_text(document, "name"),
        recordings=_recordings(document.valid("sources"), report),
        register="manual" if register == "manual" else "auto",
        search_indexes=_search_indexes(document.valid("search_indexes"), report),
        default_blueprint=_blueprint(document.get("default_blueprint"), project, report),
        retention=_retention(document.get("retention"), report),
        services=_services(document.valid("services"), report),
        description=_text(document, "description").strip(),
        deletion_protection=protection is None or bool(protection.value),
        sources=sources,
    )


def _text(document: Document, name: str) -> str:
    node = document.get(name)
    return "" if node is None else str(node.value)


def _items(node: Node | None) -> list[Mapping[str, Node]]:
    items = node.value if node is not None and isinstance(node.value, list) else []
    return [item.value for item in items if isinstance(item.value, dict)]


def _recordings(node: Node | None, report: Report) -> tuple[RecordingSource, ...]:
    found: list[tuple[str, RecordingSource, Node]] = []
    for item in _items(node):
        if "prefix" not in item:
            continue
        prefix = item["prefix"]
        source = RecordingSource(str(prefix.value), str(item["layer"].value) if "layer" in item else BASE)
        if fault := _prefix_fault(source.prefix):
            report(prefix.at, Rule.SOURCE_PREFIX, *fault)
            continue
        folder = _folder(source.prefix)
        for other_folder, other, at in found:
            if folder.startswith(other_folder) or other_folder.startswith(folder):
                what = f"`{source.prefix}` (layer {source.layer}) and `{other.prefix}` (layer {other.layer}, {at.at})"
                what += " have files in common, which would be registered twice"
                report(prefix.at, Rule.SOURCE_OVERLAP, what, "give each source a prefix of its own")
                break
        found.append((folder, source, prefix))
    return tuple(sorted((source for _, source, _ in found), key=lambda each: each.prefix))


def _folder(prefix: str) -> str:
    """Returns a prefix in a form with which every prefix below it begins."""
    if "://" in prefix:
        return f"{prefix.rstrip('/')}/"
    return f"{os.path.normpath(prefix).rstrip('/')}/".removeprefix("./")


def _prefix_fault(prefix: str) -> tuple[str, str] | None:
    """Returns the fault of a prefix, and what to do."""
    parts = urlsplit(prefix)
    if "://" not in prefix:
        return None
    if parts.scheme != "s3":
        remedy = "write the path alone" if parts.scheme == "file" else "write a folder or s3://BUCKET/PREFIX"
        return f"`prefix` cannot be a URL of {parts.scheme or 'no scheme'}", remedy
    if "@" in parts.netloc or ":" in parts.netloc:
        remedy = "write s3://BUCKET/PREFIX; credentials come from the environment or the AWS profile"
        return "`prefix` has credentials or a port in it", remedy
    if not parts.netloc or parts.query or parts.fragment:
        return f"`{prefix}` is not a prefix in S3", "write s3://BUCKET/PREFIX, without a query or fragment"
    return None


def _search_indexes(node: Node | None, report: Report) -> tuple[SearchIndexSpec, ...]:
    found: dict[str, SearchIndexSpec] = {}
    for item in _items(node):
        if not {"column", "timeline", "kind"} <= item.keys():
            continue
        column, kind = str(item["column"].value), str(item["kind"].value)
        defaults = defaults_of(kind)
        parameters = {}
        for name, value in item.items():
            if name in ("column", "timeline", "kind"):
                continue
            if name not in defaults:
                what = f"`{name}` is not a setting of a search index of kind {kind}"
                report(value.key_at, Rule.SEARCH_INDEX, what, f"remove it, or use one of {', '.join(defaults)}")
            elif value.value != defaults[name]:
                parameters[name] = value.value
        if column in found:
            what = f"component `{column}` has two search indexes"
            report(item["column"].at, Rule.DUPLICATE_SEARCH_INDEX, what, "keep one of them")
            continue
        timeline = str(item["timeline"].value)
        found[column] = SearchIndexSpec(column, timeline, "text" if kind == "text" else "vector", parameters)
    return tuple(found[column] for column in sorted(found))


def _blueprint(node: Node | None, project: Path | None, report: Report) -> BlueprintFile | None:
    if node is None:
        return None
    file = str(node.value)
    if file.startswith("s3://"):
        if fault := _prefix_fault(file):
            report(node.at, Rule.BLUEPRINT_FILE, fault[0].replace("`prefix`", "`default_blueprint`"), fault[1])
        return BlueprintFile(file)
    top = project or Path("/project")
    path = Path(os.path.realpath(top / file))
    if "://" in file or not path.is_relative_to(top):
        what = f"`default_blueprint` is not a file of the project: {file}"
        report(node.at, Rule.BLUEPRINT_FILE, what, "write its path within the project, or s3://BUCKET/KEY")
        return BlueprintFile(file)
    if project is None:
        return BlueprintFile(file)
    try:
        data = read_limited(path, LARGEST_BLUEPRINT)
    except OSError as error:
        what = f"the blueprint `{file}` cannot be read: {error.strerror}"
        report(node.at, Rule.BLUEPRINT_FILE, what, "save the blueprint there, or correct the path")
        return BlueprintFile(file)
    return BlueprintFile(file, hashlib.sha256(data).hexdigest())


def _services(node: Node | None, report: Report) -> tuple[DatasetService, ...]:
    forms = node.value if node is not None and isinstance(node.value, dict) else {}
    found = []
    for name in SERVICES:
        parts = forms[name].value if name in forms else None
        if not isinstance(parts, dict) or "schedule" not in parts:
            continue
        check_times(parts["schedule"], parts.get("timezone"), report)
        zone = str(parts["timezone"].value) if "timezone" in parts else "UTC"
        found.append(DatasetService(name, str(parts["schedule"].value), zone))
    return tuple(found)


def _retention(node: Node | None, report: Report) -> str | None:
    if node is None:
        return None
    found = canonical_duration(str(node.value))
    if found == "0d":
        what = "`retention` is zero, and readers need versions for at least an hour"
        report(node.at, Rule.DATASET_RETENTION, what, "write a time such as 7d")
    return found
