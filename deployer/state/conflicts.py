"""What each kind of transaction requires, and so which of two concurrent ones is refused: `RULES` is the table.

Two transactions are concurrent when the second was decided on the state of before the first. The second commits on top
of the first when its requirements still hold, and is a Conflict otherwise. Who writes data requires it with the intent,
before anything goes to Lance; what Lance has taken is always recorded. To add a kind of transaction: a function here
for what it requires, an `Operation`, a row and a column in `RULES`, and a sample in tests/state/test_conflicts.py,
which holds every cell. Those on services, runs and savepoints are in `service_conflicts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployer.state.operation import Operation, Refused
from deployer.state.requirements import (
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
from deployer.state.service_conflicts import SERVICE_OPERATIONS, SERVICE_RULES
from deployer.state.service_requirements import NoRestoreUnderWay, RunHasStatus
from deployer.state.services import EXCLUDES


def to_add_files(job_id: str, schema: bytes, dataset: int) -> list[TableRequirement]:
    """Of a blind append: rows were made for that schema (Arrow IPC), and the job adds them once."""
    return [JobNotDone(job_id), DatasetIs(dataset), SchemaIs(schema_fingerprint(schema)), NoRestoreUnderWay()]


def to_add_unique_files(
    job_id: str, schema: bytes, dataset: int, lance_version: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Of an append whose keys were compared with those of that version. `ended` are jobs that are given up with it."""
    alone: list[TableRequirement] = [LanceVersionIs(lance_version), NoLoadUnderWay((job_id, *ended))]
    return [*to_add_files(job_id, schema, dataset), *alone]


def to_make_unique(
    generation: int, lance_version: int, dataset: int, ended: Sequence[str] = ()
) -> list[TableRequirement]:
    """Of declaring row keys unique, which those of all rows of that version are."""
    return [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version), NoLoadUnderWay(tuple(ended))]


def to_replace_files(job_id: str, fragment_ids: Sequence[int], dataset: int) -> list[TableRequirement]:
    """Of a compaction: what it read is still there. Rows of another schema are Lance's own to refuse or to merge."""
    return [JobNotDone(job_id), DatasetIs(dataset), FilesPresent(tuple(fragment_ids)), NoRestoreUnderWay()]


def to_split(partition_id: str, moved: Sequence[int], lance_version: int, dataset: int) -> list[TableRequirement]:
    """Of splitting a leaf, whose files are recorded anew in those that they lie in. It starts again when refused."""
    return [DatasetIs(dataset), PartitionIsLeaf(partition_id), *_to_move(moved, lance_version)]


def to_place_files(moved: Sequence[int], lance_version: int, dataset: int) -> list[TableRequirement]:
    """Of recording files in the leaf that holds all of them."""
    return [DatasetIs(dataset), *_to_move(moved, lance_version)]


def _to_move(fragment_ids: Sequence[int], lance_version: int) -> list[TableRequirement]:
    return [LanceVersionIs(lance_version), FilesPresent(tuple(fragment_ids))]


def to_change_schema(lance_version: int, dataset: int) -> list[TableRequirement]:
    """Of one change of columns: it was checked on the rows of exactly that version."""
    return [DatasetIs(dataset), LanceVersionIs(lance_version), NoRestoreUnderWay()]


def to_redeclare(generation: int) -> list[TableRequirement]:
    """Of changes to properties that were planned together on what was declared then."""
    return [GenerationIs(generation)]


def to_set_a_flag() -> list[TableRequirement]:
    """Of online, description, tags, protection: the last one holds."""
    return []


def to_begin_rewrite(dataset: int, generation: int) -> list[TableRequirement]:
    """Of a rewrite's beginning, which changes nothing that others see."""
    return [DatasetIs(dataset), GenerationIs(generation)]


def to_swap(dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Of a rewrite's end: all that it copied is all there is."""
    return [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version), NoRestoreUnderWay()]


