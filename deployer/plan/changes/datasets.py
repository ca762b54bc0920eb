"""Changes of a dataset of recordings. Its segments are data, and no change is about them."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.specs.types.dataset import BlueprintFile, DatasetService, DatasetSpec, RecordingSource, SearchIndexSpec


@dataclass(frozen=True, slots=True)
class CreateDataset:
    kind = "CreateDataset"
    address: str
    spec: DatasetSpec


@dataclass(frozen=True, slots=True)
class DeleteDataset:
    """A deletion. The recordings stay where they are; their registrations are deleted."""

    kind = "DeleteDataset"

    address: str


@dataclass(frozen=True, slots=True)
class ChangeSources:
    """The places of new recordings. Registered recordings stay."""

    kind = "ChangeSources"

    address: str
    before: tuple[RecordingSource, ...]
    after: tuple[RecordingSource, ...]


@dataclass(frozen=True, slots=True)
class ChangeRegister:
    kind = "ChangeRegister"
    address: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class CreateSearchIndex:
    kind = "CreateSearchIndex"
    address: str
    index: SearchIndexSpec


@dataclass(frozen=True, slots=True)
class DropSearchIndex:
    kind = "DropSearchIndex"
    address: str
    index: SearchIndexSpec


@dataclass(frozen=True, slots=True)
class RebuildSearchIndex:
    kind = "RebuildSearchIndex"
    address: str
    before: SearchIndexSpec
    after: SearchIndexSpec


@dataclass(frozen=True, slots=True)
class ChangeDefaultBlueprint:
    kind = "ChangeDefaultBlueprint"
    address: str
    before: BlueprintFile | None
    after: BlueprintFile | None


@dataclass(frozen=True, slots=True)
class ChangeVersionsKept:
    """The time for which replaced versions of the dataset's tables are kept."""

    kind = "ChangeVersionsKept"

    address: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangeDatasetServices:
    """The scheduled work of the agent for the dataset."""

    kind = "ChangeDatasetServices"

    address: str
    before: tuple[DatasetService, ...]
    after: tuple[DatasetService, ...]
