"""How two concurrent transactions fare, by their kinds: what test_conflicts.py checks, and docs/state-format.md shows.

To print the tables of the document: `python -m tests.state.conflict_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deployer.state.model.services import EXCLUDES


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of transaction: its name in the table, and what it requires, in words."""

    name: str
    requires: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The second of two is refused with these words; with `only`, no other than a second of the same."""

    words: str
    only: str = ""


TABLE_OPERATIONS: Mapping[str, Operation] = {
    "append": Operation("add files", "the job is not done; the same dataset and schema"),
    "append-unique": Operation(
        "add files with unique keys",
        "the job is not done; the same dataset, schema and version; no other load under way; else it looks again",
    ),
    "compact": Operation(
        "replace files", "the job is not done; the same dataset; the files are there, and none is claimed"
    ),
    "change-rows": Operation("delete, update or merge rows", "the job is not done; the same dataset and schema"),
    "change-unique": Operation(
        "change rows with unique keys",
        "the job is not done; the same dataset and schema; no load under way; else it looks again",
    ),
    "claim": Operation(
        "claim fragments for columns",
        "the run is running and held by the same holder; the same dataset; the files are there",
    ),
    "fill": Operation(
        "write columns",
        "the job is not done; the same dataset and schema; the run is running and held by the same holder",
    ),
    "split": Operation("split a leaf", "the same dataset, at the same version; it is a leaf; else it starts again"),
    "schema": Operation("change the schema", "the same dataset, at the same version"),
    "online": Operation("online flag and the like", "nothing: the last one holds"),
    "declare": Operation("properties planned together", "the same generation"),
    "make-unique": Operation(
        "make keys unique", "the same dataset, at the same version; the same generation; no load under way"
    ),
    "rewrite": Operation(
        "swap in a rewrite", "the same dataset, at the same version; the same generation; no file is claimed"
    ),
    "restore": Operation("go back to a savepoint", "the same dataset, at the same version; the same generation"),
    "record": Operation("record what Lance has", "the same dataset, at the same version; else it starts again"),
    "give-up": Operation("give up a commit", "it is running"),
    "delete": Operation("delete the table's log", "nothing"),
}

INSTANCE_OPERATIONS: Mapping[str, Operation] = {
    "register": Operation("new table", "the name is free"),
    "rename": Operation("rename", "the table is active; the name is free"),
    "deleting": Operation("begin to delete", "the table is there"),
    "forget": Operation("forget a deleted table", "the table is there"),
}

SERVICE_OPERATIONS: Mapping[str, Operation] = {
    "create-service": Operation(
        "attach a service", "it is not there; by hand also: the table's services were not moved"
    ),
    "alter-service": Operation("change a service", "it is as it was read"),
    "move-services": Operation("move all services to a cluster", "nothing: the last one holds"),
    "pause-service": Operation("pause or resume a service", "it is there; the last one holds"),
    "remove-service": Operation("detach a service", "it is there; no run of it is queued or running"),
    "queue-run": Operation("queue a run", "the service is there; no run of it is queued or running"),
    "begin-load": Operation(
        "begin a load of columns", "no open run writes one of the columns; none runs that it excludes"
    ),
    "begin-backfill": Operation("begin a backfill", "no open run writes the column; none runs that it excludes"),
    "start-run": Operation("start a run", "it is queued; the service is not paused; none runs that it excludes"),
    "end-queued": Operation("end a queued run", "it is queued"),
    "renew-lease": Operation("renew a lease", "the run is running and held by the same holder"),
    "ask-to-end": Operation("ask a run to end", "it is running"),
    "end-run": Operation("end a run", "it is running and held by the same holder"),
    "fail-dead": Operation("fail a dead run", "it is running and its lease was not renewed"),
    "take-savepoint": Operation("take a savepoint", "the name is free"),
    "remove-savepoint": Operation("remove a savepoint", "it is there"),
}

_OTHER_VERSION = Refusal("the dataset is at version 6, not 5")
_OTHER_GENERATION = Refusal("the table is at generation 2, not 1")
_JOB_DONE = Refusal("job job-1 is done already, as version 6 of the dataset", only="job")
_REWRITTEN = Refusal("the table was rewritten: its dataset is number 2, not 1")
_NO_COMMIT = Refusal("job open-1 has no unfinished commit", only="job")
_TAKEN = Refusal("the name nyc.shared_1 belongs to table", only="name")
_FORGOTTEN = Refusal("does not exist", only="table")

_GONE = Refusal("the table has no CLUSTER service", only="service")
_CHANGED = Refusal("the CLUSTER service was changed meanwhile", only="service")
_QUEUED = Refusal("run new-1 of CLUSTER is QUEUED", only="service")
_LOADING = Refusal("run load-1 of LOAD_COLUMNS for own_1 is RUNNING", only="column")
_BACKFILLING = Refusal("run backfill-1 of BACKFILL for own_1 is RUNNING", only="column")
_STARTED = Refusal("run queued-1 is RUNNING, not QUEUED", only="run")
_CANCELLED = Refusal("run queued-1 is CANCELLED, not QUEUED", only="run")
_ENDED = Refusal("run running-1 is SUCCEEDED, not RUNNING", only="run")
_FAILED = Refusal("run running-1 is FAILED, not RUNNING", only="run")

SERVICE_RULES: Mapping[tuple[str, str], Refusal] = {
    ("create-service", "create-service"): Refusal("the table has a METASYNC service already", only="service"),
    ("alter-service", "alter-service"): _CHANGED,
    ("move-services", "create-service"): Refusal("the services of the table were moved to cluster emr-1"),
    ("move-services", "alter-service"): Refusal("service was changed meanwhile"),
    ("pause-service", "alter-service"): _CHANGED,
    ("pause-service", "start-run"): Refusal("the COMPACT service is paused", only="service"),
    ("remove-service", "alter-service"): _GONE,
    ("remove-service", "pause-service"): _GONE,
    ("remove-service", "remove-service"): _GONE,
    ("remove-service", "queue-run"): _GONE,
    ("queue-run", "remove-service"): _QUEUED,
    ("queue-run", "queue-run"): _QUEUED,
    **{("begin-load", second): _LOADING for second in ("begin-load", "begin-backfill")},
    **{("begin-backfill", second): _BACKFILLING for second in ("begin-load", "begin-backfill")},
    ("start-run", "start-run"): _STARTED,
    ("start-run", "end-queued"): _STARTED,
    ("end-queued", "start-run"): _CANCELLED,
    ("end-queued", "end-queued"): _CANCELLED,
    ("renew-lease", "fail-dead"): Refusal("the lease of run running-1 was renewed", only="run"),
    **{("end-run", second): _ENDED for second in ("renew-lease", "ask-to-end", "end-run", "fail-dead")},
    **{("fail-dead", second): _FAILED for second in ("renew-lease", "ask-to-end", "end-run", "fail-dead")},
    ("take-savepoint", "take-savepoint"): Refusal("the table has a savepoint new-1 already", only="name"),
    ("remove-savepoint", "remove-savepoint"): Refusal("the table has no savepoint old-1", only="name"),
}

#: How the second of two fares, by (first, second). A pair that is not here commits, both.
RULES: Mapping[tuple[str, str], Refusal] = {
    ("append", "append"): Refusal("job job-1 is done already, as version 6 of the dataset", only="job"),
    ("append", "append-unique"): _OTHER_VERSION,
    ("append", "make-unique"): _OTHER_VERSION,
    ("append", "split"): _OTHER_VERSION,
    ("append", "schema"): _OTHER_VERSION,
    ("append", "rewrite"): _OTHER_VERSION,
    ("append", "restore"): _OTHER_VERSION,
    ("append", "record"): _OTHER_VERSION,
    ("append-unique", "append"): Refusal("job job-1 is done already, as version 6 of the dataset", only="job"),
    ("append-unique", "append-unique"): _OTHER_VERSION,
    ("append-unique", "make-unique"): _OTHER_VERSION,
    ("append-unique", "split"): _OTHER_VERSION,
    ("append-unique", "schema"): _OTHER_VERSION,
    ("append-unique", "rewrite"): _OTHER_VERSION,
    ("append-unique", "restore"): _OTHER_VERSION,
    ("append-unique", "record"): _OTHER_VERSION,
    **{
        (first, second): refusal
        for first in ("change-rows", "change-unique")
        for second, refusal in {
            "change-rows": _JOB_DONE,
            "change-unique": _JOB_DONE,
            "append": _JOB_DONE,
            **dict.fromkeys(
                ("append-unique", "make-unique", "split", "schema", "rewrite", "restore", "record"), _OTHER_VERSION
            ),
        }.items()
    },
    **{
        (first, second): refusal
        for second in ("change-rows", "change-unique")
        for first, refusal in {
            "append": _JOB_DONE,
            "append-unique": _JOB_DONE,
            "schema": Refusal("the schema is "),
            "rewrite": _REWRITTEN,
        }.items()
    },
    ("compact", "append-unique"): _OTHER_VERSION,
    ("compact", "make-unique"): _OTHER_VERSION,
    ("compact", "compact"): Refusal("fragments 0, 1 are no longer in the table", only="files"),
    ("compact", "split"): _OTHER_VERSION,
    ("compact", "schema"): _OTHER_VERSION,
    ("compact", "rewrite"): _OTHER_VERSION,
    ("compact", "restore"): _OTHER_VERSION,
    ("compact", "record"): _OTHER_VERSION,
    ("compact", "claim"): Refusal("fragments 0, 1 are no longer in the table", only="files"),
    ("claim", "compact"): Refusal("run loading-1 of LOAD_COLUMNS writes column_1 of fragments 0, 1", only="files"),
    ("claim", "rewrite"): Refusal("run loading-1 of LOAD_COLUMNS writes column_1 of fragments 0, 1"),
    ("fill", "append-unique"): _OTHER_VERSION,
    ("fill", "make-unique"): _OTHER_VERSION,
    ("fill", "fill"): Refusal("job fill-1 is done already, as version 6 of the dataset", only="job"),
    ("fill", "split"): _OTHER_VERSION,
    ("fill", "schema"): _OTHER_VERSION,
    ("fill", "rewrite"): _OTHER_VERSION,
    ("fill", "restore"): _OTHER_VERSION,
    ("fill", "record"): _OTHER_VERSION,
    ("schema", "fill"): Refusal("the schema is "),
    ("rewrite", "claim"): _REWRITTEN,
    ("rewrite", "fill"): _REWRITTEN,
    ("split", "split"): Refusal("partition leaf-1 was split into leaf-1-a and leaf-1-b", only="leaf"),
    ("schema", "append"): Refusal("the schema is "),
    ("schema", "append-unique"): Refusal("the schema is "),
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
    ("rewrite", "give-up"): Refusal("has no unfinished commit"),
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
    **{("delete", second): Refusal("it was removed") for second in TABLE_OPERATIONS if second != "delete"},
    ("register", "register"): _TAKEN,
    ("register", "rename"): _TAKEN,
    ("rename", "register"): _TAKEN,
    ("rename", "rename"): _TAKEN,
    ("deleting", "rename"): Refusal("is deleting, not active", only="table"),
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


def _cell(rule: Refusal | None) -> str:
    return "" if rule is None else f"✗ same {rule.only}" if rule.only else "✗"


if __name__ == "__main__":
    print(as_markdown(), exclusions_as_markdown(), sep="\n\n")
