"""Datasets of recordings as specs declare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deployer.errors import Position

BASE = "base"  #: the layer of a source that does not name one
TEXT_DEFAULTS: Mapping[str, object] = {"tokenizer": "simple", "store_position": False}
VECTOR_DEFAULTS: Mapping[str, object] = {"metric": "cosine", "num_sub_vectors": 16, "target_partition_num_rows": 8192}

Register = Literal["auto", "manual"]
SearchKind = Literal["text", "vector"]
ServiceName = Literal["register", "maintain"]
SERVICES: tuple[ServiceName, ...] = ("register", "maintain")


@dataclass(frozen=True, slots=True)
class RecordingSource:
    """The place of a dataset's recordings: a folder or a prefix in S3, and the layer of these recordings."""

    prefix: str
    layer: str = BASE


@dataclass(frozen=True, slots=True)
class SearchIndexSpec:
    """A search index of a dataset. `column` is `/entity/path:Component`. `parameters` has only values that differ from
    the defaults of the kind."""

    column: str
    timeline: str
    kind: SearchKind
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def entity(self) -> str:
        return self.column.partition(":")[0]

    @property
    def component(self) -> str:
        return self.column.partition(":")[2]


@dataclass(frozen=True, slots=True)
class BlueprintFile:
    """The blueprint with which viewers show a dataset. `sha256` is the hash of a file on disk, empty for a file in
    S3."""

    file: str
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class DatasetService:
    """The scheduled work of an agent for a dataset: `register` registers new recordings, `maintain` maintains the
    dataset's tables."""

    name: ServiceName
    schedule: str  #: a cron expression of five fields
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A dataset of recordings. Its segments are data, so the declaration does not contain them."""

    name: str
    recordings: tuple[RecordingSource, ...] = ()  #: `sources` in specs
    register: Register = "auto"
    search_indexes: tuple[SearchIndexSpec, ...] = ()  #: by column
    default_blueprint: BlueprintFile | None = None
    retention: str | None = None  #: how long replaced versions are kept, canonical; None: until a person removes them
    services: tuple[DatasetService, ...] = ()  #: in the order of SERVICES
    description: str = ""
    deletion_protection: bool = True
    sources: Mapping[str, Position] = field(default_factory=dict, compare=False, repr=False)

    @property
    def address(self) -> str:
        return f"dataset/{self.name}"


def defaults_of(kind: str) -> Mapping[str, object]:
    """Returns the parameters of a kind of search index with their defaults."""
    return TEXT_DEFAULTS if kind == "text" else VECTOR_DEFAULTS
