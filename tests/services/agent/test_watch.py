"""What one look sees, and that nothing is read or opened of what did not move."""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import lance
import pytest
from prometheus_client.parser import text_string_to_metric_families

from deployer.datasets.storage.options import storage_options
from deployer.errors import InvalidInput
from deployer.platform.system.clock import Clock
from deployer.services.agent.agent import Agent, Settings
from deployer.services.agent.serving import address_of, served
from deployer.services.agent.watch import EXAMINE_AGAIN, REMOTE_LOOK, Watch
from deployer.services.api.attachments import create_service
from deployer.services.kinds.compact import compact_table
from deployer.specs.model import Cluster, InstanceSpec
from deployer.state import open_store
from deployer.state.model.services import Service
from deployer.tables.admin.instance import create_instance
from deployer.tables.open_table import open_entry
from tests.services.agent.conftest import Watched
from tests.tables.lakes import Lake, flights


@pytest.fixture
def watch(watched: Watched) -> Watch:
    """A watch that records what others committed, as the agent's does."""
    store, root = open_store(watched.lake.root), watched.lake.root
    return Watch(store, root, opened=lambda entry: open_entry(store, root, entry))


def test_what_did_not_move_is_not_thought_about_and_not_opened(
    watched: Watched, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.attach("COMPACT", {"small_files": 100, "deleted_share": 0.5})
    now = round(time.time() * 1000)
    assert watch.look(now).examined == 1
    opened: list[str] = []
    real = lance.dataset

    def reported(uri: str, *arguments: object, **more: object) -> object:
        opened.append(uri)
        return real(uri, *arguments, **more)

    monkeypatch.setattr(lance, "dataset", reported)
    assert [watch.look(now + number).examined for number in range(5)] == [0] * 5
    assert watch.look(now + 365 * 86_400_000).examined == 0  # no time means anything to it
    assert opened == []
    monkeypatch.undo()
    lance.write_dataset(flights(10, 40), watched.lake.open().opened.location, mode="append")
    look = watch.look(now + 10)
    [seen] = look.tables.values()
    assert (look.examined, seen.state.files.count) == (1, 5)  # by others than deployer, and recorded
    assert watch.look(now + 20).examined == 0


def test_time_brings_a_schedule_round(watched: Watched, watch: Watch) -> None:
    watched.attach("CLEAN", {"schedule": "0 * * * *"})
    now = round(time.time() * 1000)
    [seen] = watch.look(now).tables.values()
    [status] = seen.service_statuses
    assert (seen.due, status.label) == ((), "OK")
    assert status.next_at is not None and status.next_at % 3_600_000 == 0
    assert watch.look(status.next_at - 1).examined == 0
    [due] = watch.look(status.next_at).tables[seen.entry.table_id].due
    assert (due.service, due.cause) == ("CLEAN", "schedule")
    [late] = watch.look(status.next_at + 3_600_000).tables[seen.entry.table_id].service_statuses
    assert late.label == "OVERDUE"


def test_a_condition_that_nobody_answers_is_overdue_once_its_grace_is_over(watched: Watched) -> None:
    watched.attach("COMPACT", {"commits": 3})
    watch = Watch(open_store(watched.lake.root), watched.lake.root, grace=600)
    now = round(time.time() * 1000)
    found = {after: watch.look(now + after) for after in (1000, 500_000, 700_000)}
    message = {
        after: [each.label for seen in look.tables.values() for each in seen.service_statuses]
        for after, look in found.items()
    }
    assert message == {1000: ["DUE"], 500_000: ["DUE"], 700_000: ["OVERDUE"]}
    compact_table(watched.lake.root, "flights")
    [seen] = watch.look(now + 700_001).tables.values()
    assert [each.label for each in seen.service_statuses] == ["OK"]


def test_what_is_on_aws_is_left_to_it(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    clusters = (Cluster("far", "emr-serverless"), Cluster("near", "local"))
    create_instance(lake.root, InstanceSpec("nyc", lake.root, clusters=clusters), "tests/dev")
    watched = Watched(lake)
    lake.table(splits=())
    watched.append(4)
    watched.attach("COMPACT", {"commits": 3}, cluster="near")
    watched.attach("CLEAN", {"commits": 3}, cluster="far")
    watched.attach("AUTOSAVEPOINT", {"commits": 3})  # none is named: that of AWS
    [seen] = Watch(lake.store, lake.root).look(round(time.time() * 1000)).tables.values()
    assert [each.service for each in seen.due] == ["COMPACT"]
    assert [each.label for each in seen.service_statuses] == ["DUE"] * 3


def test_a_bucket_is_looked_at_less_often(on_s3: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, on_s3)
    lake.table(splits=())
    watched = Watched(lake)
    watched.append(1)
    watched.attach("COMPACT", {"commits": 2})
    watch, now = Watch(lake.store, on_s3), round(time.time() * 1000)
    assert [watch.look(now + each).examined for each in (0, 1, 2)] == [1, 0, 0]
    location = lake.open().opened.location
    rows, options = flights(10, 10), storage_options(location)
    lance.write_dataset(rows, location, mode="append", storage_options=options)
    assert watch.look(now + REMOTE_LOOK - 1).examined == 0
    [seen] = watch.look(now + REMOTE_LOOK).tables.values()
    assert (seen.state.files.count, [each.service for each in seen.due]) == (2, ["COMPACT"])
    lake.store.close()


def test_a_table_that_cannot_be_read_hides_no_other(watched: Watched, watch: Watch) -> None:
    watched.attach("COMPACT", {"commits": 3})
    watched.lake.table(splits=(), name="planes")
    broken = watched.lake.open("planes").opened
    create_service(watched.lake.store, broken.entry.table_id, Service("COMPACT", "AUTOMATIC", {"commits": 1}))
    shutil.rmtree(broken.location)
    now = round(time.time() * 1000)
    for moment in (now, now + 1, now + EXAMINE_AGAIN + 1):
        tables = watch.look(moment).tables
        assert "no Lance dataset" in tables[broken.entry.table_id].trouble
        assert tables[watched.table_id].due


def test_health_and_metrics(watched: Watched) -> None:
    watched.attach("COMPACT", {"commits": 3})
    passed = [0.0]
    clock = replace(Clock(), monotonic=lambda: passed[0])
    agent = Agent(watched.lake.store, watched.lake.root, lambda *_, **__: None, Settings(), clock)
    agent.look()
    with served(agent, "127.0.0.1:0") as address:
        with urllib.request.urlopen(f"http://{address}/healthz") as answer:
            assert json.load(answer)["status"] == "ok"
        passed[0] = 3600.0
        with pytest.raises(urllib.error.HTTPError) as late:
            urllib.request.urlopen(f"http://{address}/healthz")
        assert (late.value.code, json.load(late.value)["status"]) == (503, "late")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{address}/state")
        with urllib.request.urlopen(f"http://{address}/metrics") as answer:
            text = answer.read().decode()
        with pytest.raises(InvalidInput, match="in use"):
            served(agent, address).__enter__()
    found = {
        (sample.name, sample.labels.get("service")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["deployer_service_due", "COMPACT"] == 1
    assert found["deployer_service_overdue", "COMPACT"] == 0
    assert found["deployer_table_files", None] == 4
    assert found["deployer_agent_looks_total", None] == 1


@pytest.mark.parametrize("text", ["9178", "here:http", "127.0.0.1:70000", ""])
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(InvalidInput, match="write HOST:PORT"):
        address_of(text)
    assert address_of("[::1]:80") == ("::1", 80)
