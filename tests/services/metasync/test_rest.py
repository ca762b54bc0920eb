"""METASYNC to a Lance REST namespace: Lance's own server, and one that keeps properties and wants a token."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import lancedb
import pytest
from lance.namespace import RestAdapter, RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    RegisterTableRequest,
)

from deployer.runs.records import runs_of
from deployer.services.kinds.metasync import NotPublished
from deployer.tables.admin.naming import rename_table
from tests.services.metasync.conftest import sync, sync_all
from tests.tables.lakes import Lake, flights

TOKEN = "not-for-the-log"


@pytest.fixture
def lances(lake: Lake) -> Iterator[dict[str, str]]:
    """A target that is Lance's own server, over the lake's folder: it keeps locations and no properties."""
    adapter = RestAdapter("dir", {"root": lake.root}, port=0)
    adapter.start()
    yield {"type": "rest", "uri": f"http://127.0.0.1:{adapter.port}", "root": lake.root}
    adapter.stop()


def client(target: dict[str, str]) -> RestNamespace:
    return RestNamespace(uri=target["uri"])


def test_clients_of_lances_server_open_tables_by_name(lake: Lake, lances: dict[str, str]) -> None:
    assert [sync(lake, lances).action for _ in range(2)] == ["created", "unchanged"]
    database = lancedb.connect_namespace("rest", {"uri": lances["uri"]})
    assert database.open_table("flights", namespace_path=["air"]).count_rows() == 20
    rename_table(lake.store, lake.open().opened.entry, "sky", "departures")
    assert [each.action for each in sync_all(lake, lances, table="departures").targets] == ["created", "removed"]
    assert list(database.list_tables(namespace_path=["air"]).tables) == []
    assert database.open_table("departures", namespace_path=["sky"]).count_rows() == 20


def test_a_table_that_others_moved_is_told_and_moved_back(lake: Lake, lances: dict[str, str]) -> None:
    lake.table(name="others")
    sync(lake, lances)
    there = client(lances)
    before = there.describe_table(DescribeTableRequest(id=["air", "flights"])).location
    there.deregister_table(DeregisterTableRequest(id=["air", "flights"]))
    place = lake.open("others").opened.entry.location
    there.register_table(RegisterTableRequest(id=["air", "flights"], location=place))
    done = sync(lake, lances)
    assert (done.action, done.changed_by_others) == ("updated", ("location",))
    assert there.describe_table(DescribeTableRequest(id=["air", "flights"])).location == before
    there.deregister_table(DeregisterTableRequest(id=["air", "flights"]))
    assert sync(lake, lances).changed_by_others == ("removed",)


def test_a_table_that_is_there_already_is_left(lake: Lake, lances: dict[str, str]) -> None:
    there = client(lances)
    there.create_namespace(CreateNamespaceRequest(id=["air"]))
    there.register_table(RegisterTableRequest(id=["air", "flights"], location="theirs.lance"))
    with pytest.raises(NotPublished, match=r"was not published from this lake: it is at file:.*theirs\.lance"):
        sync(lake, lances)
    location = there.describe_table(DescribeTableRequest(id=["air", "flights"])).location
    assert location is not None and location.endswith("theirs.lance")


class Catalog(ThreadingHTTPServer):
    """The part of a REST namespace that publishing needs, as the specification has it: in memory, with a token."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tables: dict[str, dict[str, Any]] = {}
        self.namespaces: set[str] = set()
        self.asked: list[str] = []

    @property
    def target(self) -> dict[str, str]:
        return {
            "type": "rest",
            "uri": f"http://127.0.0.1:{self.server_port}",
            "token_variable": "DEPLOYER_TOKEN_CATALOG",
        }


