"""Loads a lake: reads spec files as one `Lake`, or reports all their problems."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from deployer.errors import InvalidSpecs, NotFound, Position, Problem
from deployer.specs.declarations.services import Defaults
from deployer.specs.loading.instances import read_instance
from deployer.specs.loading.known import find_known
from deployer.specs.loading.schemas import Schemas
from deployer.specs.loading.tables import read_table
from deployer.specs.loading.view_properties import OF_VIEWS_ALONE, without_services
from deployer.specs.model import InstanceSpec, Lake, TableSpec
from deployer.specs.rules import Rule
from deployer.specs.sources.files import Document, Sources, read_sources
from deployer.specs.sources.limits import check_text
from deployer.specs.sources.modules import VersionOf, source_versions
from deployer.specs.sources.variables import Environment
from deployer.specs.types.dataset import DatasetSpec
from deployer.specs.values.root import absolute_root


def load_lake(
    project_dir: Path, specs_path: Path, stack: str | None = None, values: Mapping[str, str] | None = None
) -> Lake:
    """Returns the lake that a spec file, or all spec files of a folder, declare.

    A relative `specs_path` is relative to `project_dir`; positions name files relative to it. `stack` chooses overlays
    and the values of variables. `values` override these; they are the texts of the stack's Pulumi configuration. Raises
    InvalidSpecs with every problem at once, and NotFound when the file or folder does not exist.
    """
    project = Path(project_dir).resolve()
    path = project / specs_path
    if (known := find_known(project, path, stack)) is not None:
        return known
    if not path.exists():
        raise NotFound("no such file or folder of specs", where=specs_path, remedy="give the folder of the spec files")
    with _collection_paused():
        environment = Environment(stack, values or {}, f"Pulumi.{stack}.yaml" if stack else "Pulumi.yaml")
        sources = read_sources(project, path, environment)
        problems = sources.problems
        instance = _instance(sources, problems)
        schemas = _schemas(sources, problems)
        tables = _tables(sources, schemas, _defaults(sources, instance, project), problems, source_versions(project))
        datasets = _datasets(sources, project, tables, problems)
        if (over := check_text(tables)) is not None:
            problems.append(over)
    if problems or instance is None:
        raise InvalidSpecs(tuple(dict.fromkeys(problems)))  # a repeated problem of an alias counts once
    return Lake(instance, tuple(tables), tuple(sources.files), datasets)


def declared_root(
    project_dir: Path, specs_path: Path, stack: str | None = None, values: Mapping[str, str] | None = None
) -> str | None:
    """Returns the instance's root from specs with problems, which `load_lake` reports; None when these may concern the
    root.

    A file that cannot be read may contain an overlay with another root.
    """
    project = Path(project_dir).resolve()
    sources = read_sources(project, project / specs_path, Environment(stack, values or {}, ""))
    instances = _of_kind(sources, "Instance")
    if sources.incomplete or len(instances) != 1 or instances[0].get("root") is None:
        return None
    problems: list[Problem] = []
    root = read_instance(instances[0], problems).root
    return None if problems else root


def read_files(project_dir: Path, specs_path: Path, stack: str | None = None) -> list[str]:
    """Returns the files that `load_lake` reads, also of specs that have problems; relative to the project."""
    project = Path(project_dir).resolve()
    return read_sources(project, project / specs_path, Environment(stack)).files


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Pauses garbage collection: specs are trees without cycles, and searching for cycles in a million new nodes takes
    longer than reading them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _of_kind(sources: Sources, kind: str) -> list[Document]:
    return [document for document in sources.documents if document.kind == kind]


def _instance(sources: Sources, problems: list[Problem]) -> InstanceSpec | None:
    instances = _of_kind(sources, "Instance")
    if not instances:
        if not sources.incomplete:
            at = Position(sources.files[0])
            problems.append(
                Problem(at, "no Instance is declared", "add `kind: Instance` with a name and a root", Rule.NO_INSTANCE)
            )
        return None
    first, *others = instances
    for other in others:
        what = f"a second Instance beside the one of {first.node.at}"
        problems.append(Problem(other.node.at, what, "keep one, as a lake has exactly one", Rule.SECOND_INSTANCE))
    return read_instance(first, problems)


def _schemas(sources: Sources, problems: list[Problem]) -> Schemas:
    documents: dict[str, Document] = {}
    first_of: dict[str, Document] = {}
    incomplete = sources.incomplete
    for document in _of_kind(sources, "Schema"):
        node = document.get("name")
        if node is None:
            incomplete = True
            continue
        name = str(node.value)
        first = first_of.setdefault(name.lower(), document)
        if first is document:
            documents[name] = document
            continue
        other = first.get("name")
        assert other is not None  # noqa: S101
        same = "is declared already" if other.value == name else f"differs only in case from `{other.value}`"
        what = f"schema `{name}` {same} ({other.at})"
        problems.append(Problem(node.at, what, "rename or remove one of them", Rule.DUPLICATE_SCHEMA))
    schemas = Schemas(documents, incomplete, problems)
    for name in documents:
        schemas.of(name)
    return schemas


def _defaults(sources: Sources, instance: InstanceSpec | None, project: Path) -> Defaults:
    """Returns the instance's defaults for its tables, and its absolute root."""
    documents = _of_kind(sources, "Instance")
    if instance is None or len(documents) != 1:
        return Defaults(None, None)
    invalid = "clusters" in documents[0].invalid
    clusters = None if invalid else tuple(cluster.name for cluster in instance.clusters)
    return Defaults(documents[0].get("services"), clusters, absolute_root(project, instance.root))


