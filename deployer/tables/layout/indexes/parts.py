"""Writes an index: by one call of Lance, or in parts that are built at a time and published together.

Lance uses all cores of a machine for one call. Parts are for several machines, and for builds that can be interrupted:
between two parts. What is written before a crash or an interruption are files that no version has; `table gc` removes
them.
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

#: Builds segments, on whatever machines: gets the dataset, the jobs and a callback for further rows, and returns what
#: each job made.
RunParts = Callable[["LanceDataset", Sequence[SegmentJob], Callable[[int], None]], list[list[Any]]]

#: Builds an index on another machine from beginning to end, as `build_index` does on this one: gets the store, the
#: root, the table's id, the index, the name of the one that it replaces, and a progress callback. Returns the same.
BuildElsewhere = Callable[["StateStore", str, str, "IndexSpec", str, OnProgress], bool]


def one_by_one(dataset: LanceDataset, jobs: Sequence[SegmentJob], on_rows: Callable[[int], None]) -> list[list[Any]]:
    """Builds one segment after the other in this process, each with all cores."""
    return [job.done(dataset, on_rows, 0) for job in jobs]


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """The build of an index: the most parts, the builder, and the options of Lance for the build; or
    `elsewhere`, which decides the rest."""

    parts: int = 1
    run: RunParts = one_by_one
    options: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: BuildElsewhere | None = None


IN_ONE_PART = BuildPlan()

#: Plans the build of an index of the dataset at a location, with so many rows.
PlanBuild = Callable[[str, int], BuildPlan]


def in_one_part(_location: str, _rows: int) -> BuildPlan:
    """Plans one part, whatever the dataset is."""
    return IN_ONE_PART


def write_index(
    location: str, dataset: LanceDataset, index: IndexSpec, replaced: str, plan: BuildPlan, on_progress: OnProgress
) -> None:
    """Writes the index and commits it to the opened version, without those of its name and of the `replaced` one.

    Raises Lance's own failure where it refuses the commit, Interrupted between parts.
    """
    columns = {each.name: tuple(each.field_names) for each in dataset.describe_indices()}
    before = {index.name, replaced} & columns.keys()
    is_plain = all(name == index.name and columns[name] == index.columns for name in before)
    is_empty = not dataset.get_fragments()
    if is_empty or (plan.parts <= 1 and is_plain):
        for name in () if is_plain else before:  # which find nothing in a table without rows
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
