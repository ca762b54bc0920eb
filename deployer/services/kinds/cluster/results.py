"""The result of a run of CLUSTER."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.platform.files.json_values import JSON
from deployer.runs.rewriting.run import RewriteStats, TableStats
from deployer.services.kinds.cluster.depth import Depth, all_leaves
from deployer.state.model.services import Figures, FinalStatus
from deployer.tables.layout.indexes.build import CaughtUp

LEAVES_KEPT = 200  #: at most this many leaves have their depth in a run's record


@dataclass(frozen=True, slots=True)
class ClusteringQuality:
    """The clustering of a table at one time: the overlap depth of each leaf, and files `clustered` by its columns.

    Files across leaves do not count. `of_all` is the average of all leaves by rows, and the maximum.
    """

    leaves: Mapping[str, Depth] = field(default_factory=dict)
    clustered: int = 0

    @property
    def of_all(self) -> Depth:
        return all_leaves(list(self.leaves.values()))

    def as_json(self) -> dict[str, JSON]:
        found = self.of_all
        kept = sorted(self.leaves.items(), key=lambda leaf: (-leaf[1].average, leaf[0]))[:LEAVES_KEPT]
        return {
            "depth": round(found.average, 2),
            "depth_most": found.most,
            "depth_by_column": [round(each, 2) for each in found.by_column],
            "clustered_files": self.clustered,
            "leaves": {name: depth.as_json() for name, depth in kept},
        }


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """The result of a run. `why` is the reason where it is SKIPPED or CANCELLED, `reason` that for the `engine`. In a
    dry run, `work` is what a run would rewrite, and `after` equals `before`. `whole` is for the run record (see
    `whole_leaves`)."""

    table: str
    run_id: str
    status: FinalStatus
    why: str
    dry_run: bool
    curve: str
    columns: tuple[str, ...]
    before: TableStats
    after: TableStats
    depth_before: ClusteringQuality
    depth_after: ClusteringQuality
    work: RewriteStats
    engine: str
    reason: str
    seconds: float
    indexes: CaughtUp = CaughtUp()
    whole: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def figures(self) -> Figures:
        """The figures of the run record. A dry run read and wrote nothing."""
        work = RewriteStats() if self.dry_run else self.work
        return Figures(
            work.rows,
            work.rows,
            work.bytes_read,
            work.bytes_written,
            self.before.lance_version,
            self.after.lance_version,
            {**self.before.as_json(), **self.depth_before.as_json()},
            {**self.after.as_json(), **self.depth_after.as_json(), **self.whole},
        )
