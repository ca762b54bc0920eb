"""The metadata of a commit to Lance in its transaction's properties, so that a lost record can be made again."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployer.datasets.ordering.clustering import FileClustering
from deployer.datasets.ordering.key_ranges import KeyRange
from deployer.state.model.entities import RowCounts

JOB, KIND, ROWS, FILES = "deployer.job", "deployer.kind", "deployer.rows", "deployer.files"
SOURCES = "deployer.sources"
COMPUTED = "deployer.computed"  #: which definitions computed which fragments, of a commit of columns' values
COUNTS = "deployer.counts"  #: rows inserted, updated and deleted, of a change of rows alone
RESTORE = "restore"  #: the kind of a restore's intent and of its commit metadata
UNDO = "undo restore"  #: the kind of a commit that takes a restore back
FENCE = "fence"  #: the kind of a version that changes nothing and keeps late appends out
ALSO = "deployer.also"  #: metadata of the other jobs of the same commit, as a JSON list of such properties


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A data file by the path that Lance gives it; its fragment's id is known only after the commit."""

    path: str
    partition: str | None
    keys: KeyRange | None
    sorted: bool
    clustered: FileClustering | None = None
    computed: str = ""  #: the same as in `File`


@dataclass(frozen=True, slots=True)
class ComputedFragments:
    """The identities of definitions by Lance's field ids, and the fragments whose rows they computed completely.

    In the other fragments of the commit they computed only some rows.
    """

    identities: Mapping[int, str]
    fragments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The job that made the commit, its kind, how many rows it wrote and where, and which files it read (`Job`).

    `counts` belong to a change of rows, `computed` to a commit of computed values; both are None for other commits.
    """

    job_id: str
    kind: str
    rows: int
    files: tuple[CommittedFile, ...] = ()
    sources: str = ""
    counts: RowCounts | None = None
    computed: ComputedFragments | None = None

    def to_properties(self) -> dict[str, str]:
        """Returns the properties of the transaction; files are columns of one compact JSON object, keys in base64."""
        files = self.files
        columns = {
            "path": [file.path for file in files],
            "partition": [file.partition for file in files],
            "min": [_text(file.keys.min_key) if file.keys else None for file in files],
            "max": [_text(file.keys.max_key) if file.keys else None for file in files],
            "column_min": [_texts(file.keys.column_min) if file.keys else None for file in files],
            "column_max": [_texts(file.keys.column_max) if file.keys else None for file in files],
            "sorted": [file.sorted for file in files],
        }
        if any(file.clustered for file in files):
            columns |= {
                "clustering": [file.clustered.by if file.clustered else "" for file in files],
                "cluster_min": [_texts(file.clustered.low) if file.clustered else [] for file in files],
                "cluster_max": [_texts(file.clustered.high) if file.clustered else [] for file in files],
            }
        if any(file.computed for file in files):
            columns["computed"] = [file.computed for file in files]
        properties = {
            JOB: self.job_id,
            KIND: self.kind,
            ROWS: str(self.rows),
            FILES: json.dumps(columns, separators=(",", ":")),
        }
        if (counts := self.counts) is not None:
            properties[COUNTS] = f"{counts.inserted},{counts.updated},{counts.deleted}"
        if (computed := self.computed) is not None:
            properties[COMPUTED] = json.dumps(
                {"by": {str(i): each for i, each in computed.identities.items()}, "fragments": [*computed.fragments]},
                ensure_ascii=False,
                separators=(",", ":"),
            )
        return properties | {SOURCES: self.sources} if self.sources else properties

    @staticmethod
    def of(properties: Mapping[str, str] | None) -> CommitMetadata | None:
        """Returns the metadata in a transaction's properties; None when deployer did not make the commit, or the
        metadata cannot be read."""
        if not properties or JOB not in properties:
            return None
        try:
            columns = json.loads(properties.get(FILES) or "{}")
            rows = list(zip(*(columns[name] for name in _COLUMNS), strict=True)) if columns else []
            clustered = [*zip(*(columns[name] for name in _CLUSTERED), strict=True)] if _CLUSTERED[0] in columns else []
            computed = [str(each) for each in columns.get("computed") or [""] * len(rows)]
            files = tuple(
                CommittedFile(path, partition, _range(low, high, lows, highs), bool(is_sorted), _clustered(*own), by)
                for (path, partition, low, high, lows, highs, is_sorted), own, by in zip(
                    rows, clustered or [("", (), ())] * len(rows), computed, strict=True
                )
            )
            kind, wrote = properties.get(KIND, "ingest"), int(properties.get(ROWS) or 0)
            counts = RowCounts(*map(int, properties[COUNTS].split(","))) if COUNTS in properties else None
            filled = _computed(properties[COMPUTED]) if COMPUTED in properties else None
            return CommitMetadata(properties[JOB], kind, wrote, files, properties.get(SOURCES, ""), counts, filled)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def properties_of(infos: Sequence[CommitMetadata]) -> dict[str, str]:
    """Returns the transaction properties of one commit for several jobs."""
    first, *others = (info.to_properties() for info in infos)
    return first | {ALSO: json.dumps(others, separators=(",", ":"))} if others else first


def commit_metadata_of(properties: Mapping[str, str] | None) -> tuple[CommitMetadata, ...]:
    """Returns all metadata in a transaction's properties: an empty result where deployer did not make the commit, or a
    part cannot be read."""
    if not properties or JOB not in properties:
        return ()
    try:
        infos = [CommitMetadata.of(properties), *map(CommitMetadata.of, json.loads(properties.get(ALSO) or "[]"))]
    except (ValueError, TypeError, AttributeError):
        return ()
    found = tuple(info for info in infos if info is not None)
    return found if len(found) == len(infos) else ()


_COLUMNS = ("path", "partition", "min", "max", "column_min", "column_max", "sorted")
_CLUSTERED = ("clustering", "cluster_min", "cluster_max")


def _range(low: str | None, high: str | None, lows: Sequence[str], highs: Sequence[str]) -> KeyRange | None:
    if low is None or high is None:
        return None
    return KeyRange(b64decode(low), b64decode(high), tuple(map(b64decode, lows)), tuple(map(b64decode, highs)))


def _clustered(by: str, lows: Sequence[str], highs: Sequence[str]) -> FileClustering | None:
    return FileClustering(by, tuple(map(b64decode, lows)), tuple(map(b64decode, highs))) if by else None


def _computed(text: str) -> ComputedFragments:
    document = json.loads(text)
    identities = {int(field): str(identity) for field, identity in document["by"].items()}
    return ComputedFragments(identities, tuple(map(int, document["fragments"])))


def _text(value: bytes) -> str:
    return b64encode(value).decode()


def _texts(values: Sequence[bytes]) -> list[str]:
    return [_text(value) for value in values]


def each_commit(infos: Mapping[int, Sequence[CommitMetadata]]) -> Iterator[tuple[int, CommitMetadata]]:
    """Yields the metadata of each commit with its version, from the oldest version on."""
    return ((version, info) for version, several in sorted(infos.items()) for info in several)
