"""Commits through a network that drops, delays and duplicates, to servers that fail and throttle."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from deployer.errors import CommitTimedOut, DeployerError, OutcomeUnknown
from deployer.state.backends.dynamodb import backend as dynamodb
from deployer.state.backends.dynamodb.requests import PATIENCE, Requests
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.updates import FilesAdded
from deployer.state.snapshots.retention import SnapshotPolicy

from .faults import FIVE_PERCENT, Fault, Interpose
from .samples import NEVER, TABLE, added, creation, file, store_at

#: Sets the seconds in which requests are sent again.
BePatient = Callable[[float], None]

# A request that was refused for sure is no doubt; one without an answer is.
ALWAYS: dict[Fault, type[DeployerError]] = {
    "throttle": CommitTimedOut,
    "500 before": OutcomeUnknown,
    "lose request": OutcomeUnknown,
}


@pytest.mark.parametrize("commits", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_commit_is_lost_or_doubled_behind_a_bad_network(
    on_s3: str, interpose: Interpose, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers are waited for less long than the longest delay: some requests arrive after they were given up.
    monkeypatch.setattr("deployer.state.open_s3.Requests", partial(Requests, answer=0.5))
    monkeypatch.setattr(dynamodb, "INLINE", 400)
    direct = store_at(on_s3)
    direct.commit(TABLE, [creation()])
    writers, each = 4, commits // 4
    network = interpose(FIVE_PERCENT)
    policy = SnapshotPolicy(entries=50, keep=3, keep_for=0)

    def write(writer: int) -> list[int]:
        store, versions = store_at(on_s3, policy=policy), []
        for number in range(each):
            job, fragment = f"{writer}-{number}", writer * each + number
            files = tuple(file(10 * fragment + part) for part in range(number % 8 + 1))  # bodies small and large
            update = FilesAdded(files, fragment, job, 10 * len(files))
            versions.append(store.commit(TABLE, [update], [JobNotDone(job)]).version)
        return versions

    with ThreadPoolExecutor(writers) as threads:
        versions = [version for won in threads.map(write, range(writers)) for version in won]
    state = direct.table(TABLE)
    assert sorted(state.jobs) == sorted(f"{writer}-{number}" for writer in range(writers) for number in range(each))
    assert sorted(versions) == list(range(2, commits + 2))
    assert state.version == commits + 1
    assert sorted(file.fragment_id for file in state.files) == sorted(
        10 * (writer * each + number) + part
        for writer in range(writers)
        for number in range(each)
        for part in range(number % 8 + 1)
    )
    assert store_at(on_s3).table(TABLE) == state
    assert set(network[0].faults) == set(FIVE_PERCENT)
    assert "GET" not in network[0].requests


@pytest.fixture
def be_patient(monkeypatch: pytest.MonkeyPatch) -> BePatient:
    """Sets how long the stores opened in the test ask again. It is short only while no answer comes: others may take as
    long as a busy machine needs."""
    made: list[Requests] = []

    def requests(*arguments: Any, **options: Any) -> Requests:
        made.append(Requests(*arguments, answer=3, **options))
        return made[-1]

    def set_patience(seconds: float) -> None:
        for each in made:
            each._patience = seconds

    monkeypatch.setattr("deployer.state.open_s3.Requests", requests)
    return set_patience


@pytest.mark.parametrize(("fault", "error"), ALWAYS.items())
def test_a_transaction_that_timed_out_can_be_sent_again(
    on_s3: str, interpose: Interpose, fault: Fault, error: type[DeployerError], be_patient: BePatient
) -> None:
    network, _ = interpose({})
    store = store_at(on_s3, policy=NEVER)
    store.commit(TABLE, [creation()])
    network.only, network.rates = {"TransactWriteItems"}, {fault: 1.0}
    be_patient(0.3)
    with pytest.raises(error, match="within 1 s") as caught:
        store.commit(TABLE, [added(1)], txn_id="t-1", timeout=1)
    if isinstance(caught.value, CommitTimedOut):
        assert caught.value.attempts >= 1
    network.rates = {}
    be_patient(PATIENCE)
    assert store.commit(TABLE, [added(1)], txn_id="t-1").version == 2
    assert store.table(TABLE).files.count == 1


def test_a_write_whose_answers_are_all_lost_is_found_by_its_transaction(
    on_s3: str, interpose: Interpose, be_patient: BePatient
) -> None:
    network, _ = interpose({})
    store = store_at(on_s3, policy=NEVER)
    store.commit(TABLE, [creation()])
    network.only, network.rates = {"TransactWriteItems"}, {"lose answer": 1.0}
    be_patient(0.3)
    assert store.commit(TABLE, [added(1)]).version == 2
    assert network.faults["lose answer"] > 1
    assert store_at(on_s3).table(TABLE).files.count == 1


def test_a_network_without_any_answer_ends_in_a_time_out(
    on_s3: str, interpose: Interpose, be_patient: BePatient
) -> None:
    network, _ = interpose({})
    store = store_at(on_s3, policy=NEVER)
    store.commit(TABLE, [creation()])
    network.rates = {"throttle": 1.0}
    be_patient(0.3)
    with pytest.raises(
        CommitTimedOut, match=r"1 attempts within 1 s found no answer: DynamoDB table .* no answer to \w+ within"
    ):
        store.commit(TABLE, [added(1)], timeout=1)
    with pytest.raises(OutcomeUnknown, match=r"no answer to \w+ within 0\.3 s: ProvisionedThroughputExceededException"):
        store.table(TABLE)
