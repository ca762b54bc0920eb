"""Hypothesis strategies for updates, requirements and whole histories of a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_type_hints

from hypothesis import strategies as st

from deployer.state.log.service_reducer import open_run
from deployer.state.log.service_updates import (
    CancelRequested,
    FragmentsClaimed,
    LeaseRenewed,
    PauseService,
    PutService,
    RemoveService,
    ResumeService,
    RunEnded,
    RunQueued,
    RunStarted,
    SavepointRemoved,
    SavepointsExpired,
    SavepointTaken,
)
from deployer.state.log.updates import (
    CommitAbandoned,
    CommitStarted,
    FilesAdded,
    FilesRemoved,
    FilesReplaced,
    PartitionSplit,
    RowsChanged,
    RowsLeft,
    SetLanceVersion,
    SetSchema,
    SetTableProperties,
    TableUpdate,
)
from deployer.state.model.entities import JSON, RestoreTarget, RowCounts, TableState
from deployer.state.model.location import Location, LocationOrNone
from deployer.state.model.names import Name, SavepointName, TableId
from deployer.state.model.services import EXCLUDES, Figures, Service

from .samples import file, leaf_for

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
JSON_OBJECTS: st.SearchStrategy[Mapping[str, JSON]] = st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3)


def instances(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Instances of a dataclass of the state's model, by the types of its fields."""
    hints = get_type_hints(cls, include_extras=True)
    return st.builds(cls, **{field.name: _values(hints[field.name]) for field in dataclasses.fields(cls)})


def members(union: Any) -> st.SearchStrategy[Any]:
    """Instances of every member of a closed union."""
    return st.one_of([instances(cls) for cls in get_args(union)])


#: Texts of one form, by the type of the field.
TEXTS: Mapping[Any, st.SearchStrategy[Any]] = {
    Name: st.from_regex("[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
    TableId: st.from_regex("[0-9a-f]{8,12}", fullmatch=True),
    SavepointName: st.from_regex("[a-z][a-z0-9-]{0,5}", fullmatch=True),
    Location: st.from_regex("[a-z]{1,3}/[a-z]{1,3}-[0-9a-f]{8}(-g[1-9])?[.]lance", fullmatch=True).map(Location),
    LocationOrNone: st.sampled_from(["", "air/flights-0a1b2c3d.lance"]),
    int: st.integers(-(2**63), 2**63 - 1),
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
}


def _values(hint: Any) -> st.SearchStrategy[Any]:
    if hint in TEXTS:
        return TEXTS[hint]
    origin = getattr(hint, "__origin__", None)
    if origin is Mapping or getattr(origin, "__name__", "") == "Mapping":
        return JSON_OBJECTS
    if dataclasses.is_dataclass(hint):
        return instances(hint)  # type: ignore[arg-type]
    args = get_args(hint)
    if type(None) in args:
        (inner,) = (arg for arg in args if arg is not type(None))
        return st.none() | _values(inner)
    if origin is tuple:
        return st.lists(_values(args[0]), max_size=3).map(tuple)
    result: st.SearchStrategy[Any] = st.from_type(hint)
    return result


@st.composite
def next_updates(draw: st.DrawFn, state: TableState, number: int) -> Sequence[TableUpdate]:
    """One or two updates that make sense on the state; `number` makes new ids."""
    leaf = leaf_for(state.partitions, draw(st.binary(max_size=3)))
    split = leaf.lower + draw(st.binary(min_size=1, max_size=2))
    held = [each.fragment_id for each in state.files]
    some = draw(st.lists(st.sampled_from(held), unique=True, max_size=4)) if held else []
    intents, version = sorted(state.intents), state.lance_version + 1
    fresh = tuple(file(10 * number + n, partition=leaf.partition_id) for n in range(draw(st.integers(1, 3))))
    job = draw(st.none() | st.just(f"job-{number}") | (st.sampled_from(intents) if intents else st.nothing()))
    choices: list[TableUpdate] = [
        SetTableProperties({"description": f"change {number}", "declared": draw(JSON_OBJECTS)}),
        SetSchema(f"schema {number}".encode(), version),
        SetLanceVersion(version),
        CommitStarted(f"job-{number}", "ingest", version - 1),
        CommitStarted(
            f"run-{number}", "restore", version - 1, RestoreTarget("then", 1, 1, 1, 0, (state.table_id, "ab" * 16))
        ),
        FilesAdded(fresh, version, job, 10 * len(fresh)),
        FilesAdded(fresh, version, job, 10 * len(fresh)),
        FilesReplaced(tuple(some), fresh, version, job),
        RowsChanged(
            tuple(RowsLeft(each, draw(st.integers(0, 9))) for each in some[1:]),
            tuple(some[:1]),
            fresh,
            version,
            job,
            "merge",
            RowCounts(len(fresh), 2, 3),
        ),
        FilesRemoved(tuple(some), version),
    ]
    choices += [CommitAbandoned(intent) for intent in intents[:1]]
    if leaf.upper is None or split < leaf.upper:
        choices.append(PartitionSplit(leaf.partition_id, split, f"left-{number}", f"right-{number}"))
    return [draw(st.sampled_from(choices))]


@st.composite
def next_service_updates(draw: st.DrawFn, state: TableState, number: int) -> Sequence[TableUpdate]:
    """An update of services, runs or savepoints that makes sense on the state; `number` makes new ids."""
    kind = draw(st.sampled_from(sorted(EXCLUDES)))
    queued = [run.run_id for run in state.runs.values() if run.status == "QUEUED"]
    running = [run.run_id for run in state.runs.values() if run.status == "RUNNING"]
    choices: list[TableUpdate] = [
        PutService(Service(kind, "AUTOMATIC", draw(JSON_OBJECTS), draw(JSON_OBJECTS), draw(st.none() | st.text()))),
        SavepointTaken(f"savepoint-{number}", draw(st.none() | st.integers(0, 1 << 50)), draw(st.text(max_size=5))),
        SavepointsExpired(draw(st.integers(0, 1 << 50))),
    ]
    choices += [RunStarted(run_id, f"holder-{number}", 1000) for run_id in queued]
    choices += [LeaseRenewed(run_id, 5, draw(JSON_OBJECTS)) for run_id in running]
    choices += [CancelRequested(run_id) for run_id in running]
    choices += [FragmentsClaimed(run_id, tuple(draw(st.lists(st.integers(0, 9), max_size=3)))) for run_id in running]
    choices += [RunEnded(run_id, "FAILED", draw(instances(Figures)), "why") for run_id in queued + running]
    choices += [update(each) for each in state.services for update in (PauseService, ResumeService, RemoveService)]
    choices += [SavepointRemoved(name) for name in state.savepoints]
    if open_run(state, kind) is None:
        choices += [RunQueued(f"run-{number}", kind, "by hand", cluster) for cluster in (None, "emr")]
        choices += [RunQueued(f"run-{number}", kind, "by hand", job="job", target=names) for names in ((), ("delay",))]
    return [draw(st.sampled_from(choices))]
