"""Builds segments of indexes, each over some fragments, and publishes them as one index in one commit.

An index of several segments is searched segment by segment. Segments of an index on vectors share their centroids and
codewords, which are trained once on the whole column, so that later builds can join the segments.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.unreferenced_files import Unit, remove
from deployer.datasets.indexes.read import vector_size
from deployer.datasets.indexes.sections import index_segments
from deployer.datasets.lance_transactions import ChangeDataset, NotTaken, Taken, prepare, send
from deployer.datasets.storage.options import objects_at
from deployer.specs.schema.index_kinds import NUM_BITS, VECTOR_KINDS, all_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    import lance
    from lance.dataset import Index

    from deployer.specs.model import IndexSpec

#: vectors per partition that Lance 14 aims for when the number of partitions is not declared; a million for graphs
_PARTITION_ROWS: Mapping[str, int] = {"ivf_flat": 4_096, "ivf_pq": 8_192}
_ALONE = frozenset(("ivf_hnsw_sq",))  # each segment has its own bounds of values, and Lance does not join such segments
_GRAPH_ROWS, _MOST_PARTITIONS = 2**20, 4_096
_ATTEMPTS = 20  #: how often finished segments are sent again because others committed first


@dataclass(frozen=True, slots=True)
class SegmentJob:
    """A segment to build, with all that a process needs to build it; it is pickled.

    `version` is the dataset's version. `models` are shared by all segments of an index on vectors. `options` are other
    options of Lance, which do not change the index.
    """

    version: int
    index: IndexSpec
    fragments: tuple[int, ...]
    rows: int
    models: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def done(self, dataset: lance.LanceDataset, on_rows: Callable[[int], None], threads: int) -> list[Index]:
        """Writes the segment without a commit. `dataset` is open at `version`; Lance chooses the number of threads."""
        on_rows(0)
        [column] = self.index.columns
        dataset = dataset.checkout_version(self.version)  # Lance builds one index at a time on an opened dataset
        made = dataset.create_index_uncommitted(
            column,
            self.index.kind.upper(),
            name=f"segment-{uuid.uuid4().hex}",  # Lance refuses the name of an index on another column
            fragment_ids=list(self.fragments),
            **{**lance_parameters(dataset, self.index), **self.models, **self.options},
        )
        on_rows(self.rows)
        return [made]


def lance_parameters(dataset: lance.LanceDataset, index: IndexSpec) -> dict[str, Any]:
    """Returns the index's parameters under Lance's names, with defaults for those that are not declared."""
    dimension = vector_size(dataset, index.columns[0]) if index.kind in VECTOR_KINDS else 0
    found = all_parameters(index.kind, index.parameters, dimension)
    if "max_iterations" in found:
        found["max_iters"] = found.pop("max_iterations")
    return found


def segment_jobs(
    dataset: lance.LanceDataset, index: IndexSpec, parts: int, options: Mapping[str, Any]
) -> list[SegmentJob]:
    """Returns jobs for segments of about the same number of rows.

    There is at most one job for each fragment, and none without fragments. Where an index on vectors has several
    segments, it trains what they share.
    """
    fragments = dataset.get_fragments()
    if index.kind in VECTOR_KINDS and (index.kind in _ALONE or "." in index.columns[0]):
        parts = 1  # Lance cannot train for several segments on a field of a struct
    groups = _groups([(each.fragment_id, each.count_rows()) for each in fragments], parts)
    models = train_models(dataset, index) if len(groups) > 1 and index.kind in VECTOR_KINDS else {}
    return [
        SegmentJob(
            int(dataset.version), index, tuple(number for number, _ in group), sum(r for _, r in group), models, options
        )
        for group in groups
    ]


def _groups(fragments: Sequence[tuple[int, int]], parts: int) -> list[list[tuple[int, int]]]:
    """Returns neighbouring fragments in groups of about the same number of rows."""
    parts, total = max(1, min(parts, len(fragments))), sum(rows for _, rows in fragments)
    groups: list[list[tuple[int, int]]] = []
    before = 0
    for place, each in enumerate(fragments):
        is_due = before >= total * len(groups) / parts or len(fragments) - place <= parts - len(groups)
        if not groups or (is_due and len(groups) < parts):
            groups.append([])
        groups[-1].append(each)
        before += each[1]
    return groups


def train_models(dataset: lance.LanceDataset, index: IndexSpec) -> dict[str, Any]:
    """Returns the centroids of an index on vectors, and the codewords where it has some, in the form that Lance's
    builds take."""
    from lance.indices import IndicesBuilder

    [column] = index.columns
    found = lance_parameters(dataset, index)
    rows = int(dataset.count_rows())
    partitions = min(found.get("num_partitions") or _default_partitions(index.kind, rows), rows)
    builder = IndicesBuilder(dataset, column)
    ivf = builder.train_ivf(
        partitions,
        distance_type=found["metric"],
        sample_rate=max(2, min(found["sample_rate"], rows // partitions)),
        max_iters=found["max_iters"],
    )
    models: dict[str, Any] = {"num_partitions": partitions, "ivf_centroids": ivf.centroids}
    if "num_bits" in found:
        bits = found.get("num_bits", NUM_BITS)
        pq = builder.train_pq(
            ivf,
            found["num_sub_vectors"],
            sample_rate=max(2, min(found["sample_rate"], rows // 2**bits)),
            max_iters=found["max_iters"],
            num_bits=bits,
        )
        models["pq_codebook"] = pq.codebook
    return models


def _default_partitions(kind: str, rows: int) -> int:
    """Returns the number that Lance chooses by itself."""
    return min(_MOST_PARTITIONS, max(1, rows // _PARTITION_ROWS.get(kind, _GRAPH_ROWS)))


def publish_segments(
    location: str, dataset: lance.LanceDataset, index: IndexSpec, segments: Sequence[Index], replaced: Collection[str]
) -> None:
    """Makes the segments the index, and removes all segments of the `replaced` indexes, in one commit.

    Segments of an index for full-text search become one: searches cannot use them separately. `dataset` is open at the
    version that the segments were built on. Where others commit meanwhile, the commit is tried again while the
    segments' fragments are unchanged. Raises Lance's own failure where Lance does not have the commit; the segments'
    files are then removed, unless Lance may still take the commit.
    """
    import lance

    if index.kind == "inverted":
        staged, segments = segments, [dataset.merge_existing_index_segments(list(segments))]
        discard_segments(location, (each for each in staged if each.uuid != segments[0].uuid))
    made = [replace(each, name=index.name) for each in segments]
    indexed = _data_files(dataset)
    for last in (*(False,) * (_ATTEMPTS - 1), True):
        removed = [each for before in sorted(replaced) for each in index_segments(location, dataset, before)]
        operation = ChangeDataset(lance.LanceOperation.CreateIndex(made, removed))
        outcome = send(location, dataset, prepare(dataset, operation))
        if isinstance(outcome, Taken):
            return
        if isinstance(outcome, NotTaken):
            dataset = open_dataset(location)
            now = _data_files(dataset)
            if outcome.reason == "conflict" and not last and all(now.get(each) == indexed[each] for each in indexed):
                continue
            discard_segments(location, made)
        raise outcome.failure


def _data_files(dataset: lance.LanceDataset) -> dict[int, tuple[str, ...]]:
    """Returns the paths of the data files of each fragment: deleting rows does not change them, new values do."""
    return {
        each.fragment_id: tuple(sorted(file.path for file in each.metadata.files)) for each in dataset.get_fragments()
    }


def discard_segments(location: str, segments: Iterable[Index]) -> None:
    """Removes the files of segments that no version has."""
    objects = objects_at(location)
    folders = [f"_indices/{each.uuid}" for each in segments]
    remove(location, [Unit(each, list(objects.described(each))) for each in folders])
