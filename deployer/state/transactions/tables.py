"""The requirements of transactions on a table's data, schema and name.

Two transactions are concurrent when the second was decided on the state before the first. The second commits on top of
the first when its requirements still hold; otherwise it fails with Conflict. A writer of data commits its requirements
with the intent, before it sends anything to Lance; a commit that Lance has accepted is always recorded. To add a kind
of transaction, add a function here that returns its requirements, a row and a column in tests/state/conflict_table.py,
from which the tables of docs/state-format.md are made, and a sample in tests/state/test_conflicts.py, which checks
every cell. The requirements of transactions on services, runs and savepoints are in `services`.
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
    """Returns the requirements for a blind append: the rows have the table's schema, and the job adds them once.

    `schema` is the schema of the rows (Arrow IPC bytes).
    """
    return [JobNotDone(job_id), DatasetIs(dataset), SchemaIs(schema_fingerprint(schema)), NoRestoreUnderWay()]


def to_add_unique_files(
    job_id: str, schema: bytes, dataset: int, lance_version: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Returns the requirements for an append whose keys were compared with those of version `lance_version`.

    `ended` are jobs that the same transaction abandons.
    """
    alone: list[TableRequirement] = [LanceVersionIs(lance_version), NoLoadUnderWay((job_id, *ended))]
    return [*to_add_files(job_id, schema, dataset), *alone]


def to_make_unique(
    generation: int, lance_version: int, dataset: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Returns the requirements for declaring row keys unique: all rows of version `lance_version` have unique keys.

    `ended` are jobs that the same transaction abandons.
    """
    return [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version), NoLoadUnderWay(tuple(ended))]


def to_replace_files(
    job_id: str, fragment_ids: Sequence[int], dataset: int, moved: Sequence[int] = ()
) -> list[TableRequirement]:
    """Returns the requirements for a compaction: the fragments that it read still exist, and no run writes columns of
    them.

    Lance itself refuses or merges rows of another schema. `moved` are further fragments that get new ids.
    """
    unclaimed = FragmentsUnclaimed((*fragment_ids, *moved))
    present = FilesPresent(tuple(fragment_ids))
    return [JobNotDone(job_id), DatasetIs(dataset), present, NoRestoreUnderWay(), unclaimed]


def to_claim(run_id: str, holder: str, fragment_ids: Sequence[int], dataset: int) -> list[TableRequirement]:
    """Returns the requirements for claiming fragments for a run that writes columns: the fragments exist, and `holder`
    holds the run."""
    return [RunHeldBy(run_id, holder), DatasetIs(dataset), FilesPresent(tuple(fragment_ids))]


def to_fill_columns(job_id: str, run_id: str, holder: str, schema: bytes, dataset: int) -> list[TableRequirement]:
    """Returns the requirements for a commit of values of columns: the table has the schema for which they were made,
    and `holder` holds the run.

    `schema` is in Arrow IPC bytes. Lance and the caller check that the fragments exist and have the rows that were
    read.
    """
    held = RunHeldBy(run_id, holder)
    return [JobNotDone(job_id), DatasetIs(dataset), SchemaIs(schema_fingerprint(schema)), held, NoRestoreUnderWay()]


def to_change_rows(job_id: str, schema: bytes, dataset: int) -> list[TableRequirement]:
    """Returns the requirements for an update, a deletion or a merge: the job does it once.

    Lance refuses the second of two changes of rows that were prepared on the same version, or of two changes of the
    same fragments. The refused writer computes its change again.
    """
    return to_add_files(job_id, schema, dataset)


def to_change_unique_rows(
    job_id: str, schema: bytes, dataset: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Returns the requirements for a change that adds rows whose keys were compared with those of the table.

    `ended` are jobs that the same transaction abandons.
    """
    return [*to_change_rows(job_id, schema, dataset), NoLoadUnderWay((job_id, *ended))]


def to_split(partition_id: str, moved: Sequence[int], lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns the requirements for splitting a leaf: the files in `moved` are recorded in the new leaves.

    A refused split starts again.
    """
    return [DatasetIs(dataset), PartitionIsLeaf(partition_id), *_to_move(moved, lance_version)]


def to_place_files(moved: Sequence[int], lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns the requirements for recording files in the leaf that holds all of their keys."""
    return [DatasetIs(dataset), *_to_move(moved, lance_version)]


def _to_move(fragment_ids: Sequence[int], lance_version: int) -> list[TableRequirement]:
    return [LanceVersionIs(lance_version), FilesPresent(tuple(fragment_ids))]


def to_change_schema(lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns the requirements for one change of columns, which was checked on the rows of version `lance_version`."""
    return [DatasetIs(dataset), LanceVersionIs(lance_version), NoRestoreUnderWay()]


def to_redeclare(generation: int) -> list[TableRequirement]:
    """Returns the requirements for changes of properties that were planned together on the declaration of this
    `generation`."""
    return [GenerationIs(generation)]


def to_begin_rewrite(dataset: int, generation: int) -> list[TableRequirement]:
    """Returns the requirements for starting a rewrite, which changes nothing that others see.

    No run may write columns, because it would change the data that the rewrite copies.
    """
    return [DatasetIs(dataset), GenerationIs(generation), FragmentsUnclaimed()]


def to_swap(dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Returns the requirements for finishing a rewrite: the table did not change since the copy, and no run writes
    columns."""
    same: list[TableRequirement] = [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version)]
    return [*same, NoRestoreUnderWay(), FragmentsUnclaimed()]


def to_restore(dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Returns the requirements for restoring a savepoint: the table did not change since the preview."""
    return [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version)]


def to_record_restore(run_id: str, dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Returns the requirements for recording a restore of one table or of several: the table did not change since the
    restore began, and the run was not ended."""
    return [*to_restore(dataset, generation, lance_version), RunHasStatus(run_id, "RUNNING")]


def to_record(lance_version: int, dataset: int) -> list[TableRequirement]:
    """Returns the requirements for the roll-forward: no other process recorded the same commits.

    A refused roll-forward starts again.
    """
    return [DatasetIs(dataset), LanceVersionIs(lance_version)]


def to_register(database: str, name: str) -> list[InstanceRequirement]:
    """Returns the requirements for registering a new table under this name."""
    return [NameFree(database, name)]


def to_rename(table_id: str, database: str, name: str) -> list[InstanceRequirement]:
    """Returns the requirements for renaming a table. The table's own log does not contain its name."""
    return [TableHasStatus(table_id, "active"), NameFree(database, name)]
