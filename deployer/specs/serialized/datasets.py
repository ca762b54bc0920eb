"""The JSON form of datasets of recordings, for Pulumi's inputs and the state store, and their spec documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from deployer.errors import InvalidInput
from deployer.platform.text.units import canonical_duration
from deployer.specs.schema.parts import ref
from deployer.specs.types.dataset import (
    BASE,
    SERVICES,
    BlueprintFile,
    DatasetService,
    DatasetSpec,
    RecordingSource,
    SearchIndexSpec,
    SearchKind,
    defaults_of,
)
from deployer.specs.validation.plain_values import flag, mapping, objects, optional_text, refuse_unfit, text

JSON = Any
_SHA256 = re.compile(r"[0-9a-f]{64}")
BLUEPRINT_SHA256 = "blueprint_sha256"


def dataset_document(spec: DatasetSpec) -> dict[str, JSON]:
    """Returns the Dataset document that declares `spec`, as plain values. Its fields are in the usual order of
    specs."""
    form: dict[str, JSON] = {"kind": "Dataset", "name": spec.name}
    if spec.description:
        form["description"] = spec.description
    if spec.recordings:
        form["sources"] = [source_document(each) for each in spec.recordings]
    if spec.register != "auto":
        form["register"] = spec.register
    if spec.search_indexes:
        form["search_indexes"] = [search_index_document(each) for each in spec.search_indexes]
    if spec.default_blueprint is not None:
        form["default_blueprint"] = spec.default_blueprint.file
    if spec.retention is not None:
        form["retention"] = spec.retention
    if spec.services:
        form["services"] = {each.name: service_document(each) for each in spec.services}
    if not spec.deletion_protection:
        form["deletion_protection"] = False
    return form


def source_document(source: RecordingSource) -> dict[str, JSON]:
    """Returns a source in the form of specs."""
    return {"prefix": source.prefix, **({"layer": source.layer} if source.layer != BASE else {})}


def search_index_document(index: SearchIndexSpec) -> dict[str, JSON]:
    """Returns a search index in the form of specs."""
    return {"column": index.column, "timeline": index.timeline, "kind": index.kind, **index.parameters}


def service_document(service: DatasetService) -> dict[str, JSON]:
    """Returns a service in the form of specs."""
    zone = {"timezone": service.timezone} if service.timezone != "UTC" else {}
    return {"schedule": service.schedule, **zone}


def dataset_to_json(spec: DatasetSpec) -> dict[str, JSON]:
    """Returns a dataset as JSON, without properties that equal their defaults."""
    form = dataset_document(spec)
    form.pop("kind")
    if spec.default_blueprint is not None and spec.default_blueprint.sha256:
        form[BLUEPRINT_SHA256] = spec.default_blueprint.sha256
    return form


def dataset_from_json(given: JSON) -> DatasetSpec:
    """Returns the dataset from the form that `dataset_to_json` returns. Raises InvalidInput for a form that a spec
    cannot declare."""
    if not isinstance(given, Mapping):
        raise InvalidInput("a dataset's declaration is not an object")
    form: dict[str, JSON] = {**given, "kind": "Dataset"}
    digest = form.pop(BLUEPRINT_SHA256, "")
    if not isinstance(digest, str) or (digest and not _SHA256.fullmatch(digest)):
        raise InvalidInput(f"`{BLUEPRINT_SHA256}` is not a SHA-256 in hex digits")
    refuse_unfit("dataset", partial(ref, "Dataset"), form)
    sources = (
        RecordingSource(text(each, "prefix"), text(each, "layer", BASE)) for each in objects(form, "sources", ())
    )
    blueprint, retention = optional_text(form, "default_blueprint"), optional_text(form, "retention")
    return DatasetSpec(
        name=text(form, "name"),
        recordings=tuple(sorted(sources, key=lambda each: each.prefix)),
        register="manual" if text(form, "register", "auto") == "manual" else "auto",
        search_indexes=tuple(
            sorted(map(search_index_from_json, objects(form, "search_indexes", ())), key=lambda each: each.column)
        ),
        default_blueprint=None if blueprint is None else BlueprintFile(blueprint, digest),
        retention=None if retention is None else canonical_duration(retention),
        services=_services(mapping(form, "services", {})),
        description=text(form, "description", ""),
        deletion_protection=flag(form, "deletion_protection", True),
    )


def _services(form: Mapping[str, JSON]) -> tuple[DatasetService, ...]:
    found = ((name, mapping(form, name)) for name in SERVICES if name in form)
    return tuple(DatasetService(name, text(each, "schedule"), text(each, "timezone", "UTC")) for name, each in found)


def search_index_from_json(form: Mapping[str, JSON]) -> SearchIndexSpec:
    """Returns the search index from the form that `search_index_document` returns. The schema must accept the form."""
    kind: SearchKind = "text" if text(form, "kind") == "text" else "vector"
    parameters: dict[str, object] = {}
    for name, default in defaults_of(kind).items():
        value = form.get(name, default)
        value = int(value) if isinstance(value, float) else value  # a protobuf Struct stores integers as doubles
        if value != default:
            parameters[name] = value
    return SearchIndexSpec(text(form, "column"), text(form, "timeline"), kind, parameters)
