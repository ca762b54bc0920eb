"""F4: what METASYNC sends, to whom, and with which credential. Specs and state are the attacker's."""

from __future__ import annotations

import ipaddress
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import urllib3

from deployer.errors import InvalidInput
from deployer.live.model import TableStatistics
from deployer.plan import Risk, assess
from deployer.plan.changes import ChangeServiceOptions, CreateService, CreateTable
from deployer.plan.targeting.outside_targets import begins_to_send
from deployer.services.kinds.metasync import NotPublished
from deployer.services.kinds.metasync.registry import PREFIX
from deployer.services.kinds.metasync.targets.checked_http import CheckedHttp, require_peer
from deployer.services.kinds.metasync.targets.rest import RestTarget
from deployer.services.kinds.metasync.targets.target import TargetFailed
from deployer.services.kinds.metasync.targets.token import read_token
from deployer.specs.model import ServiceSpec, TableSpec
from deployer.specs.serialized.service_options import options_of_values, service_from_texts
from deployer.specs.values.target_server import HOSTS_VARIABLE, read_hosts, refused_address, require_allowed, server_of
from deployer.state.log.service_updates import PutService
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.model.services import Service
from deployer.tables.admin.naming import rename_table
from tests.services.metasync.conftest import sync, sync_all
from tests.tables.lakes import Lake, flights

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
TOKEN = "DEPLOYER_TOKEN_CATALOG"


@pytest.fixture
def lake(tmp_path: Any) -> Lake:
    lake = Lake(tmp_path)
    lake.table()
    lake.ingest(lake.file(flights(20)))
    return lake


class Listener(ThreadingHTTPServer):
    """A server of the attacker's: it remembers what it was sent, and gives `answer`."""

    daemon_threads = True

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.heard: list[str] = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.heard.append(f"{self.path} {self.headers['Authorization']}")
        self.server.answer(self)

    def log_message(self, *_: Any) -> None:
        pass


