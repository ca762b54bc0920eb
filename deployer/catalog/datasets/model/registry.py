"""Creates, renames, changes and deletes the datasets of an instance by commits to the instance's log."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from deployer.catalog.datasets.model.record import (
    DatasetRecord,
    folder_of,
    id_of_name,
    record_of,
    records_of,
    saved_records,
)
from deployer.catalog.external.registry import free_of_entries, is_taken
from deployer.datasets.files.named_rows import remove_folder
from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.specs.yaml.suggestions import nearest
from deployer.state.commits import LOST_RACE
from deployer.state.log.requirements import InstanceRequirement, PropertiesAre
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.catalog_savepoints import logs_of_datasets
from deployer.state.model.declared_properties import BLUEPRINTS, DATASET_NAME
from deployer.state.model.entities import INSTANCE_LOG, JSON
from deployer.state.model.names import has_control_characters
from deployer.state.store import StateStore

LONGEST_NAME = 512  #: most characters of a dataset's name
_ATTEMPTS = 20
_LOG = re.compile(r"[0-9a-f]{32}-\d+")  #: the names of logs of datasets


class AlreadyThere(Conflict):
    """The error for a name, an id or a place that is already used."""

    kind = "AlreadyThere"


@dataclass(frozen=True, slots=True)
class Datasets:
    """The datasets of the instance at `root`. Each call reads the new entries of the log. Safe for threads."""

    store: StateStore
    root: str
    clock: Clock = Clock()

    def all(self) -> Iterator[DatasetRecord]:
        """Yields all datasets, including the datasets of blueprints."""
        return records_of(self.store.instance())

    def saved(self) -> Iterator[DatasetRecord]:
        """Yields the records of datasets in savepoints. The tables and indexes that these name must not be removed."""
        return saved_records(self.store.instance())

    def lost_logs(self) -> list[str]:
        """Returns the logs of datasets that no longer exist and are in no savepoint."""
        logs = [each for each in self.store.logs() if _LOG.fullmatch(each)]
        known = logs_of_datasets(
            self.store.instance()
        )  # read after the list of logs, so that it has all of their datasets
        return [each for each in logs if each not in known]

    def find(self, dataset_id: str) -> DatasetRecord | None:
        """Returns the dataset with that id (32 hex digits); None where no dataset has it."""
        return record_of(self.store.instance(), dataset_id)

    def by_id(self, dataset_id: str) -> DatasetRecord:
        """Returns the dataset with that id (32 hex digits). Raises NotFound for an unknown id."""
        found = self.find(dataset_id)
        if found is None:
            raise NotFound(f"Entry id '{dataset_id}' not found", remedy="list the entries: one may have been deleted")
        return found

    def by_name(self, name: str) -> DatasetRecord:
        """Returns the dataset with that name. Raises NotFound for an unknown name."""
        found = id_of_name(self.store.instance(), name)
        if found is None:
            near = nearest(name, [each.name for each in self.all()])
            remedy = f"did you mean '{near}'?" if near else "list the entries: it may have been renamed"
            raise NotFound(f"Entry name '{name}' not found", remedy=remedy)
        return self.by_id(found)

    def create(self, name: str, dataset_id: str | None = None) -> DatasetRecord:
        """Creates a dataset, and a second one for its blueprints. Raises AlreadyThere for the name or id of another
        entry, and InvalidInput for an invalid name or id."""
        _require_name(name)
        own_id, blueprints_id = dataset_id or self._new_id(), self._new_id()
        if own_id == "0" * 32:
            raise InvalidInput("an entry id of zeros is not an id", remedy="leave the id out")
        now = self.clock.now()
        blueprints = DatasetRecord(blueprints_id, f"{BLUEPRINTS}{own_id}", "blueprints", now, now)
        dataset = DatasetRecord(own_id, name, "dataset", now, now, blueprints_id)
        changes = self._changes(dataset) | self._changes(blueprints)
        instance = self.store.instance()
        if record_of(instance, own_id) is not None:
            raise AlreadyThere(f"Entry id '{own_id}' already exists", remedy="leave the id out")
        self._require_free(name)
        free = PropertiesAre(dict.fromkeys(changes))
        try:
            self.store.commit(INSTANCE_LOG, [SetInstanceProperties(changes)], [free, *free_of_entries(instance, name)])
        except Conflict as conflict:
            raise _taken(name) from conflict
        return dataset

    def rename(self, dataset_id: str, name: str) -> DatasetRecord:
        """Renames a dataset. Raises NotFound for an unknown id, AlreadyThere for the name of another entry, Refused for
        a dataset of blueprints, and Conflict where other writers keep changing the dataset."""
        _require_name(name)
        for _ in LOST_RACE.attempts(_ATTEMPTS):
            before = self._own(dataset_id)
            if before.name == name:
                return before
            free = free_of_entries(self.store.instance(), name)
            self._require_free(name)
            after = replace(before, name=name, updated_at=self.clock.now())
            changes = self._changes(after) | {DATASET_NAME + before.name: None}
            if self._is_committed(before, changes, (PropertiesAre({DATASET_NAME + name: None}), *free)):
                return after
        raise _busy(dataset_id)

    def set_default_blueprint(self, dataset_id: str, segment: str | None) -> DatasetRecord:
        """Sets the blueprint with which viewers show a dataset; None unsets it. Raises NotFound for an unknown id."""
        return self.update(
            dataset_id, lambda before: replace(before, default_blueprint=segment, updated_at=self.clock.now())
        )

    def update(self, dataset_id: str, change: Callable[[DatasetRecord], DatasetRecord]) -> DatasetRecord:
        """Commits a change of a dataset's record and returns the new record. `change` computes the new record, again
        for each attempt that lost a race.

        Raises NotFound for an unknown id, and Conflict where other writers keep changing the dataset.
        """
        for _ in LOST_RACE.attempts(_ATTEMPTS):
            before = self.by_id(dataset_id)
            after = change(before)
            if after == before or self.is_replaced(before, after):
                return after
        raise _busy(dataset_id)

    def delete(self, dataset_id: str) -> None:
        """Deletes a dataset and its dataset of blueprints. Recordings stay, and so do tables that a savepoint names.

        Raises NotFound for an unknown id, Refused for a dataset of blueprints, and Conflict where other writers keep
        changing the dataset.
        """
        for _ in LOST_RACE.attempts(_ATTEMPTS):
            before = self._own(dataset_id)
            blueprints = self.find(before.blueprints)
            changes: dict[str, JSON] = dict.fromkeys(self._changes(before))
            if blueprints is not None:
                changes |= dict.fromkeys(self._changes(blueprints))
            if self._is_committed(before, changes):
                reached("catalog:before-removing-files")
                saved = {each.dataset_id for each in self.saved()}
                for each in {before.dataset_id, before.blueprints} - saved:
                    remove_folder(folder_of(self.root, each))
                for log in self.lost_logs():
                    self.store.remove_log(log)
                return
        raise _busy(dataset_id)

    def is_replaced(self, before: DatasetRecord, after: DatasetRecord) -> bool:
        """Commits `after` in place of `before`; returns False, and changes nothing, where the dataset was changed
        meanwhile."""
        return self._is_committed(before, {after.key: after.as_json()})

    def _is_committed(
        self, before: DatasetRecord, changes: Mapping[str, JSON], also: tuple[InstanceRequirement, ...] = ()
    ) -> bool:
        same = PropertiesAre({before.key: before.as_json()})
        try:
            self.store.commit(INSTANCE_LOG, [SetInstanceProperties(changes)], [same, *also])
        except Conflict:
            return False
        return True

    def _own(self, dataset_id: str) -> DatasetRecord:
        found = self.by_id(dataset_id)
        if found.kind == "blueprints":
            raise Refused(
                "a dataset of blueprints is renamed and deleted with its dataset",
                where=found.name,
                remedy="rename or delete the dataset itself",
            )
        return found

    def _require_free(self, name: str) -> None:
        if is_taken(self.store.instance(), name) or name == "__entries":
            raise _taken(name)

    @staticmethod
    def _changes(record: DatasetRecord) -> dict[str, JSON]:
        """Returns the properties of the instance that a dataset has: its record, and its id under its name."""
        return {record.key: record.as_json(), DATASET_NAME + record.name: record.dataset_id}

    def _new_id(self) -> str:
        return f"{self.clock.now() * 1_000_000:016x}{secrets.token_hex(8)}"


def _require_name(name: str) -> None:
    if not name or len(name) > LONGEST_NAME or has_control_characters(name):
        raise InvalidInput(
            f"{name[:40]!r} cannot be the name of a dataset",
            remedy=f"use 1 to {LONGEST_NAME} characters that can be shown",
        )


def _taken(name: str) -> AlreadyThere:
    return AlreadyThere(f"Entry name '{name}' already exists", remedy="choose another name")


def _busy(dataset_id: str) -> Conflict:
    return Conflict(
        "other writers keep changing the dataset", where=dataset_id, remedy="try again when there are fewer writers"
    )
