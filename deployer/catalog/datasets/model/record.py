"""The record of a dataset of recordings: a property in the instance's log that names the versions of the dataset's
tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from deployer.datasets.files.named_rows import NamedVersion
from deployer.errors import Corrupt
from deployer.platform.storage.envelope import FORGED
from deployer.state.log.codec import Mismatch, decode, encode
from deployer.state.model.catalog_savepoints import catalog_savepoints, log_of_dataset
from deployer.state.model.declared_properties import DATASET_NAME, RECORDINGS
from deployer.state.model.entities import JSON, InstanceState

FOLDER = "_catalog"  #: the folder below the instance's root that has a folder for each dataset

Kind = Literal["dataset", "blueprints"]


@dataclass(frozen=True, slots=True)
class RowVersion:
    """A version of one of a dataset's tables, and its number of rows. Version 0 means that no version exists yet."""

    version: int = 0
    rows: int = 0

    @property
    def named(self) -> NamedVersion:
        return NamedVersion(self.version, self.rows)


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """A search index of a component.

    `config` is the index's description for clients. `dimension` is the length of its vectors, and 0 for texts.
    `settings` are the settings that the index is built with.
    """

    index_id: str
    entity: str
    component: str
    timeline: str
    kind: Literal["text", "vector"]
    config: bytes
    metric: Literal["L2", "cosine", "dot"] = "cosine"
    dimension: int = 0
    settings: Mapping[str, JSON] = field(default_factory=dict)
    rows: RowVersion = RowVersion()

    @property
    def column(self) -> tuple[str, str]:
        return self.entity, self.component


@dataclass(frozen=True, slots=True)
class DatasetRecord:
    """A dataset. Ids have 32 hex digits; times are milliseconds since 1970.

    `blueprints` is the id of its dataset of blueprints, and empty for a dataset of blueprints. `sources` is the number
    of registered files: each file has a number below it. `declared` is the declaration of its spec (see
    `deployer.catalog.datasets.declared`). `restored` is the version of the instance's log that last restored the
    dataset to a savepoint, or 0: the rows of earlier versions may differ from its rows.
    """

    dataset_id: str
    name: str
    kind: Kind
    created_at: int
    updated_at: int
    blueprints: str = ""
    default_blueprint: str | None = None
    sources: int = 0
    layers: RowVersion = RowVersion()
    chunks: RowVersion = RowVersion()
    tasks: RowVersion = RowVersion()
    searches: tuple[SearchIndex, ...] = field(default=(), metadata={"sparse": True})
    declared: Mapping[str, JSON] | None = field(default=None, metadata={"sparse": True})
    restored: int = field(default=0, metadata={"sparse": True})

    @property
    def key(self) -> str:
        """The name of the dataset's property in the instance's log."""
        return RECORDINGS + self.dataset_id

    @property
    def log(self) -> str:
        """The name of the log that has the runs of the dataset's maintenance."""
        return log_of_dataset(self.dataset_id, self.created_at)

    def as_json(self) -> JSON:
        return encode(self)


def folder_of(root: str, dataset_id: str) -> str:
    """Returns the folder of a dataset's tables."""
    return f"{root.rstrip('/')}/{FOLDER}/{dataset_id}"


def records_of(instance: InstanceState) -> Iterator[DatasetRecord]:
    """Yields the records of all datasets. Raises Corrupt for an invalid record."""
    for name, value in instance.properties.items():
        if name.startswith(RECORDINGS):
            yield _of(value)


def saved_records(instance: InstanceState) -> Iterator[DatasetRecord]:
    """Yields the records of datasets in all savepoints. Raises Corrupt for an invalid record."""
    for savepoint in catalog_savepoints(instance).values():
        for name, value in savepoint.records.items():
            if name.startswith(RECORDINGS):
                yield _of(value)


def record_of(instance: InstanceState, dataset_id: str) -> DatasetRecord | None:
    """Returns the record of the dataset with that id; None where no dataset has it. Raises Corrupt for an invalid
    record."""
    value = instance.properties.get(RECORDINGS + dataset_id)
    return None if value is None else _of(value)


def id_of_name(instance: InstanceState, name: str) -> str | None:
    """Returns the id of the dataset with that name; None where no dataset has it."""
    found = instance.properties.get(DATASET_NAME + name)
    return found if isinstance(found, str) else None


def _of(value: JSON) -> DatasetRecord:
    try:
        if not isinstance(value, Mapping):
            raise Mismatch("it is not an object")
        record: DatasetRecord = decode(DatasetRecord, value)
    except Mismatch as error:
        raise Corrupt(
            f"the entry of a dataset of recordings in the instance's log is not valid: {error}",
            where="the instance",
            remedy=FORGED,
        ) from None
    if len(record.dataset_id) != 32 or set(record.dataset_id) - set("0123456789abcdef"):
        raise Corrupt("the id of a dataset of recordings is not valid", where="the instance", remedy=FORGED)
    if not all(each.index_id.isalnum() for each in record.searches):
        raise Corrupt("the id of a search index is not valid", where="the instance", remedy=FORGED)
    return record
