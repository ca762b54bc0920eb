"""The requirements of each kind of transaction, which decide which of two concurrent ones is refused.

Two transactions are concurrent when the second was decided on the state before the first. The second commits on top of
the first when its requirements still hold, and is a Conflict otherwise. A writer of data sets its requirements with the
intent, before anything is sent to Lance; a commit that Lance has taken is always recorded. To add a kind of
transaction: a function here for what it requires, a row and a column in tests/state/conflict_table.py, from which the
tables of docs/state-format.md are made, and a sample in tests/state/test_conflicts.py, which holds every cell. Those on
services, runs and savepoints are in `service_conflicts`.
"""

from __future__ import annotations

from collections.abc import Sequence

from deployer.state.log.requirements import (
    DatasetIs,
    FilesPresent,
    GenerationIs,
    InstanceRequirement,
    JobNotDone,
    LanceVersionIs,
    NameFree,
    NoLoadUnderWay,
    PartitionIsLeaf,
    SchemaIs,
    TableHasStatus,
    TableRequirement,
    schema_fingerprint,
)
from deployer.state.log.service_requirements import (
    FragmentsUnclaimed,
    NoRestoreUnderWay,
    RunHasStatus,
    RunHeldBy,
)


def to_add_files(job_id: str, schema: bytes, dataset: int) -> list[TableRequirement]:
    """Returns requirements of a blind append: rows were made for that schema (Arrow IPC), and the job adds them
    once."""
    return [JobNotDone(job_id), DatasetIs(dataset), SchemaIs(schema_fingerprint(schema)), NoRestoreUnderWay()]


def to_add_unique_files(
    job_id: str, schema: bytes, dataset: int, lance_version: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Returns requirements of an append whose keys were compared with those of that version. `ended` are jobs that are
    given up with it."""
    alone: list[TableRequirement] = [LanceVersionIs(lance_version), NoLoadUnderWay((job_id, *ended))]
    return [*to_add_files(job_id, schema, dataset), *alone]


def to_make_unique(
    generation: int, lance_version: int, dataset: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Returns requirements of declaring row keys unique, which those of all rows of that version are."""
    return [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version), NoLoadUnderWay(tuple(ended))]


def to_replace_files(
    job_id: str, fragment_ids: Sequence[int], dataset: int, moved: Sequence[int] = ()
) -> list[TableRequirement]:
    """Returns requirements of a compaction: what it read is still there, and no run writes columns of it. Rows of
    another schema are Lance's own to refuse or to merge. `moved` are fragments that get new numbers besides."""
    unclaimed = FragmentsUnclaimed((*fragment_ids, *moved))
    present = FilesPresent(tuple(fragment_ids))
    return [JobNotDone(job_id), DatasetIs(dataset), present, NoRestoreUnderWay(), unclaimed]


def to_claim(run_id: str, holder: str, fragment_ids: Sequence[int], dataset: int) -> list[TableRequirement]:
    """Returns requirements of claiming fragments for a run that writes columns: they are there, and it holds its
    run."""
    return [RunHeldBy(run_id, holder), DatasetIs(dataset), FilesPresent(tuple(fragment_ids))]


def to_fill_columns(job_id: str, run_id: str, holder: str, schema: bytes, dataset: int) -> list[TableRequirement]:
    """Returns requirements of a commit of columns' values: they were made for that schema (Arrow IPC), by a run that is
    held.

    That the fragments are there and have the rows that were read is Lance's to require, and the caller's to look at.
    """
    held = RunHeldBy(run_id, holder)
    return [JobNotDone(job_id), DatasetIs(dataset), SchemaIs(schema_fingerprint(schema)), held, NoRestoreUnderWay()]


def to_change_rows(job_id: str, schema: bytes, dataset: int) -> list[TableRequirement]:
    """Returns requirements of an update, a deletion or a merge: it is done once. Lance refuses the second of two
    changes of rows that were prepared on one version, and of two of the same fragments; who is refused computes its
    change again."""
    return to_add_files(job_id, schema, dataset)


def to_change_unique_rows(
    job_id: str, schema: bytes, dataset: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Returns requirements of a change that adds rows whose keys were compared with those of the table. `ended` are
    jobs that are given up with it."""
    return [*to_change_rows(job_id, schema, dataset), NoLoadUnderWay((job_id, *ended))]


def to_split(partition_id: str, moved: Sequence[int], lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns requirements of splitting a leaf, whose files are recorded in the new leaves. It starts again when
    refused."""
    return [DatasetIs(dataset), PartitionIsLeaf(partition_id), *_to_move(moved, lance_version)]


def to_place_files(moved: Sequence[int], lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns requirements of recording files in the leaf that holds all of them."""
    return [DatasetIs(dataset), *_to_move(moved, lance_version)]


def _to_move(fragment_ids: Sequence[int], lance_version: int) -> list[TableRequirement]:
    return [LanceVersionIs(lance_version), FilesPresent(tuple(fragment_ids))]


def to_change_schema(lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns requirements of one change of columns: it was checked on the rows of exactly that version."""
    return [DatasetIs(dataset), LanceVersionIs(lance_version), NoRestoreUnderWay()]


def to_redeclare(generation: int) -> list[TableRequirement]:
    """Returns requirements of changes to properties that were planned together on what was declared then."""
    return [GenerationIs(generation)]


def to_begin_rewrite(dataset: int, generation: int) -> list[TableRequirement]:
    """Returns requirements of a rewrite's beginning, which changes nothing that others see. A run that writes columns
    would change what it copies."""
    return [DatasetIs(dataset), GenerationIs(generation), FragmentsUnclaimed()]


def to_swap(dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Returns requirements of a rewrite's end: all that it copied is all there is, and no run writes columns."""
    same: list[TableRequirement] = [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version)]
    return [*same, NoRestoreUnderWay(), FragmentsUnclaimed()]


def to_restore(dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Returns requirements of going back to a savepoint: all that it undoes was previewed."""
    return [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version)]


def to_record_restore(run_id: str, dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Returns requirements of recording what a run restored, of one table or of several: nothing that it undoes came
    since, and it was not given up."""
    return [*to_restore(dataset, generation, lance_version), RunHasStatus(run_id, "RUNNING")]


def to_record(lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns requirements of the roll-forward, which starts again when it is refused: no other process recorded the
    same commits."""
    return [DatasetIs(dataset), LanceVersionIs(lance_version)]


def to_register(database: str, name: str) -> list[InstanceRequirement]:
    """Returns requirements of a new table's name."""
    return [NameFree(database, name)]


def to_rename(table_id: str, database: str, name: str) -> list[InstanceRequirement]:
    """Returns requirements of another name for a table; its own log knows nothing of it."""
    return [TableHasStatus(table_id, "active"), NameFree(database, name)]
