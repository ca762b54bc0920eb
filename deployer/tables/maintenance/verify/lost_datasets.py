"""Finds the datasets below an instance's root, and the tables that their records name, for `state rebuild`.

Any program can write a dataset. Therefore a record counts only if it is at the location that it names, or at a location
that the newest record of the same table names as one of its former datasets.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deployer.datasets.recovery.rebuilt import Source
from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import dataset_uri
from deployer.errors import DeployerError
from deployer.platform.text.visible import shortened
from deployer.state.model.location import Location, is_made
from deployer.state.model.table_locations import fault_of_datasets, fault_of_entry
from deployer.state.records.document import JOBS, TABLE, JobsRecord, TableRecord, jobs_from_bytes, table_from_bytes
from deployer.state.records.files import RecordFiles

_MANIFESTS = "_versions"


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason why a rebuild leaves out a dataset or a table."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A table according to its newest record, with its current dataset and its former datasets that exist."""

    record: TableRecord
    current: Source | None  #: None for a table that was being deleted
    former: tuple[Source, ...] = ()


@dataclass(slots=True)
class FoundDataset:
    """The content of a root: tables by their records, datasets without a record, and problems."""

    claims: list[Claim] = field(default_factory=list)
    made: list[Location] = field(default_factory=list)  #: datasets that deployer made, according to their names
    plain: list[Location] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def find_datasets(root: str, files: RecordFiles, instance: str) -> FoundDataset:
    """Returns all datasets below the root. Raises the errors of the storage."""
    found = FoundDataset()
    records: dict[Location, TableRecord] = {}
    for path in sorted(_paths(root)):
        if fault := Location.fault(path):
            found.problems.append(Problem(shortened(path), f"a table cannot be stored there: it {fault}"))
            continue
        location = Location(path)
        try:
            data = files.read(location, TABLE)
            if data is not None:
                records[location] = table_from_bytes(data, dataset_uri(root, location))
            elif is_made(location):
                found.made.append(location)
            else:
                found.plain.append(location)
        except DeployerError as error:
            found.problems.append(Problem(location, error.what))
    by_table: dict[str, dict[Location, TableRecord]] = {}
    for location, record in records.items():
        if record.instance and record.instance != instance:
            what = f"its record says that it is of instance {shortened(record.instance)}"
            found.problems.append(Problem(location, what))
        else:
            by_table.setdefault(record.entry.table_id, {})[location] = record
    for of_table in by_table.values():
        found.claims += _claims(root, files, of_table, found.problems)
    found.claims = _without_clashes(found.claims, found.problems)
    known = {each.record.entry.table_id: each.record.entry.location for each in found.claims}
    found.made = [each for each in found.made if not _belongs(each, known)]
    return found


def _claims(
    root: str, files: RecordFiles, records: Mapping[Location, TableRecord], problems: list[Problem]
) -> Iterator[Claim]:
    """Yields the table to which the datasets with one table id belong; nothing if their records contradict each
    other."""
    newest = max(records.values(), key=lambda each: (each.at, each.state_version))
    entry, own = newest.entry, {each.location for each in newest.datasets}
    if wrong := fault_of_entry(entry) or fault_of_datasets(entry.table_id, newest.datasets) or _fault_of(newest):
        problems.extend(Problem(location, wrong) for location in records)
        return
    others = [location for location in records if location != entry.location and location not in own]
    copies = [each for each in others if records[each].entry.location != each]
    problems.extend(
        Problem(each, f"its record says that it is at {records[each].entry.location}: it is a copy, or was moved")
        for each in copies
    )
    if rivals := [each for each in others if each not in copies]:
        what = f"another dataset has the same table id {entry.table_id}, and neither replaced the other"
        problems.extend(Problem(each, what) for each in rivals)
        problems.extend(Problem(each, what) for each in records if each == entry.location)
        return
    if entry.status == "deleting":
        yield Claim(newest, None)
        return
    if entry.location not in records:
        if len(copies) < len(records):
            problems.append(Problem(entry.address, f"its dataset {entry.location} is missing"))
        return
    former = [each for each in records if each != entry.location and each in own]
    try:
        current = _source(root, files, entry.location, newest)
        yield Claim(newest, current, tuple(_source(root, files, each, records[each]) for each in former))
    except DeployerError as error:
        problems.append(Problem(entry.location, error.what))


def _fault_of(record: TableRecord) -> str | None:
    """Returns why the datasets of a record do not fit its table; None where they fit."""
    current = [each for each in record.datasets if each.status == "current"]
    if not record.datasets:
        return "its record names a later dataset, but not its location" if record.entry.dataset != 1 else None
    if [(each.number, each.location) for each in current] != [(record.entry.dataset, record.entry.location)]:
        return "the current dataset in its record is not that of its table"
    return None


def _source(root: str, files: RecordFiles, location: Location, record: TableRecord) -> Source:
    data = files.read(location, JOBS)
    jobs: JobsRecord | None = None
    if data is not None:
        jobs = jobs_from_bytes(data, dataset_uri(root, location))
    return Source(dataset_uri(root, location), record, jobs, location.carries(record.entry.table_id))


def _without_clashes(claims: Iterable[Claim], problems: list[Problem]) -> list[Claim]:
    """Returns the tables whose name no other table has, and adds a problem for each of the others."""
    by_name: dict[str, list[Claim]] = {}
    for claim in claims:
        by_name.setdefault(claim.record.entry.full_name, []).append(claim)
    kept = []
    for name, several in by_name.items():
        if len(several) == 1:
            kept += several
            continue
        problems.extend(
            Problem(each.record.entry.location, f"{len(several)} datasets are of a table {name}, with other ids")
            for each in several
        )
    return kept


def _belongs(location: Location, known: Mapping[str, Location]) -> bool:
    """Returns whether the dataset belongs to a known table. It is then the result of an interrupted rewrite."""
    return any(
        location.carries(table_id) and location.base(table_id) == current.base(table_id)
        for table_id, current in known.items()
    )


def _paths(root: str) -> Iterator[str]:
    """Yields the paths of all datasets below the root, relative to the root. Links are not followed."""
    if "://" in root:
        found = {
            path.partition(f"/{_MANIFESTS}/")[0] for path in objects_at(root).list("") if f"/{_MANIFESTS}/" in path
        }
        yield from (path for path in found if not path.startswith("_"))
        return
    for folder, names, _ in os.walk(root):
        below = Path(folder).relative_to(root).as_posix()
        if _MANIFESTS in names and below != "." and not Path(folder, _MANIFESTS).is_symlink():
            yield below
            names.clear()
            continue
        names[:] = [name for name in names if not name.startswith((".", "_"))]
