"""The commit loop: lost races, conflicts, lost answers, time, several logs at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, cast

import pytest

from deployer.errors import CommitTimedOut, Conflict, InvalidInput, NotFound, OutcomeUnknown
from deployer.platform.storage.objects import ObjectStore
from deployer.platform.system.clock import Clock
from deployer.state.backends.protocol import Backend, Record, Tail
from deployer.state.commits import Part
from deployer.state.log.requirements import GenerationIs, JobNotDone, LogEmpty, NameFree, PropertiesAre
from deployer.state.log.updates import CommitStarted, RegisterTable, SetInstanceProperties, SetTableProperties
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.store import StateStore

from .conftest import OpenBackend
from .samples import NEVER, TABLE, added, creation, entry, store_at

pytestmark = pytest.mark.gate

PutOnce = Callable[[Sequence[Record]], bool]


class Line:
    """A backend behind a bad line: each put is handled by the next of `plan`, then as usual."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner
        self.plan: list[Callable[[PutOnce, Sequence[Record]], bool]] = []
        self.puts = 0
        self.asked: list[Mapping[str, int]] = []
        self.before_reading: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put(self, records: Sequence[Record]) -> bool:
        self.puts += 1
        step = self.plan.pop(0) if self.plan else None
        return step(self._inner.put, records) if step else self._inner.put(records)

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        self.asked.append(dict(after))
        self.before_reading()
        return self._inner.tails(after)


class Ticks:
    """A clock that moves only by sleeping."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def clock(self) -> Clock:
        return Clock(
            now=lambda: int(self.seconds * 1000),
            monotonic=lambda: self.seconds,
            sleep=self.sleep,
            uniform=lambda low, high: high,
        )


def answer_lost(put: PutOnce, records: Sequence[Record]) -> bool:
    put(records)
    raise OutcomeUnknown("the answer was lost")


def request_lost(put: PutOnce, records: Sequence[Record]) -> bool:
    raise OutcomeUnknown("the request was lost")


@pytest.fixture
def line(open_backend: OpenBackend) -> Line:
    return Line(open_backend())


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def writer(line: Line, ticks: Ticks, objects: ObjectStore) -> StateStore:
    store = StateStore(cast(Backend, line), objects, ticks.clock(), NEVER)
    store.commit(TABLE, [creation()])
    line.puts, line.asked = 0, []
    return store


@pytest.fixture
def other(open_backend: OpenBackend, objects: ObjectStore) -> StateStore:
    """Another process's store on the same logs."""
    return StateStore(open_backend(), objects, policy=NEVER)


def _ids(store: StateStore) -> list[int]:
    return [each.fragment_id for each in store.table(TABLE).files]


def test_a_commit_by_the_only_writer_is_one_request(writer: StateStore, line: Line) -> None:
    state = writer.commit(TABLE, [added(1)])
    assert (state.version, line.puts, line.asked) == (2, 1, [])


def test_a_lost_race_reads_only_what_came_between(writer: StateStore, other: StateStore, line: Line) -> None:
    for number in range(5):
        other.commit(TABLE, [added(number)])
    state = writer.commit(TABLE, [added(9)])
    assert (state.version, line.puts, line.asked) == (7, 2, [{TABLE: 1}])
    assert _ids(other) == [0, 1, 2, 3, 4, 9]


def test_requirements_are_checked_again_after_a_lost_race(writer: StateStore, other: StateStore) -> None:
    other.commit(TABLE, [added(1, "nightly")])
    with pytest.raises(Conflict, match="job nightly is done already, as version 3 of the dataset"):
        writer.commit(TABLE, [added(2)], [JobNotDone("nightly")])
    assert _ids(other) == [1]


def test_updates_that_no_longer_make_sense_conflict(writer: StateStore, other: StateStore) -> None:
    other.commit(TABLE, [added(1)])
    with pytest.raises(Conflict, match="fragment 1 is in the table already"):
        writer.commit(TABLE, [added(1)])


def test_a_requirement_that_fails_on_an_old_state_is_checked_on_the_newest(
    writer: StateStore, other: StateStore
) -> None:
    other.commit(TABLE, [SetTableProperties({"description": "flights"})])
    state = writer.commit(TABLE, [added(1)], [GenerationIs(2)])
    assert state.version == 3


