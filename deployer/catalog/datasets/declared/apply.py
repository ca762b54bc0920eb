"""Applies a declaration to a dataset. Each step is one commit, and the same declaration can be applied again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deployer.catalog.datasets.declared.live import BLUEPRINT, PENDING, declaration, live_of, pending_of
from deployer.catalog.datasets.declared.search_indexes import build_index, has_component
from deployer.catalog.datasets.model.record import DatasetRecord, folder_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reading import Source
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.registration import OnDuplicate, Registration
from deployer.catalog.datasets.search.searches import Searches
from deployer.datasets.storage.options import objects_at
from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.plan import changes as c
from deployer.plan.diff.datasets import diff_datasets
from deployer.platform.files.reading import read_limited
from deployer.platform.system.failpoints import reached
from deployer.specs.loading.datasets import LARGEST_BLUEPRINT
from deployer.specs.serialized.datasets import search_index_document
from deployer.specs.types.dataset import BlueprintFile, DatasetSpec, SearchIndexSpec
from deployer.specs.values.root import resolve_root
from deployer.state.store import StateStore

_FILES = "files"  #: the folder of blueprints that are copied into the lake


@dataclass(frozen=True, slots=True)
class DeclaredDatasets:
    """The declared datasets of the instance at `root`. Paths of blueprints are relative to the folder `project`."""

    store: StateStore
    root: str
    project: Path

    @property
    def datasets(self) -> Datasets:
        return Datasets(self.store, self.root)

    def create(self, spec: DatasetSpec, owner: str) -> DatasetRecord:
        """Creates a dataset as declared, or takes over the dataset that has the name and no other owner.

        Raises Refused for a dataset that another stack manages, AlreadyThere where another kind of entry has the name,
        and the errors of `update`.
        """
        try:
            record = self.datasets.by_name(spec.name)
        except NotFound:
            record = self.datasets.create(spec.name)
            reached("catalog:dataset-created")
        return self.update(record.dataset_id, spec, owner)

    def update(self, dataset_id: str, spec: DatasetSpec, owner: str) -> DatasetRecord:
        """Applies the differences between the dataset and `spec`, in the order of `diff_datasets`.

        Raises Refused for a dataset that another stack manages. Raises InvalidInput for a blueprint or a search index
        that cannot be made; the changes before it are then applied.
        """
        live = live_of(self.datasets.by_id(dataset_id))
        if live.owner not in ("", owner):
            raise Refused(
                f"stack {live.owner} manages the dataset, not {owner}",
                where=spec.address,
                remedy="give it another name, or remove it from these specs",
            )
        places = {each.prefix: resolve_root(self.project, each.prefix) for each in spec.recordings}
        at = self.datasets.clock.now()
        self.datasets.update(
            dataset_id, lambda now: replace(now, declared=declaration(spec, owner, places, at, now.declared))
        )
        reached("catalog:dataset-declared")
        for change in diff_datasets(live.spec, spec):
            match change:
                case c.ChangeDefaultBlueprint(after=blueprint):
                    self._set_blueprint(dataset_id, spec, blueprint)
                case c.DropSearchIndex(index=index):
                    self._drop_index(dataset_id, index)
                case c.CreateSearchIndex(index=index) | c.RebuildSearchIndex(after=index):
                    self._make_index(dataset_id, index)
                case _:
                    continue  # the declaration in the record applies it already
            reached("catalog:dataset-changed")
        return self.datasets.by_id(dataset_id)

    def delete(self, dataset_id: str, *, allow_destroy: bool) -> None:
        """Deletes a dataset, if it exists. Its recordings stay.

        Raises Refused for a dataset that has layers and is protected, unless `allow_destroy`.
        """
        record = self.datasets.find(dataset_id)
        if record is None:
            return
        live = live_of(record)
        if live.layers and live.spec.deletion_protection and not allow_destroy:
            raise Refused(
                f"{live.layers:,} layers are registered with the dataset, and it is protected from deletion",
                where=live.spec.address,
                remedy=f"allow it: --allow-destroy {live.spec.address}",
            )
        self.datasets.delete(dataset_id)

    def build_pending(self, dataset_id: str) -> list[SearchIndexSpec]:
        """Builds declared search indexes that wait for values. Returns the indexes that it built.

        Raises InvalidInput for an index of a component that none of the dataset's recordings has.
        """
        pending = pending_of(self.datasets.by_id(dataset_id))
        return [index for index in pending if self._make_index(dataset_id, index)]

    def _make_index(self, dataset_id: str, index: SearchIndexSpec) -> bool:
        """Builds an index, or records it as pending where no recording is registered. Returns whether it was built."""
        record, indexes = self.datasets.by_id(dataset_id), Indexes(self.root)
        if not record.layers.rows:
            self.datasets.update(dataset_id, lambda now: _with_pending(now, index, add=True))
            return False
        has_component(indexes.of(record), index, record.name)
        build_index(Searches(self.datasets, indexes), dataset_id, index)
        reached("catalog:dataset-index-built")
        self.datasets.update(dataset_id, lambda now: _with_pending(now, index, add=False))
        return True

    def _drop_index(self, dataset_id: str, index: SearchIndexSpec) -> None:
        Searches(self.datasets, Indexes(self.root)).delete(dataset_id, index.entity, index.component)
        self.datasets.update(dataset_id, lambda now: _with_pending(now, index, add=False))

    def _set_blueprint(self, dataset_id: str, spec: DatasetSpec, blueprint: BlueprintFile | None) -> None:
        segment, kept = None, None
        if blueprint is not None:
            blueprints_id = self.datasets.by_id(dataset_id).blueprints
            url = self._place_of(blueprint, blueprints_id, spec)
            registration = Registration(self.datasets, Indexes(self.root))
            tasks = registration.register(blueprints_id, [Source(url)], OnDuplicate.OVERWRITE)
            reached("catalog:dataset-blueprint-registered")
            if (failed := next((task.error for task in tasks if task.error is not None), None)) is not None:
                raise InvalidInput(
                    f"the blueprint {blueprint.file} cannot be registered: {failed}",
                    where=spec.sources.get("default_blueprint") or spec.address,
                    remedy="save it from the viewer again",
                )
            segment = tasks[0].segment
            kept = {"file": blueprint.file, "sha256": blueprint.sha256, "segment": segment}

        def after(now: DatasetRecord) -> DatasetRecord:
            declared = {name: value for name, value in (now.declared or {}).items() if name != BLUEPRINT}
            at = self.datasets.clock.now()
            declared |= {BLUEPRINT: kept} if kept is not None else {}
            return replace(now, default_blueprint=segment, updated_at=at, declared=declared)

        self.datasets.update(dataset_id, after)

    def _place_of(self, blueprint: BlueprintFile, blueprints_id: str, spec: DatasetSpec) -> str:
        """Returns the URL of the blueprint. A file of the project is copied into the lake first."""
        if "://" in blueprint.file:
            return blueprint.file
        where = spec.sources.get("default_blueprint") or spec.address
        try:
            data = read_limited(self.project / blueprint.file, LARGEST_BLUEPRINT)
        except OSError as error:
            raise InvalidInput(
                f"the blueprint {blueprint.file} cannot be read: {error.strerror}",
                where=where,
                remedy="save the blueprint there, or correct the path",
            ) from None
        digest = hashlib.sha256(data).hexdigest()
        if digest != blueprint.sha256:
            raise Conflict(
                f"the blueprint {blueprint.file} was changed since the plan was made",
                where=where,
                remedy="run it again",
            )
        folder = f"{folder_of(self.root, blueprints_id)}/{_FILES}"
        objects_at(folder).put(f"{digest}.rbl", data)
        return f"{folder}/{digest}.rbl"


def _with_pending(record: DatasetRecord, index: SearchIndexSpec, *, add: bool) -> DatasetRecord:
    """Returns the record with the index among the pending indexes (`add`), or not among them."""
    waiting = {each.column: each for each in pending_of(record) if each.column != index.column}
    if add:
        waiting[index.column] = index
    declared: dict[str, Any] = {name: value for name, value in (record.declared or {}).items() if name != PENDING}
    if waiting:
        declared[PENDING] = [search_index_document(waiting[column]) for column in sorted(waiting)]
    return replace(record, declared=declared)
