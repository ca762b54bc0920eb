"""Services that somebody wrote into the state: checked as those of specs before anything is sent or run."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deployer.live.services import fault_of, service_spec, trigger_of
from deployer.state.model.services import Service

from . import forge
from .conftest import Deployer

SECRET = "wJalr-SECRET"


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback, and the headers that it was sent."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(str(self.headers))
            self.send_response(500)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def put(kind: str, options: Any, trigger: Any = None, **more: Any) -> dict[str, Any]:
    service = {"kind": kind, "trigger_mode": "AUTOMATIC", "trigger": trigger or {"commits": 1}, "options": options}
    return {"type": "put-service", "service": {**service, **more}}


BROKEN: dict[str, dict[str, Any]] = {
    "a target without a type": put("METASYNC", {"targets": [{"uri": "http://HOST"}]}),
    "a target of another type": put("METASYNC", {"targets": [{"type": "ftp", "uri": "http://HOST"}]}),
    "a variable that is none": put("METASYNC", {"targets": [{"type": "rest", "uri": "URI", "token_variable": "A=B"}]}),
    "credentials in an address": put("METASYNC", {"targets": [{"type": "rest", "uri": "http://u:p@HOST"}]}),
    "a query in an address": put("METASYNC", {"targets": [{"type": "rest", "uri": "URI?x=1"}]}),
    "a field that is unknown": put("METASYNC", {"targets": [{"type": "rest", "uri": "URI", "headers": {"a": "b"}}]}),
    "no list of targets": put("METASYNC", {"targets": {"type": "rest", "uri": "URI"}}),
    "an option that is unknown": put("METASYNC", {"targets": [{"type": "rest", "uri": "URI"}], "x": 1}),
    "a path as a time": put("CLEAN", {"older_than": "../x"}),
    "a time that is none": put("CLEAN", {"older_than": "0"}),
    "versions that are none": put("CLEAN", {"keep_versions": -1}),
    "a size that is none": put("COMPACT", {"target_file_bytes": "many"}),
    "a trigger that is none": put("CLEAN", {}, {"commits": "all"}),
    "a schedule that is none": put("CLEAN", {}, {"schedule": "now"}),
    "a time zone that is a path": put("CLEAN", {}, {"schedule": "0 3 * * *", "timezone": "../../etc/passwd"}),
    "a trigger of another name": put("CLEAN", {}, {"exec": "rm"}),
    "a cluster that is a path": put("CLEAN", {}, cluster="../x"),
    "one that nobody attaches": put("RESTORE", {}),
    "options that are deep": put("METASYNC", {"targets": [{"type": "rest", "uri": "URI", "x": [[[[[[[[1]]]]]]]]}]}),
}


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("update", BROKEN.values(), ids=BROKEN.keys())
def test_a_service_that_no_spec_could_declare_is_shown_and_not_run(
    update: dict[str, Any], root: Path, project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4: `put-service` in the log with options that specs refuse."""
    import json

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    planes = forge.table(root, "planes")
    kind = update["service"]["kind"]
    with listening() as (uri, seen):
        update = json.loads(json.dumps(update).replace("URI", uri).replace("HOST", uri.removeprefix("http://")))
        forge.append(root, planes.table_id, update)
        listed = deployer("service", "list", "planes", "--json").json["services"]
        assert [(each["service"], each["status"]) for each in listed] == [(kind, "BROKEN")] and listed[0]["broken"]
        assert "BROKEN" in deployer("service", "list", "planes").out
        assert kind == "RESTORE" or "it does not run: " in deployer("service", "describe", "planes", kind).out
        (project / "more.csv").write_text("id\n4\n")
        before = forge.tree(root)
        ran = deployer("service", "run", "planes", kind)
        assert kind == "RESTORE" or (ran.code == 3 and "is not valid, so it is not run" in ran.err)
        assert forge.tree(root) == before
        assert deployer("ingest", "planes", "more.csv").code == 0
        for command in (
            ("preview",),
            ("preview", "--format", "html"),
            ("describe", "planes"),
            ("report", "--html", "r"),
        ):
            assert deployer(*command).code == 0, command
        assert deployer("up", "--yes").code == 0
        assert deployer("service", "list", "planes", "--json").json["services"] == [] or kind == "RESTORE"
    assert seen == []


def test_an_entry_of_a_gone_table_is_no_way_to_a_target(root: Path, project: Path, deployer: Deployer) -> None:
    """F4: the instance's log remembers where deleted tables were published: also there a target is checked."""
    (project / "specs" / "planes.yaml").open("a").write(
        "services:\n  metasync:\n    options: {targets: [{type: directory}]}\n"
    )
    assert deployer("up", "--yes").code == 0
    with listening() as (uri, seen):
        target = {"type": "rest", "uri": uri, "token_variable": "A=B"}
        record = {"target": target, "catalog": ["rest", uri], "place": ["air", "x"], "location": "file:///x"}
        forge.to_instance(
            root,
            {"type": "set-instance-properties", "changes": {"published/0a1b2c3d": [record], "published/../x": 7}},
        )
        ran = deployer("service", "run", "planes", "METASYNC")
        assert ran.code == 0 and "Traceback" not in ran.err, ran
    assert seen == []


def test_what_is_wrong_with_a_service_is_said() -> None:
    """F4: the one check, on values."""
    assert fault_of(Service("CLEAN")) == "" and fault_of(Service("CLEAN", "AUTOMATIC", {"commits": 3})) == ""
    odd = Service("CLEAN", "AUTOMATIC", {"schedule": "x"}, {"older_than": "x"})
    assert fault_of(odd) and trigger_of(odd) is None and service_spec(odd).unsafe_raw