def test_retries_end_in_time_and_say_how_many(writer: StateStore, line: Line, ticks: Ticks) -> None:
    line.plan = [lambda put, records: False] * 1000
    with pytest.raises(CommitTimedOut, match=r"\d+ attempts within 2 s all lost") as caught:
        writer.commit(TABLE, [added(1)], timeout=2)
    assert caught.value.attempts == line.puts > 5
    assert sum(ticks.slept) == pytest.approx(2)
    assert ticks.slept[:4] == [0.002, 0.004, 0.008, 0.016]
    assert max(ticks.slept) <= 0.5


@pytest.mark.parametrize("step", [answer_lost, request_lost])
def test_a_lost_answer_is_settled_before_anything_is_sent_again(
    writer: StateStore, line: Line, step: Callable[[PutOnce, Sequence[Record]], bool]
) -> None:
    line.plan = [step]
    state = writer.commit(TABLE, [added(1)])
    assert state.version == 2
    assert _ids(writer) == [1]
    assert line.puts == (1 if step is answer_lost else 2)


def test_a_lost_answer_is_settled_when_others_commit_meanwhile(
    writer: StateStore, other: StateStore, line: Line
) -> None:
    def lost_then_others(put: PutOnce, records: Sequence[Record]) -> bool:
        put(records)
        for number in range(5, 8):
            other.commit(TABLE, [added(number)])
        raise OutcomeUnknown("the answer was lost")

    line.plan = [lost_then_others]
    assert writer.commit(TABLE, [added(1)]).version == 5
    assert _ids(other) == [1, 5, 6, 7]


def test_a_request_that_arrives_after_it_was_given_up_counts_once(writer: StateStore, line: Line) -> None:
    late: list[Record] = []

    def delayed(put: PutOnce, records: Sequence[Record]) -> bool:
        late.extend(records)
        raise OutcomeUnknown("the request is still under way")

    def arrives_first(put: PutOnce, records: Sequence[Record]) -> bool:
        assert put(late)
        return put(records)

    line.plan = [delayed, arrives_first]
    assert writer.commit(TABLE, [added(1)]).version == 2
    assert _ids(writer) == [1]


def test_an_outcome_that_stays_unknown_is_not_called_a_failure(writer: StateStore, line: Line) -> None:
    line.plan = [request_lost] * 1000
    with pytest.raises(OutcomeUnknown, match=r"the request was lost; try again with the same transaction id"):
        writer.commit(TABLE, [added(1)], timeout=1)


def test_an_outcome_below_the_floor_is_unknown(writer: StateStore, other: StateStore, line: Line) -> None:
    def lost_then_removed(put: PutOnce, records: Sequence[Record]) -> bool:
        other.commit(TABLE, [added(5)])
        other.snapshot(TABLE)
        line.truncate(TABLE, 2)
        raise OutcomeUnknown("the request was lost")

    line.plan = [lost_then_removed]
    with pytest.raises(OutcomeUnknown, match="no longer kept"):
        writer.commit(TABLE, [added(1)])


def test_a_transaction_is_made_once_however_often_it_is_sent(writer: StateStore, other: StateStore) -> None:
    writer.commit(TABLE, [added(1)], [GenerationIs(1)], txn_id="t-1")
    other.commit(TABLE, [SetTableProperties({"online": False})])
    for store in (writer, other):
        assert store.commit(TABLE, [added(1)], [GenerationIs(1)], txn_id="t-1").version == 3
    assert _ids(other) == [1]


def test_a_transaction_is_made_once_when_two_processes_send_it_at_once(
    writer: StateStore, other: StateStore, line: Line
) -> None:
    def overtaken(put: PutOnce, records: Sequence[Record]) -> bool:
        other.commit(TABLE, [added(1)], txn_id="t-1")
        return put(records)

    line.plan = [overtaken]
    assert writer.commit(TABLE, [added(1)], txn_id="t-1").version == 2


def test_a_transaction_that_another_process_made_is_no_conflict(
    writer: StateStore, other: StateStore, line: Line
) -> None:
    other.commit(TABLE, [SetTableProperties({"online": False})])

    def made_meanwhile() -> None:
        line.before_reading = lambda: None
        other.commit(TABLE, [SetTableProperties({"online": True})], [GenerationIs(2)], txn_id="t-1")

    line.before_reading = made_meanwhile
    state = writer.commit(TABLE, [SetTableProperties({"online": True})], [GenerationIs(2)], txn_id="t-1")
    assert (state.version, state.properties.generation) == (3, 3)


