"""Writes an index, either with one call of Lance or in parts that are built separately and published together.

Lance uses all cores of a machine for one call. Parts serve builds on several machines, and builds that can be
interrupted between two parts. Files that are written before a crash or an interruption belong to no version;
`table gc` removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from deployer.datasets.indexes.segments import SegmentJob, lance_parameters, publish_segments, segment_jobs
from deployer.errors import Interrupted
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress
from deployer.specs.schema.index_kinds import VECTOR_KINDS

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.specs.model import IndexSpec
    from deployer.state.store import StateStore

#: Callback that builds segments, on any machines. It gets the dataset, the jobs and a callback for the number of
#: further rows, and returns the segments of each job.
RunParts = Callable[["LanceDataset", Sequence[SegmentJob], Callable[[int], None]], list[list[Any]]]

#: Callback that builds an index completely on another machine, as `build_index` does on this one. It gets the store,
#: the root, the table's id, the index, the name of the index that it replaces, and a progress callback. It returns the
#: same result as `build_index`.
BuildElsewhere = Callable[["StateStore", str, str, "IndexSpec", str, OnProgress], bool]


def one_by_one(dataset: LanceDataset, jobs: Sequence[SegmentJob], on_rows: Callable[[int], None]) -> list[list[Any]]:
    """Builds one segment after the other in this process, each with all cores."""
    return [job.done(dataset, on_rows, 0) for job in jobs]


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """The build of an index: the largest number of parts, the builder, and Lance's options for the build. If
    `elsewhere` is given, it builds the index instead."""

    parts: int = 1
    run: RunParts = one_by_one
    options: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: BuildElsewhere | None = None


IN_ONE_PART = BuildPlan()

#: Callback that plans the build of an index. It gets the location of the dataset and its number of rows.
PlanBuild = Callable[[str, int], BuildPlan]


def in_one_part(_location: str, _rows: int) -> BuildPlan:
    """Returns a plan with one part for every dataset."""
    return IN_ONE_PART


def write_index(
    location: str, dataset: LanceDataset, index: IndexSpec, replaced: str, plan: BuildPlan, on_progress: OnProgress
) -> None:
    """Writes the index and commits it to the opened version. The commit removes an index of the same name and the
    `replaced` one.

    Raises Lance's own error where Lance refuses the commit. May raise Interrupted between two parts.
    """
    columns = {each.name: tuple(each.field_names) for each in dataset.describe_indices()}
    before = {index.name, replaced} & columns.keys()
    is_plain = all(name == index.name and columns[name] == index.columns for name in before)
    is_empty = not dataset.get_fragments()
    if is_empty or (plan.parts <= 1 and is_plain):
        for name in () if is_plain else before:  # in a table without rows, searches do not miss the dropped indexes
            dataset.drop_index(name)
        _in_one_call(dataset, index, plan.options, on_progress)
        return
    doing = f"building index {index.name}"
    on_progress(Progress(doing, 0, None))
    jobs = segment_jobs(dataset, index, plan.parts, plan.options)
    total, done = sum(job.rows for job in jobs), 0

    def on_rows(rows: int) -> None:
        nonlocal done
        done += rows
        on_progress(Progress(doing, done, total))

    segments = [each for made in plan.run(dataset, jobs, on_rows) for each in made]
    reached("tables.index.parts-built")
    publish_segments(location, dataset, index, segments, before)


def _in_one_call(dataset: LanceDataset, index: IndexSpec, options: Mapping[str, Any], on_progress: OnProgress) -> None:
    def report_event(event: Any) -> None:
        doing = f"building index {index.name}, {event.stage.replace('_', ' ')}"
        with suppress(Interrupted):  # Lance can neither be stopped nor resumed here
            on_progress(Progress(doing, event.completed or 0, event.total, event.unit))

    build = dataset.create_index if index.kind in VECTOR_KINDS else dataset.create_scalar_index
    [column] = index.columns
    build(
        column,
        index.kind.upper(),
        name=index.name,
        replace=True,
        progress_callback=report_event,
        **lance_parameters(dataset, index),
        **options,
    )