def answering(status: int, body: bytes = b"{}", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@pytest.fixture
def listeners() -> Iterator[Callable[..., Listener]]:
    made: list[Listener] = []

    def listen(answer: Callable[[BaseHTTPRequestHandler], None]) -> Listener:
        made.append(Listener(answer))
        return made[-1]

    yield listen
    for each in made:
        each.shutdown()
        each.server_close()


@pytest.fixture
def catalog(listeners: Callable[..., Listener]) -> Listener:
    return listeners(answering(404, b'{"error": "none", "code": 4}'))


# --- which variables


@pytest.mark.parametrize(
    "variable",
    [
        "AWS_SECRET_ACCESS_KEY",
        "PULUMI_CONFIG_PASSPHRASE",
        "GITHUB_TOKEN",
        "CATALOG_TOKEN",
        "PATH",
        "DEPLOYER_TOKEN_",
        "deployer_token_x",
        "XDEPLOYER_TOKEN_A",
        "DEPLOYER_TOKEN_A\n",
        "DEPLOYER_TOKEN_A B",
        "DEPLOYER_TOKEN_A=AWS_SECRET_ACCESS_KEY",
        "",
    ],
)
def test_no_variable_but_those_for_tokens_is_read(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: a target names a variable of its choice."""
    if variable.isidentifier():
        monkeypatch.setenv(variable, SECRET)
    target = {"type": "rest", "uri": "http://127.0.0.1:1", "token_variable": variable}
    with pytest.raises(InvalidInput):
        options_of_values("METASYNC", {"targets": [target]})
    with pytest.raises(InvalidInput):
        service_from_texts(
            "METASYNC", {"targets": json.dumps([target])}, trigger_mode="ON_DEMAND", columns=(), keys=(), clusters=()
        )
    with pytest.raises(InvalidInput, match="is not a variable for tokens"):
        read_token(variable)


def test_a_service_put_into_the_state_sends_no_variable(
    lake: Lake, catalog: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: a `put-service` entry in the state made the next load send `PULUMI_CONFIG_PASSPHRASE`."""
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", SECRET)
    target = {"type": "rest", "uri": catalog.uri, "token_variable": "PULUMI_CONFIG_PASSPHRASE"}
    for service in (
        Service("METASYNC", "AUTOMATIC", {"commits": 1}, {"targets": [target]}),
        Service("METASYNC", "AUTOMATIC", {"commits": 1}, {"targets": json.dumps([target])}, unsafe_raw=True),
    ):
        lake.store.commit(lake.open().opened.entry.table_id, [PutService(service)])
        lake.ingest(lake.file(flights(5, 20)))
    with pytest.raises((NotPublished, InvalidInput)) as refused:
        sync_all(lake, target)
    assert catalog.heard == [] and SECRET not in str(refused.value)


def test_a_record_in_the_state_sends_no_variable(
    lake: Lake, catalog: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: records of what was published where are state too, and name targets."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    form: Any = {
        "target": {"type": "rest", "uri": catalog.uri, "token_variable": "AWS_SECRET_ACCESS_KEY"},
        "catalog": ["rest", catalog.uri],
        "place": ["air", "flights"],
        "location": "file:///x",
    }
    lake.store.commit(INSTANCE_LOG, [SetInstanceProperties({PREFIX + "a" * 32: [form]})])
    done = sync_all(lake, {"type": "directory"})
    assert [(each.action, SECRET in each.failure) for each in done.gone] == [("failed", False)]
    assert catalog.heard == []
    lake.store.commit(INSTANCE_LOG, [SetInstanceProperties({PREFIX + "a" * 32: [{"target": 7}]})])
    (unreadable,) = sync_all(lake, {"type": "directory"}).gone
    assert unreadable.action == "failed" and "log has an invalid record of a published table" in unreadable.failure


# --- where to


@pytest.mark.parametrize(
    "uri",
    [
        "http://catalog.example.com",
        "http://127.0.0.1@evil.example.com",
        "https://user:pass@catalog.example.com",
        "https://catalog.example.com\\@evil.example.com",
        "http://127.0.0.1\\.evil.example.com",
        "http://2130706433",
        "http://0x7f.1",
        "http://0x7f000001",
        "http://127.1",
        "http://0177.0.0.1",
        "http://127.0.0.1.",
        "http://localhost.",
        "http://localhost.evil.example.com",
        "http://127.0.0.1.evil.example.com",
        "http://[::ffff:10.0.0.1]",
        "http://[2002:7f00:1::]",
        "http://0.0.0.0",
        "http://[::]",
        "https://169.254.169.254/latest/meta-data",
        "https://[fe80::1]",
        "https://[fe80::1%25eth0]",
        "https://[fd00:ec2::254]",
        "https://[::ffff:169.254.169.254]",
        "https://[64:ff9b::a9fe:a9fe]",
        "https://[::169.254.169.254]",
        "https://[64:ff9b:1::a9fe:a9fe]",
        "https://[64:ff9b:1:a9fe:a9:fe00::]",
        "https://[64:ff9b:1:a9:fe:a9fe::]",
        "https://[64:ff9b:1::a9:fea9:fe00:0]",
        "https://[2001:0:a9fe:a9fe::1]",
        "https://[2001:0:4136:e378:8000:63bf:5601:5601]",
        "https://[2002:a9fe:a9fe::1]",
        "https://metadata.google.internal",
        "https://metadata.google.internal.",
        "https://METADATA.Google.Internal/computeMetadata/v1",
        "https://metadata",
        "https://metadata.",
        "https://Metadata:443",
        "https://instance-data",
        "https://instance-data.ec2.internal",
        "https://INSTANCE-DATA.EC2.INTERNAL.",
        "https://100.100.100.200",
        "https://168.63.129.16",
        "https://224.0.0.1",
        "https://katalóg.example.com",
        "https://ca%74alog.example.com",
        "https://catalog..example.com",
        "https://-catalog.example.com",
        "https://catalog.example.com:0",
        "https://catalog.example.com:65536",
        "https://catalog.example.com:http",
        "https://catalog.example.com?x",
        "https://catalog.example.com#x",
        "https://catalog.example.com/a?b",
        "https://catalog.example.com/\r\nX: y",
        "https://catalog.example.com/a b",
        " https://catalog.example.com",
        "https:/catalog.example.com",
        "https:catalog.example.com",
        "//catalog.example.com",
        "ftp://catalog.example.com",
        "file:///etc/passwd",
        "https://",
        "https://[1.2.3.4]",
        "https://" + "a." * 200 + "com",
    ],
)
def test_no_server_is_named_in_a_way_that_parsers_read_differently(uri: str) -> None:
    """F4: `uri` may be plain HTTP to anywhere, and any form of an address."""
    with pytest.raises(InvalidInput):
        server_of(uri)
    with pytest.raises(InvalidInput):
        options_of_values("METASYNC", {"targets": [{"type": "rest", "uri": uri}]})


@pytest.mark.parametrize(
    ("uri", "place", "loopback"),
    [
        ("https://Catalog.Example.com/lance/v1", "catalog.example.com", False),
        ("https://10.0.0.5:8443", "10.0.0.5:8443", False),
        ("https://metadata.example.com", "metadata.example.com", False),
        ("https://[64:ff9b:1::c000:201]", "[64:ff9b:1::c000:201]", False),
        ("https://[2001:db8::a9fe:a9fe]", "[2001:db8::a9fe:a9fe]", False),
        ("https://xn--katalg-5wa.example.com", "xn--katalg-5wa.example.com", False),
        ("http://localhost:2333", "localhost:2333", True),
        ("http://127.8.9.1", "127.8.9.1", True),
        ("http://[::1]:80", "[::1]:80", True),
        ("http://[::ffff:127.0.0.1]", "[::ffff:7f00:1]", True),
    ],
)
def test_plain_addresses_of_servers_are_taken(uri: str, place: str, loopback: bool) -> None:
    """F4: what stays possible."""
    server = server_of(uri)
    assert (server.place, server.is_loopback) == (place, loopback)


@pytest.mark.parametrize(
    ("uri", "variable", "hosts", "allowed"),
    [
        ("https://catalog.example.com", TOKEN, "", False),
        ("https://catalog.example.com", None, "", False),
        ("https://catalog.example.com", TOKEN, "catalog.example.com", True),
        ("https://catalog.example.com", TOKEN, " other.example.com , Catalog.Example.com ", True),
        ("https://catalog.example.com", TOKEN, "*.example.com", True),
        ("https://a.b.example.com", TOKEN, "*.example.com", True),
        ("https://example.com", TOKEN, "*.example.com", False),
        ("https://evilexample.com", TOKEN, "*.example.com", False),
        ("https://catalog.example.com.evil.com", TOKEN, "catalog.example.com", False),
        ("https://catalog.example.com:8443", TOKEN, "catalog.example.com:443", False),
        ("https://catalog.example.com", TOKEN, "catalog.example.com:443", True),
        ("https://catalog.example.com:8443", TOKEN, "catalog.example.com", True),
        ("https://catalog.example.com", TOKEN, f"catalog.example.com={TOKEN}", True),
        ("https://catalog.example.com", None, f"catalog.example.com={TOKEN}", True),
        ("https://catalog.example.com", TOKEN, "catalog.example.com=DEPLOYER_TOKEN_OTHER", False),
        ("http://localhost:2333", TOKEN, "", True),
        ("http://127.0.0.1:2333", TOKEN, "catalog.example.com", True),
    ],
)
def test_the_environment_decides_where_to(uri: str, variable: str | None, hosts: str, allowed: bool) -> None:
    """F4: whoever holds the credential says where it may go."""
    if allowed:
        require_allowed(server_of(uri), variable, hosts)
        return
    with pytest.raises(InvalidInput, match=f"add .* to {HOSTS_VARIABLE}"):
        require_allowed(server_of(uri), variable, hosts)


@pytest.mark.parametrize(
    "entry", ["*", "*.", "https://catalog.example.com", "catalog.example.com/x", "*.1.2.3.4", "a b", "x=AWS_SECRET"]
)
def test_a_list_of_hosts_names_hosts(entry: str) -> None:
    """F4: an entry that would stand for everything, or for nothing, is an error that names the list."""
    with pytest.raises(InvalidInput) as wrong:
        read_hosts(["catalog.example.com", entry], HOSTS_VARIABLE)
    assert wrong.value.where == HOSTS_VARIABLE


def test_a_target_that_is_not_allowed_is_not_connected_to(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: the run fails for that target, and names the variable to set."""
    monkeypatch.setenv(TOKEN, SECRET)
    monkeypatch.delenv(HOSTS_VARIABLE, raising=False)
    target = {"type": "rest", "uri": "https://catalog.example.invalid", "token_variable": TOKEN}
    with pytest.raises(NotPublished, match=HOSTS_VARIABLE) as refused:
        sync(lake, target)
    assert SECRET not in str(refused.value)


# --- what happens on the way


@pytest.mark.parametrize(
    ("host", "peer", "refused"),
    [
        ("https://catalog.example.com", "169.254.169.254", True),
        ("https://catalog.example.com", "fd00:ec2::254", True),
        ("https://catalog.example.com", "fe80::1%eth0", True),
        ("https://catalog.example.com", "::ffff:169.254.169.254", True),
        ("https://catalog.example.com", "::a9fe:a9fe", True),
        ("https://catalog.example.com", "64:ff9b:1::a9fe:a9fe", True),
        ("https://catalog.example.com", "2002:a9fe:a9fe::1", True),
        ("https://catalog.example.com", "64:ff9b::c000:201", False),
        ("http://localhost", "64:ff9b::7f00:1", True),
        ("https://catalog.example.com", "0.0.0.0", True),  # noqa: S104
        ("http://localhost", "10.1.2.3", True),
        ("http://localhost", "127.0.0.1", False),
        ("http://localhost", "::1", False),
        ("https://catalog.example.com", "10.1.2.3", False),
    ],
)
def test_the_address_that_a_name_leads_to_is_checked(host: str, peer: str, refused: bool) -> None:
    """F4: a name may lead to a metadata service, also after it was looked at."""
    if not refused:
        require_peer(server_of(host), peer)
        return
    with pytest.raises(InvalidInput, match="nothing was sent"):
        require_peer(server_of(host), peer)


def test_the_peer_is_checked_before_anything_is_sent(catalog: Listener) -> None:
    """F4: the same, on a connection: the name's address is another machine's as far as this server is told."""
    server = server_of("http://localhost")
    object.__setattr__(server, "host", "10.0.0.5")
    assert refused_address(ipaddress.ip_address("127.0.0.1")) == ""
    http = CheckedHttp(server)
    assert http.request("POST", catalog.uri, body={}).status == 404
    object.__setattr__(server, "host", "localhost")
    import deployer.services.kinds.metasync.targets.checked_http as module

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "refused_address", lambda address: "a metadata service")
        with pytest.raises(InvalidInput, match=r"leads to 127\.0\.0\.1, which is a metadata service"):
            CheckedHttp(server).request("POST", catalog.uri, body={}, headers={"Authorization": SECRET})
    assert len(catalog.heard) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(
    status: int, lake: Lake, listeners: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: an allowed server sends the client on to another one."""
    monkeypatch.setenv(TOKEN, SECRET)
    other = listeners(answering(200))
    first = listeners(answering(status, Location=f"{other.uri}/v1/table/x/describe"))
    with pytest.raises(NotPublished, match=f"the server answered {status} and names another address"):
        sync(lake, {"type": "rest", "uri": first.uri, "token_variable": TOKEN})
    assert first.heard and other.heard == []


def test_proxies_of_the_environment_are_not_used(
    catalog: Listener, listeners: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: the token goes to the server that is named, and nowhere on the way."""
    proxy = listeners(answering(200))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, proxy.uri)
    CheckedHttp(server_of(catalog.uri)).request("POST", catalog.uri, body={})
    assert catalog.heard and proxy.heard == []


def test_an_answer_is_bounded(listeners: Callable[..., Listener], monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: a server answers without end, or so slowly that it never ends."""
    import deployer.services.kinds.metasync.targets.checked_http as module

    large = listeners(answering(200, b"x" * 200_000))
    monkeypatch.setattr(module, "MOST_BYTES", 100_000)
    with pytest.raises(TargetFailed, match="has more than 100,000 bytes"):
        CheckedHttp(server_of(large.uri)).request("POST", large.uri, body={})
    monkeypatch.setattr(module, "ANSWER_WITHIN", 0.0001)
    monkeypatch.setattr(module, "MOST_BYTES", 10**9)

    def drip(handler: BaseHTTPRequestHandler) -> None:
        answering(200, b"")(handler)

    slow = listeners(drip)
    monkeypatch.setattr(urllib3, "Timeout", lambda **_: None)
    assert CheckedHttp(server_of(slow.uri)).request("POST", slow.uri, body={}).status == 200
    with pytest.raises(TargetFailed, match="is not complete after"):
        CheckedHttp(server_of(large.uri)).request("POST", large.uri, body={})


def test_a_servers_words_are_bounded_and_harmless(lake: Lake, listeners: Callable[..., Listener]) -> None:
    """F4: an error of the server reaches terminals and the record of the run."""
    said = json.dumps({"error": "\x1b]0;pwned\x07\n::error::x " + "y" * 5000, "code": 1}).encode()
    server = listeners(answering(500, said))
    with pytest.raises(NotPublished) as failed:
        sync(lake, {"type": "rest", "uri": server.uri})
    text = str(failed.value)
    assert "\x1b" not in text and "\n" not in text and len(text) < 1000


# --- whose entries


def test_a_record_alone_removes_no_entry_of_another_lake(lake: Lake, tmp_path: Any) -> None:
    """F4: whoever writes the state records that this lake published what another one did."""
    theirs = Lake(tmp_path / "theirs") if (tmp_path / "theirs").mkdir() is None else None
    assert theirs is not None
    theirs.table()
    theirs.ingest(theirs.file(flights(5)))
    assert sync(theirs, {"type": "directory"}).action == "created"
    entry = theirs.open().opened.entry
    location = f"file://{theirs.root}/{entry.location}"
    form: Any = {
        "target": {"type": "directory", "root": theirs.root},
        "catalog": ["directory", f"file://{theirs.root}"],
        "place": ["air", "flights"],
        "location": location,
    }
    lake.store.commit(INSTANCE_LOG, [SetInstanceProperties({PREFIX + entry.table_id: [form]})])
    done = sync_all(lake, {"type": "directory"})
    assert [each.action for each in done.gone] == ["left"]
    assert sync(theirs, {"type": "directory"}).action == "unchanged"


def test_a_target_declares_what_it_sends_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: the class of the target checks again, whatever its options went through."""
    monkeypatch.delenv(HOSTS_VARIABLE, raising=False)
    for uri in ("http://catalog.example.com", "https://169.254.169.254", "https://catalog.example.com"):
        with pytest.raises(InvalidInput):
            RestTarget({"uri": uri})


def test_raw_options_are_checked_when_they_are_used() -> None:
    """F4: `unsafe_raw` passes the shape of the specs."""
    spec = ServiceSpec(
        "METASYNC", None, None, {"targets": '[{"type": "rest", "uri": "http://evil.example.com"}]'}, True
    )
    with pytest.raises(InvalidInput):
        from deployer.specs.serialized.service_options import options_from_text

        options_from_text("METASYNC", {name: str(value) for name, value in spec.options.items()})


def test_a_directory_elsewhere_is_not_written(lake: Lake, tmp_path: Any) -> None:
    """F4: a directory namespace has only tables below its folder, so its manifest is made above the lake alone."""
    for root in (str(tmp_path / "elsewhere"), f"{lake.root}/../elsewhere", f"{lake.root}-2"):
        with pytest.raises((NotPublished, InvalidInput)):
            sync(lake, {"type": "directory", "root": root})
    assert not list(tmp_path.rglob("__manifest"))


CATALOG = {"type": "rest", "uri": "https://catalog.example.com/ours", "token_variable": TOKEN}


@pytest.mark.parametrize(
    ("before", "after", "sends_to"),
    [
        ([], [CATALOG], ["catalog.example.com"]),
        ([CATALOG], [CATALOG], []),
        ([CATALOG], [], []),
        ([CATALOG], [{**CATALOG, "uri": "https://catalog.example.com/theirs"}], ["catalog.example.com"]),
        ([CATALOG], [{**CATALOG, "token_variable": "DEPLOYER_TOKEN_OTHER"}], ["catalog.example.com"]),
        ([CATALOG], [CATALOG, {"type": "glue", "catalog_id": "123456789012"}], ["glue:123456789012"]),
        ([{"type": "glue"}], [{"type": "glue", "database": "theirs"}], ["glue:theirs"]),
        ([], [{"type": "glue"}, {"type": "directory"}], []),
        ([{"type": "directory"}], [{"type": "directory", "root": "/srv"}], ["directory:/srv"]),
        ([], [{"type": "plugin", "name": "json"}], ["plugin:json"]),
    ],
)
def test_a_change_that_begins_to_send_is_told_as_external(
    before: list[Any], after: list[Any], sends_to: list[str]
) -> None:
    """F4: the plan said "safe" of it."""
    change = ChangeServiceOptions("table/air.flights", "METASYNC", {"targets": before}, {"targets": after})
    created = CreateService("table/air.flights", ServiceSpec("METASYNC", None, None, {"targets": after}))
    assert [each.name for each in begins_to_send(change)] == sends_to
    risk = Risk.EXTERNAL if sends_to else Risk.SAFE
    assert assess(change, TableStatistics()).risk is risk
    new = TableSpec("air", "flights", (), services=(created.service,))
    of_all = {assess(each, TableStatistics()).risk for each in (created, CreateTable("table/air.flights", new))}
    outside = [each for each in after if each not in ({"type": "glue"}, {"type": "directory"})]
    assert of_all == {Risk.EXTERNAL if outside else Risk.SAFE}


def test_unchecked_options_count_as_external_whenever_they_change() -> None:
    """F4: `unsafe_raw` hides which targets there are."""
    old, new = ({"targets": f'[{{"type": "rest", "uri": "https://{name}.example.com"}}]'} for name in ("a", "b"))
    change = ChangeServiceOptions("table/air.flights", "METASYNC", old, new, before_raw=True, after_raw=True)
    assert assess(change, TableStatistics()).risk is Risk.EXTERNAL
    assert [each.kind for each in begins_to_send(change)] == ["unchecked"]


def test_an_entry_is_removed_by_the_token_of_today(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: records name variables that are not read any more; a target that is declared with another one is used."""
    from tests.services.metasync.test_rest import TOKEN as GIVEN
    from tests.services.metasync.test_rest import Catalog

    server = Catalog()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        monkeypatch.setenv("DEPLOYER_TOKEN_CATALOG", GIVEN)
        assert sync(lake, server.target).action == "created"
        table_id = lake.open().opened.entry.table_id
        records: Any = lake.store.instance().properties[PREFIX + table_id]
        old: Any = {**records[0], "target": {**records[0]["target"], "token_variable": "CATALOG_TOKEN"}}
        lake.store.commit(INSTANCE_LOG, [SetInstanceProperties({PREFIX + table_id: [old]})])
        rename_table(lake.store, lake.open().opened.entry, "sky", "departures")
        done = sync_all(lake, server.target, table="departures").targets
        assert [each.action for each in done] == ["created", "removed"]
        assert list(server.tables) == ["sky$departures"]
    finally:
        server.shutdown()
        server.server_close()