def _tables(
    sources: Sources, schemas: Schemas, defaults: Defaults, problems: list[Problem], versions: VersionOf
) -> list[TableSpec]:
    of_tables = replace(defaults, services=without_services(defaults.services, OF_VIEWS_ALONE))
    tables = [
        (read_table(document, schemas, of_tables, problems, versions), document)
        for document in _of_kind(sources, "Table")
    ]
    for _, document in tables:
        _refuse_services_of_views(document, problems)
    if views := _of_kind(sources, "View"):
        from deployer.specs.loading.views import ViewReader, read_views  # most lakes have none

        tables += read_views(views, tables, ViewReader(schemas, defaults, problems, versions, sources.incomplete))
    named = [pair for pair in tables if not pair[1].invalid & {"database", "name"}]
    seen: dict[str, TableSpec] = {}
    for table, document in named:
        first = seen.setdefault(table.full_name.lower(), table)
        if first is not table:
            twice = first.full_name == table.full_name
            same = "is declared already" if twice else f"differs only in case from `{first.full_name}`"
            what = f"{document.kind.lower()} `{table.full_name}` {same} ({first.sources['']})"
            node = document.get("name")
            assert node is not None  # noqa: S101
            problems.append(Problem(node.at, what, "rename or remove one of them", Rule.DUPLICATE_TABLE))
    _check_renames(named, seen, problems)
    return [table for table, _ in tables]


def _datasets(
    sources: Sources, project: Path, tables: Sequence[TableSpec], problems: list[Problem]
) -> tuple[DatasetSpec, ...]:
    documents = _of_kind(sources, "Dataset")
    if not documents:
        return ()
    from deployer.specs.loading.datasets import read_datasets  # most lakes have none

    return read_datasets(documents, project, tables, problems)


def _refuse_services_of_views(document: Document, problems: list[Problem]) -> None:
    node = document.get("services")
    own = node.value if node is not None and isinstance(node.value, dict) else {}
    for kind in OF_VIEWS_ALONE:
        if (declared := own.get(kind.lower())) is not None:
            what = f"{kind} is a service of views: the rows of a table are not those of a query"
            problems.append(Problem(declared.key_at, what, f"remove `{kind.lower()}`", Rule.VIEW_SERVICE))


def _check_renames(
    tables: Sequence[tuple[TableSpec, Document]], declared: dict[str, TableSpec], problems: list[Problem]
) -> None:
    renamed: dict[str, TableSpec] = {}
    for table, document in tables:
        node, before = document.get("renamed_from"), table.former_name
        if before is None or node is None:
            continue
        first = renamed.setdefault(before.lower(), table)
        if before == table.full_name:
            rule, what = Rule.RENAMED_FROM_ITSELF, f"table `{before}` is renamed from itself"
            remedy = "remove `renamed_from`"
        elif before.lower() in declared and declared[before.lower()] is not table:
            rule = Rule.RENAMED_FROM_DECLARED
            what = f"table `{table.full_name}` is renamed from `{before}`, which is still declared"
            remedy = f"remove table `{before}`, or `renamed_from`"
        elif first is not table:
            rule = Rule.RENAMED_FROM_TWICE
            what = f"tables `{first.full_name}` and `{table.full_name}` are both renamed from `{before}`"
            remedy = "keep `renamed_from` in one of them"
        else:
            continue
        problems.append(Problem(node.at, what, remedy, rule))