def test_several_logs_are_committed_all_or_none(writer: StateStore, other: StateStore) -> None:
    parts = [Part(INSTANCE_LOG, [RegisterTable(entry("b" * 32, "planes"))]), Part("b" * 32, [creation()])]
    states = writer.commit_all(parts, author="ann")
    assert {log: state.version for log, state in states.items()} == {INSTANCE_LOG: 1, "b" * 32: 1}
    first, second = other.log(INSTANCE_LOG)[0], other.log("b" * 32)[0]
    assert (first.txn_id, first.author) == (second.txn_id, "ann")
    with pytest.raises(Conflict, match=r"the name nyc\.planes belongs to table"):
        other.commit_all([Part("c" * 32, [creation()]), Part(INSTANCE_LOG, [RegisterTable(entry("c" * 32, "planes"))])])
    with pytest.raises(NotFound):
        other.table("c" * 32)


def test_a_transaction_over_several_logs_is_of_one_moment(root: str) -> None:
    times = count(5_000)  # the clock moves whenever it is looked at
    store = store_at(root, Clock(now=lambda: next(times)))
    for number in range(3):
        store.commit(f"{number}" * 32, [creation()])
    states = store.commit_all([Part(f"{number}" * 32, [added(1)]) for number in range(3)])
    assert len({state.at for state in states.values()}) == 1


def test_times_never_run_backwards_within_a_log(root: str) -> None:
    times = iter([5_000, 3_000, 9_000])
    store = store_at(root, Clock(now=lambda: next(times)))
    for number in range(3):
        store.commit(INSTANCE_LOG, [SetInstanceProperties({"n": number})])
    assert [each.at for each in store.log(INSTANCE_LOG)] == [5_000, 5_000, 9_000]


def test_what_is_given_back_is_what_others_read(writer: StateStore, other: StateStore) -> None:
    tags: dict[str, Any] = {"owners": ("ann", "bob")}
    state = writer.commit(TABLE, [SetTableProperties({"tags": tags, "row_keys": ["carrier"]})])
    tags["owners"] = ()
    assert state == other.table(TABLE)
    assert (state.properties.tags, state.properties.row_keys) == ({"owners": ["ann", "bob"]}, ("carrier",))


INVALID: list[tuple[str, list[Part], str]] = [
    ("nothing", [], "needs at least one log"),
    ("no updates", [Part(TABLE, [])], "has nothing to commit"),
    ("a log twice", [Part(TABLE, [added(1)]), Part(TABLE, [added(2)])], "each only once"),
    ("a log that is a path", [Part("../x", [added(1)])], "'../x' is not a table id"),
    ("a requirement of the instance", [Part(TABLE, [added(1)], [NameFree("a", "b")])], "NameFree cannot be required"),
    (
        "a requirement of a table",
        [Part(INSTANCE_LOG, [RegisterTable(entry())], [JobNotDone("j")])],
        "JobNotDone cannot",
    ),
    ("not a number", [Part(INSTANCE_LOG, [SetInstanceProperties({"x": math.nan})])], "nan cannot be kept"),
]


@pytest.mark.parametrize(("parts", "words"), [row[1:] for row in INVALID], ids=[row[0] for row in INVALID])
def test_a_transaction_that_cannot_be_is_refused_in_words(writer: StateStore, parts: list[Part], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        writer.commit_all(parts)


def test_a_removed_table_takes_no_more_commits(writer: StateStore, other: StateStore) -> None:
    other.table(TABLE)
    writer.remove_table_log(TABLE)
    for store in (writer, other):
        with pytest.raises(NotFound, match="it was removed"):
            store.commit(TABLE, [added(1)])
        with pytest.raises(NotFound, match="it was removed"):
            store.table(TABLE)
        with pytest.raises(NotFound, match="it was removed"):
            store.commit(TABLE, [creation()], [LogEmpty()])


def test_unrelated_requirements_do_not_stop_appends(writer: StateStore, other: StateStore) -> None:
    writer.commit(TABLE, [CommitStarted("j", "ingest", 1)])
    other.commit(TABLE, [added(1, "k")])
    writer.commit(TABLE, [added(2, "j")], [JobNotDone("j"), PropertiesAre({"online": True})])
    assert _ids(other) == [1, 2]
    assert sorted(other.table(TABLE).jobs) == ["j", "k"]
    assert not other.table(TABLE).intents
