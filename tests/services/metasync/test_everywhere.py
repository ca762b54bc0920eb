"""METASYNC as people and programs start it: by command, from Python, as a job, and at a load's end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import lancedb
import pytest
from lance.namespace import DirectoryNamespace
from lance_namespace import DescribeTableRequest

from deployer.platform.files.json_values import JSON
from deployer.runs.records import runs_of
from deployer.services import TableServicesClient
from deployer.services.api.attachments import alter_service, create_service
from deployer.services.kinds.metasync import metasync_table
from deployer.services.triggers.after_load import run_due_services
from deployer.state.model.services import Service
from spark_jobs.service import main
from tests.services.metasync.conftest import sync_all
from tests.tables.lakes import Lake, flights
from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

TARGETS: Mapping[str, JSON] = {"targets": [{"type": "directory"}]}


def rows(lake: Lake) -> int:
    count: int = lancedb.connect(lake.root).open_table("flights", namespace_path=["air"]).count_rows()
    return count


def attach(lake: Lake, options: Mapping[str, JSON] = TARGETS) -> None:
    service = Service("METASYNC", "AUTOMATIC", {"commits": 1}, options)
    create_service(lake.store, lake.open().opened.entry.table_id, service)


def test_a_load_publishes_at_its_end(lake: Lake) -> None:
    attach(lake)
    [ran] = run_due_services(lake.root, "flights")
    assert ran.as_json() == {"service": "METASYNC", "why": "1 commit", "status": "SUCCEEDED", "failure": ""}
    assert rows(lake) == 20
    assert run_due_services(lake.root, "flights") == []
    lake.ingest(lake.file(flights(5, 20)))
    [ran] = run_due_services(lake.root, "flights")
    assert (ran.done.status, rows(lake)) == ("SKIPPED", 25)
    newest, first = runs_of(lake.open().opened.state)
    assert "version 3 is published to 1 catalog already: directory" in newest.reason
    assert (first.figures.lance_version_after, newest.figures.lance_version_after) == (2, 3)
    [(title, reported)] = first.figures.after.items()
    assert title.startswith("directory ") and reported == {"action": "created", "version": 2}


def test_a_run_that_failed_is_due_again(lake: Lake) -> None:
    attach(lake, {"targets": [{"type": "directory", "root": f"{lake.folder}/nowhere"}]})
    for _ in range(2):
        [ran] = run_due_services(lake.root, "flights")
        assert ran.done is None and "opens only tables below its folder" in ran.failure


def test_targets_that_are_not_declared_any_more_are_cleared_by_the_services_own_run_alone(lake: Lake) -> None:
    above: dict[str, JSON] = {"type": "directory", "root": str(lake.folder)}
    attach(lake, {"targets": [{"type": "directory"}, above]})
    assert [each.action for each in metasync_table(lake.root, "flights").targets] == ["created", "created"]
    assert sync_all(lake, {"type": "directory"}).status == "SKIPPED"  # by hand: says nothing of the other
    table = lake.open().opened
    before = table.state.services["METASYNC"]
    alter_service(lake.store, table.entry.table_id, before, Service("METASYNC", options=TARGETS))
    assert [each.action for each in metasync_table(lake.root, "flights").targets] == ["unchanged", "removed"]
    assert list(lancedb.connect(lake.folder).list_tables(namespace_path=["air"]).tables) == []
    assert rows(lake) == 20


@pytest.mark.full
def test_from_python_and_as_a_job(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    about: dict[str, Any] = {"lake": lake.root, "database": "air", "service": "METASYNC"}
    with TableServicesClient(lake.root) as client:
        options = {"targets": "directory"}
        made = client.create_table_service(table="flights", trigger_mode="ON_DEMAND", options=options, **about)
        assert made.options == TARGETS
        run = client.run_service_in_table("flights", **about)
        assert (run.status, rows(lake)) == ("SUCCEEDED", 20)
    assert main([f"--root={lake.root}", "--table=air.flights", "--service=METASYNC", "--scheduled=2030-01-01T00Z"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "SKIPPED"


def test_by_command(loaded: Run) -> None:  # noqa: F811
    code, out, message = loaded("service", "run", "flights", "metasync")
    assert code == 0 and "air.flights: created version 2: directory " in " ".join(out.split())
    code, out, _ = loaded("service", "run", "flights", "metasync", "-o", "targets=directory", "--json")
    document = json.loads(out)
    assert (document["status"], document["targets"][0]["action"]) == ("SKIPPED", "unchanged")
    target = json.dumps([{"type": "rest", "uri": "http://127.0.0.1:1", "token_variable": "DEPLOYER_TOKEN_NOT_SET"}])
    code, _, message = loaded("service", "run", "flights", "metasync", "-o", f"targets={target}")
    assert code == 1 and "the environment variable DEPLOYER_TOKEN_NOT_SET holds no token" in " ".join(message.split())
    assert loaded("drift")[0] == 0  # what was published is nothing that specs declare


@pytest.mark.parametrize("options", [None, {}])
def test_without_targets_the_lakes_own_directory_namespace_is_the_target(
    lake: Lake, options: Mapping[str, JSON] | None
) -> None:
    above = {"type": "directory", "root": str(lake.folder)}
    assert sync_all(lake, above).status == "SUCCEEDED"
    [published] = metasync_table(lake.root, "flights", options).targets  # the table has no service: others stay
    assert (published.action, rows(lake)) == ("created", 20)
    found = DirectoryNamespace(root=lake.root).describe_table(DescribeTableRequest(id=["air", "flights"]))
    assert found.location.endswith(lake.open().opened.entry.location)
    assert list(lancedb.connect(lake.folder).list_tables(namespace_path=["air"]).tables) == ["flights"]


@pytest.mark.full
def test_a_service_without_targets_publishes_to_the_lakes_own_namespace(lake: Lake) -> None:
    about: dict[str, Any] = {"lake": lake.root, "database": "air", "service": "METASYNC"}
    with TableServicesClient(lake.root) as client:
        made = client.create_table_service(table="flights", trigger_mode="ON_DEMAND", **about)
        assert made.options == TARGETS
        assert client.run_service_in_table("flights", **about).status == "SUCCEEDED"
    assert rows(lake) == 20