def to_restore(dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Of going back to a savepoint: all that it undoes was previewed."""
    return [DatasetIs(dataset), GenerationIs(generation), LanceVersionIs(lance_version)]


def to_record_restore(run_id: str, dataset: int, generation: int, lance_version: int) -> list[TableRequirement]:
    """Of recording what a run restored, of one table or of several: nothing that it undoes came since, and it was not
    given up."""
    return [*to_restore(dataset, generation, lance_version), RunHasStatus(run_id, "RUNNING")]


def to_record(lance_version: int, dataset: int) -> list[TableRequirement]:
    """Of the roll-forward, which starts again when it is refused: nobody else recorded the same commits."""
    return [DatasetIs(dataset), LanceVersionIs(lance_version)]


def to_register(database: str, name: str) -> list[InstanceRequirement]:
    """Of a new table's name."""
    return [NameFree(database, name)]


def to_rename(table_id: str, database: str, name: str) -> list[InstanceRequirement]:
    """Of another name for a table; its own log knows nothing of it."""
    return [TableHasStatus(table_id, "active"), NameFree(database, name)]


TABLE_OPERATIONS: Mapping[str, Operation] = {
    "append": Operation("add files", "the job is not done; the same dataset and schema"),
    "append-unique": Operation(
        "add files with unique keys",
        "the job is not done; the same dataset, schema and version; no other load under way; else it looks again",
    ),
    "compact": Operation("replace files", "the job is not done; the same dataset; the files are there"),
    "split": Operation("split a leaf", "the same dataset, at the same version; it is a leaf; else it starts again"),
    "schema": Operation("change the schema", "the same dataset, at the same version"),
    "online": Operation("online flag and the like", "nothing: the last one holds"),
    "declare": Operation("properties planned together", "the same generation"),
    "make-unique": Operation(
        "make keys unique", "the same dataset, at the same version; the same generation; no load under way"
    ),
    "rewrite": Operation("swap in a rewrite", "the same dataset, at the same version; the same generation"),
    "restore": Operation("go back to a savepoint", "the same dataset, at the same version; the same generation"),
    "record": Operation("record what Lance has", "the same dataset, at the same version; else it starts again"),
    "give-up": Operation("give up a commit", "it is under way"),
    "delete": Operation("delete the table's log", "nothing"),
}

INSTANCE_OPERATIONS: Mapping[str, Operation] = {
    "register": Operation("new table", "the name is free"),
    "rename": Operation("rename", "the table is active; the name is free"),
    "deleting": Operation("begin to delete", "the table is there"),
    "forget": Operation("forget a deleted table", "the table is there"),
}

_OTHER_VERSION = Refused("the dataset is at version 6, not 5")
_OTHER_GENERATION = Refused("the table is at generation 2, not 1")
_REWRITTEN = Refused("the table was rewritten: its dataset is number 2, not 1")
_NO_COMMIT = Refused("job open-1 has no commit under way", only="job")
_TAKEN = Refused("the name nyc.shared_1 belongs to table", only="name")
_FORGOTTEN = Refused("does not exist", only="table")

#: How the second of two fares, by (first, second). A pair that is not here commits, both.
RULES: Mapping[tuple[str, str], Refused] = {
    ("append", "append"): Refused("job job-1 is done already, as version 6 of the dataset", only="job"),
    ("append", "append-unique"): _OTHER_VERSION,
    ("append", "make-unique"): _OTHER_VERSION,
    ("append", "split"): _OTHER_VERSION,
    ("append", "schema"): _OTHER_VERSION,
    ("append", "rewrite"): _OTHER_VERSION,
    ("append", "restore"): _OTHER_VERSION,
    ("append", "record"): _OTHER_VERSION,
    ("append-unique", "append"): Refused("job job-1 is done already, as version 6 of the dataset", only="job"),
    ("append-unique", "append-unique"): _OTHER_VERSION,
    ("append-unique", "make-unique"): _OTHER_VERSION,
    ("append-unique", "split"): _OTHER_VERSION,
    ("append-unique", "schema"): _OTHER_VERSION,
    ("append-unique", "rewrite"): _OTHER_VERSION,
    ("append-unique", "restore"): _OTHER_VERSION,
    ("append-unique", "record"): _OTHER_VERSION,
    ("compact", "append-unique"): _OTHER_VERSION,
    ("compact", "make-unique"): _OTHER_VERSION,
    ("compact", "compact"): Refused("fragments 0, 1 are no longer in the table", only="files"),
    ("compact", "split"): _OTHER_VERSION,
    ("compact", "schema"): _OTHER_VERSION,
    ("compact", "rewrite"): _OTHER_VERSION,
    ("compact", "restore"): _OTHER_VERSION,
    ("compact", "record"): _OTHER_VERSION,
    ("split", "split"): Refused("partition leaf-1 was split into leaf-1-a and leaf-1-b", only="leaf"),
    ("schema", "append"): Refused("the schema is "),
    ("schema", "append-unique"): Refused("the schema is "),
    ("schema", "make-unique"): _OTHER_GENERATION,
    ("schema", "split"): _OTHER_VERSION,
    ("schema", "schema"): _OTHER_VERSION,
    ("schema", "declare"): _OTHER_GENERATION,
    ("schema", "rewrite"): _OTHER_GENERATION,
    ("schema", "restore"): _OTHER_GENERATION,
    ("schema", "record"): _OTHER_VERSION,
    ("online", "declare"): _OTHER_GENERATION,
    ("online", "make-unique"): _OTHER_GENERATION,
    ("online", "rewrite"): _OTHER_GENERATION,
    ("online", "restore"): _OTHER_GENERATION,
    ("declare", "declare"): _OTHER_GENERATION,
    ("declare", "make-unique"): _OTHER_GENERATION,
    ("make-unique", "declare"): _OTHER_GENERATION,
    ("make-unique", "make-unique"): _OTHER_GENERATION,
    ("make-unique", "rewrite"): _OTHER_GENERATION,
    ("make-unique", "restore"): _OTHER_GENERATION,
    ("declare", "rewrite"): _OTHER_GENERATION,
    ("declare", "restore"): _OTHER_GENERATION,
    ("rewrite", "append"): _REWRITTEN,
    ("rewrite", "append-unique"): _REWRITTEN,
    ("rewrite", "make-unique"): _REWRITTEN,
    ("rewrite", "compact"): _REWRITTEN,
    ("rewrite", "split"): _REWRITTEN,
    ("rewrite", "schema"): _REWRITTEN,
    ("rewrite", "declare"): _OTHER_GENERATION,
    ("rewrite", "rewrite"): _REWRITTEN,
    ("rewrite", "restore"): _REWRITTEN,
    ("rewrite", "record"): _REWRITTEN,
    ("rewrite", "give-up"): Refused("has no commit under way"),
    ("restore", "append-unique"): _OTHER_VERSION,
    ("restore", "make-unique"): _OTHER_GENERATION,
    ("restore", "split"): _OTHER_VERSION,
    ("restore", "schema"): _OTHER_VERSION,
    ("restore", "declare"): _OTHER_GENERATION,
    ("restore", "rewrite"): _OTHER_GENERATION,
    ("restore", "restore"): _OTHER_GENERATION,
    ("restore", "record"): _OTHER_VERSION,
    ("record", "append-unique"): _OTHER_VERSION,
    ("record", "make-unique"): _OTHER_VERSION,
    ("record", "restore"): _OTHER_VERSION,
    ("record", "split"): _OTHER_VERSION,
    ("record", "schema"): _OTHER_VERSION,
    ("record", "rewrite"): _OTHER_VERSION,
    ("record", "record"): _OTHER_VERSION,
    ("give-up", "give-up"): _NO_COMMIT,
    **{("delete", second): Refused("it was removed") for second in TABLE_OPERATIONS if second != "delete"},
    ("register", "register"): _TAKEN,
    ("register", "rename"): _TAKEN,
    ("rename", "register"): _TAKEN,
    ("rename", "rename"): _TAKEN,
    ("deleting", "rename"): Refused("is deleting, not active", only="table"),
    ("forget", "rename"): _FORGOTTEN,
    ("forget", "deleting"): _FORGOTTEN,
    ("forget", "forget"): _FORGOTTEN,
    **SERVICE_RULES,
}


def as_markdown() -> str:
    """The rules as the tables of docs/state-format.md: a row is the first, a column the second."""
    return "\n".join([*_matrix(TABLE_OPERATIONS), "", *_matrix(INSTANCE_OPERATIONS), "", *_matrix(SERVICE_OPERATIONS)])


def exclusions_as_markdown() -> str:
    """Which services' runs do not run beside each other, as the table of docs/state-format.md."""
    lines = ["| a run of | does not start beside one of |", "|---|---|"]
    return "\n".join(lines + [f"| {kind} | {', '.join((kind, *others))} |" for kind, others in EXCLUDES.items()])


def _matrix(operations: Mapping[str, Operation]) -> list[str]:
    letters = {name: chr(ord("a") + i) for i, name in enumerate(operations)}
    lines = [f"| first ↓, second → | {' | '.join(letters.values())} | it requires |"]
    lines.append("|---" * (len(operations) + 2) + "|")
    for first, operation in operations.items():
        cells = " | ".join(_cell(RULES.get((first, second))) for second in operations)
        lines.append(f"| **{letters[first]}** {operation.name} | {cells} | {operation.requires} |")
    return lines


def _cell(rule: Refused | None) -> str:
    return "" if rule is None else f"✗ same {rule.only}" if rule.only else "✗"
