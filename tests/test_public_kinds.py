"""The `kind` of errors and of changes in JSON: programs compare it, so it stays when a class is renamed."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import get_args

from deployer.plan.changes import Change

ROOT = Path(__file__).parents[1]

CHANGES = [
    "AddColumn",
    "ChangeClusters",
    "ChangeColumnComputed",
    "ChangeColumnDefault",
    "ChangeColumnDescription",
    "ChangeColumnSensitive",
    "ChangeColumnSource",
    "ChangeDatasetServices",
    "ChangeDefaultBlueprint",
    "ChangeDescription",
    "ChangeEmbedding",
    "ChangeEngine",
    "ChangeHolds",
    "ChangeLeafLimit",
    "ChangeMaxStaleness",
    "ChangeNotify",
    "ChangeRegister",
    "ChangeRetainedChanges",
    "ChangeRetention",
    "ChangeRoot",
    "ChangeRowKeys",
    "ChangeServiceOptions",
    "ChangeSortKeys",
    "ChangeSources",
    "ChangeSplitPoints",
    "ChangeStateBackend",
    "ChangeStorage",
    "ChangeTags",
    "ChangeTrigger",
    "ChangeVersionsKept",
    "ChangeViewQuery",
    "ConvertColumn",
    "CreateDataset",
    "CreateIndex",
    "CreateInstance",
    "CreateSearchIndex",
    "CreateService",
    "CreateTable",
    "DeleteDataset",
    "DeleteInstance",
    "DeleteService",
    "DeleteTable",
    "DropColumn",
    "DropIndex",
    "DropSearchIndex",
    "MoveServiceToCluster",
    "RebuildIndex",
    "RebuildSearchIndex",
    "RelaxNullability",
    "RenameColumn",
    "RenameIndex",
    "RenameTable",
    "ReorderColumns",
    "SetDeletionProtection",
    "SetOnline",
    "SetUnique",
    "TightenNullability",
    "WidenColumn",
]
ERRORS = [
    "AlreadyThere",
    "CallFailed",
    "ChangedSource",
    "CommitTimedOut",
    "Conflict",
    "Corrupt",
    "DeployerError",
    "EngineFailed",
    "FunctionFailed",
    "InUse",
    "Interrupted",
    "InvalidFunction",
    "InvalidInput",
    "InvalidSpecs",
    "KeysTaken",
    "NameTaken",
    "NoStableRowIds",
    "NotFound",
    "NotPublished",
    "NotWritten",
    "OutcomeUnknown",
    "Preempted",
    "Refused",
    "ResourcesUnavailable",
    "RunCancelled",
    "TargetFailed",
    "TimedOut",
    "TooEarly",
    "TurnedAway",
    "Uneditable",
    "Unreachable",
    "UnsupportedClient",
    "WrongKey",
]
SHARED = {"Refused": 3, "TargetFailed": 2}  #: a kind that several errors have: PlanRefused and PlanMoved are refusals


def test_the_kinds_of_changes_are_those_that_policies_and_readers_know() -> None:
    assert sorted(each.kind for each in get_args(Change)) == CHANGES
    assert all("kind" in vars(each) for each in get_args(Change))


def test_the_kinds_of_errors_are_those_that_readers_know() -> None:
    found = kinds_of_errors()
    assert sorted(set(found)) == ERRORS
    assert {kind: count for kind, count in Counter(found).items() if count > 1} == SHARED


def kinds_of_errors() -> list[str]:
    """The `kind` of each class of the hierarchy, read from the sources. Fails for a class without one of its own."""
    sources = [path for folder in ("deployer", "spark_jobs") for path in (ROOT / folder).rglob("*.py")]
    classes = [
        node
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    names, found = {"DeployerError"}, []
    for _ in range(5):  # levels of the hierarchy, and more
        names |= {each.name for each in classes if names & {_name(base) for base in each.bases}}
    for each in classes:
        if each.name in names:
            own = [
                ast.literal_eval(line.value)
                for line in each.body
                if isinstance(line, ast.Assign) and _assigns_kind(line)
            ]
            assert len(own) == 1, f"{each.name} has no `kind` of its own"
            found += own
    return found


def _name(base: ast.expr) -> str:
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _assigns_kind(line: ast.Assign) -> bool:
    return [_name(target) for target in line.targets] == ["kind"]
