"""What became of a commit to Lance that raised: Lance may have it, may have refused it, or may yet take it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.lance_transactions import (
    InDoubt,
    NotTaken,
    RemoveFragments,
    Restore,
    Taken,
    commit_now,
    metadata_at,
    prepare,
    send,
)

BUSY = OSError("Too many concurrent writers. Attempted 8 times, but failed on retry_timeout of 30.000 seconds.")
CONFLICT = OSError("Retryable commit conflict for version 3: it was preempted by a concurrent transaction")
OVERTAKEN = OSError("Object was concurrently modified by another operation")
INVALID = ValueError("Invalid user input: fragments are in different parts of an index")
LOST = OSError("connection reset by peer")


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """At version 2, with one fragment for each version."""
    location = str(tmp_path / "dataset")
    lance.write_dataset(pa.table({"id": [1, 2]}), location)
    return lance.write_dataset(pa.table({"id": [3]}), location, mode="append")


def failing(failure: Exception, monkeypatch: pytest.MonkeyPatch, *, first: Any = None) -> None:
    """Each commit does `first`, which is given Lance's own commit and its arguments, and raises."""
    real = lance.LanceDataset.commit

    def commit(*args: Any, **named: Any) -> None:
        if first is not None:
            first(real, *args, **named)
        raise failure

    monkeypatch.setattr(lance.LanceDataset, "commit", commit)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        pytest.param(BUSY, "races lost", id="others were always first"),
        pytest.param(CONFLICT, "conflict", id="a conflict"),
        pytest.param(OVERTAKEN, "overtaken", id="storage speaks of somebody else"),
        pytest.param(INVALID, "invalid", id="an operation that Lance does not accept"),
        pytest.param(LOST, None, id="no answer"),
    ],
)
def test_what_raised_and_is_not_there(
    failure: Exception, reason: str | None, dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = prepare(dataset, Restore(1))
    with monkeypatch.context() as patched:
        failing(failure, patched)
        outcome = send(dataset.uri, dataset, transaction)
        with pytest.raises(type(failure), match=str(failure)[:20]):
            commit_now(dataset.uri, dataset, Restore(1))
    expected = InDoubt(failure) if reason is None else NotTaken(reason, failure)  # type: ignore[arg-type]
    assert outcome == expected and lance.dataset(dataset.uri).version == 2
    assert isinstance(send(dataset.uri, dataset, transaction), Taken)  # the same transaction can be sent again
    assert lance.dataset(dataset.uri).count_rows() == 2


@pytest.mark.parametrize("failure", [BUSY, CONFLICT, OVERTAKEN, INVALID, LOST], ids=str)
def test_what_raised_and_is_there(
    failure: Exception, dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where others committed on top of it."""

    def done(real: Any, base: lance.LanceDataset, transaction: lance.Transaction, **named: Any) -> None:
        real(base, transaction, **named)
        lance.write_dataset(pa.table({"id": [4]}), base.uri, mode="append")

    info = CommitMetadata("job-1", "restore", 0)
    failing(failure, monkeypatch, first=done)
    assert send(dataset.uri, dataset, prepare(dataset, Restore(1), [info])) == Taken(None)
    after = lance.dataset(dataset.uri)
    assert after.version == 4 and metadata_at(after, 3) == (info,) and metadata_at(after, 4) == ()


def test_a_dataset_that_was_removed(dataset: lance.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(LOST, monkeypatch, first=lambda *_, **__: shutil.rmtree(dataset.uri))
    assert send(dataset.uri, dataset, prepare(dataset, Restore(1))) == NotTaken("removed", LOST)


def test_one_that_conflicts_with_a_real_commit_of_others(dataset: lance.LanceDataset) -> None:
    """Lance says so by itself."""
    transaction = prepare(dataset, RemoveFragments([0], "id < 3"))
    lance.dataset(dataset.uri).delete("id = 1")
    outcome = send(dataset.uri, dataset, transaction)
    assert isinstance(outcome, NotTaken) and outcome.reason == "conflict"
    assert lance.dataset(dataset.uri).count_rows() == 2