class _Handler(BaseHTTPRequestHandler):
    server: Catalog

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        _, _, kind, name, verb = (unquote(part) for part in urlsplit(self.path).path.split("/"))
        self.server.asked.append(f"{kind} {verb}")
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, {"error": "who are you?", "code": 16})
        else:
            self._answer(*getattr(self, f"_{verb}_{kind}")(name, body))

    def _create_namespace(self, name: str, _body: Any) -> tuple[int, dict[str, Any]]:
        self.server.namespaces.add(name)
        return 200, {}

    def _describe_table(self, name: str, _body: Any) -> tuple[int, dict[str, Any]]:
        found = self.server.tables.get(name)
        return (200, found) if found else (404, {"error": f"no table {name}", "code": 4})

    def _register_table(self, name: str, body: Any) -> tuple[int, dict[str, Any]]:
        if name.split("$")[0] not in self.server.namespaces:
            return 404, {"error": "no such namespace", "code": 1}
        if name in self.server.tables and body.get("mode") != "Overwrite":
            return 409, {"error": "it is there", "code": 5}
        self.server.tables[name] = {"location": body["location"], "properties": body["properties"]}
        return 200, self.server.tables[name]

    def _deregister_table(self, name: str, _body: Any) -> tuple[int, dict[str, Any]]:
        found = self.server.tables.pop(name, None)
        return (200, found) if found else (404, {"error": f"no table {name}", "code": 4})

    def _answer(self, status: int, form: dict[str, Any]) -> None:
        body = json.dumps(form).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    server = Catalog()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("DEPLOYER_TOKEN_CATALOG", TOKEN)
    yield server
    server.shutdown()
    server.server_close()


def test_a_server_that_keeps_properties_is_told_each_version_in_one_step(lake: Lake, catalog: Catalog) -> None:
    assert sync(lake, catalog.target).action == "created"
    table = catalog.tables["air$flights"]
    assert table["location"] == f"{(lake.folder / 'lake' / lake.open().opened.entry.location).as_uri()}"
    assert table["properties"]["deployer.version"] == "2"
    lake.ingest(lake.file(flights(5, 20)))
    catalog.tables["air$flights"]["properties"] |= {"deployer.partitions": "{}", "theirs": "kept"}
    catalog.asked.clear()
    done = sync(lake, catalog.target)
    assert (done.action, done.version_before, done.version_after) == ("updated", 2, 3)
    assert done.changed_by_others == ("deployer.partitions",)
    assert catalog.asked == ["table describe", "table register"]  # nobody misses the table meanwhile
    reported = catalog.tables["air$flights"]["properties"]
    assert (reported["deployer.version"], reported["theirs"]) == ("3", "kept")
    assert sync_all(lake, catalog.target).status == "SKIPPED"


def test_the_token_is_sent_and_written_nowhere(lake: Lake, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    sync(lake, catalog.target)
    monkeypatch.setenv("DEPLOYER_TOKEN_CATALOG", "wrong-" + TOKEN)
    with pytest.raises(NotPublished, match=r"the server answered 401: who are you\?; check the token") as no:
        sync(lake, catalog.target)
    assert TOKEN not in str(no.value)
    monkeypatch.delenv("DEPLOYER_TOKEN_CATALOG")
    with pytest.raises(NotPublished, match="the environment variable DEPLOYER_TOKEN_CATALOG holds no token"):
        sync(lake, catalog.target)
    assert not [path for path in lake.folder.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_a_target_that_is_not_there_fails_and_the_others_are_published(lake: Lake, catalog: Catalog) -> None:
    dead = {"type": "rest", "uri": catalog.target["uri"]}
    catalog.shutdown()
    catalog.server_close()
    with pytest.raises(NotPublished, match=r"rest http://127\.0\.0\.1:\d+ air\.flights: the server did not answer"):
        sync_all(lake, dead, {"type": "directory"})
    assert lancedb.connect(lake.root).open_table("flights", namespace_path=["air"]).count_rows() == 20
    [run] = runs_of(lake.open().opened.state)
    assert run.status == "FAILED" and "the server did not answer" in run.reason
    actions = {name.split()[0]: each["action"] for name, each in run.figures.after.items()}  # type: ignore[index,call-overload]
    assert actions == {"rest": "failed", "directory": "created"}
