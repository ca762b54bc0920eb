"""Requests that no page of the server makes are refused, and nothing is changed unless runs are allowed."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from deployer.errors import InvalidInput
from deployer.state import open_reader
from deployer.state.model.services import Run
from deployer.ui import protection
from deployer.ui.server import bound
from tests.cli.conftest import Deployer, deployer
from tests.ui.conftest import FORM, Browser, served

__all__ = ["deployer"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}"]
)
def test_another_host_header_is_refused(browser: Browser, host: str) -> None:
    answer = browser.ask("/", host=host.format(port=browser.port))
    assert (answer.status, "air." in answer.text) == (421, False)


def test_a_request_needs_a_host_header(browser: Browser) -> None:
    assert browser.ask("/", host=None).status == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"])
def test_names_of_loopback_are_served(browser: Browser, host: str) -> None:
    assert browser.ask("/", host=f"{host}:{browser.port}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_sites_are_refused(browser: Browser, headers: dict[str, str]) -> None:
    answer = browser.ask("/", headers=headers)
    assert (answer.status, "air." in answer.text) == (403, False)
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/nothing", "/static/page.css", "/health/part"])
def test_every_answer_forbids_inline_script_and_frames(browser: Browser, path: str) -> None:
    headers = browser.ask(path, headers={"Sec-Fetch-Site": "same-origin"}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert not [name for name in headers if name.startswith("access-control")]


def test_other_users_of_the_machine_are_not_served(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "connection_user", lambda *_: os.geteuid() + 1)
    answer = browser.ask("/")
    assert (answer.status, "air." in answer.text) == (403, False)


def test_refusals_have_the_headers_too(browser: Browser) -> None:
    assert "content-security-policy" in browser.ask("/", host="evil.example").headers


@pytest.mark.parametrize("kind", ["plan", "drift", "cost"])
@pytest.mark.parametrize("body", ["", "token=", "token=wrong", "token=%C3%A4", "other=1"])
def test_a_form_needs_its_token(browser: Browser, kind: str, body: str) -> None:
    answer = browser.ask(f"/{kind}", "POST", body, headers=FORM)
    assert answer.status == 403
    assert "no valid token" in answer.text
    assert "has not been made yet" in browser.page(f"/{kind}").text


def test_a_token_in_another_type_of_body_is_refused(browser: Browser) -> None:
    [token] = browser.page("/cost").tokens
    answer = browser.ask("/cost", "POST", f"token={token}", headers={"Content-Type": "text/plain"})
    assert answer.status == 403


def test_a_long_form_is_refused(browser: Browser) -> None:
    assert browser.ask("/cost", "POST", "token=" + "x" * 20_000, headers=FORM).status == 413


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_pages_take_no_other_requests(browser: Browser, method: str) -> None:
    assert browser.ask("/table/air.flights", method).status == 405


def runs_of(project: Path) -> list[Run]:
    with closing(open_reader(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        return list(store.table(entry.table_id).runs.values())


def test_runs_are_not_there_unless_allowed(browser: Browser, project: Path) -> None:
    before = runs_of(project)
    page = browser.page("/table/air.flights")
    assert not page.actions
    [token] = browser.page("/cost").tokens
    assert browser.post("/table/air.flights/run", token=token, service="COMPACT", action="queue").status == 404
    assert runs_of(project) == before


def test_runs_are_queued_and_cancelled_where_allowed(project: Path) -> None:
    with served(project, allow_runs=True) as browser:
        page = browser.page("/table/air.flights")
        assert page.actions == ["/table/air.flights/run"] * 2
        token = page.tokens[0]
        assert browser.post("/table/air.flights/run", service="COMPACT", action="queue").status == 403
        assert not [run for run in runs_of(project) if run.is_open]
        assert browser.post("/table/air.flights/run", token=token, service="COMPACT", action="queue").status == 303
        assert [(run.service, run.status) for run in runs_of(project) if run.is_open] == [("COMPACT", "QUEUED")]
        assert "air.flights COMPACT queued" in browser.page("/health").text
        assert browser.post("/table/air.flights/run", token=token, service="COMPACT", action="queue").status == 409
        assert browser.post("/table/air.flights/run", token=token, service="COMPACT", action="cancel").status == 303
        assert not [run for run in runs_of(project) if run.is_open]
        for service, action in (("DROP", "queue"), ("COMPACT", "erase"), ("", "")):
            answer = browser.post("/table/air.flights/run", token=token, service=service, action=action)
            assert answer.status == 400
        assert browser.post("/table/air.flights/run", token=token, service="CLEAN", action="queue").status == 403


def test_a_table_of_another_stack_is_not_changed(project: Path) -> None:
    from deployer.errors import Refused
    from deployer.ui.runs import change_run

    with pytest.raises(Refused, match="manages the table"):
        change_run(str(project / "lakes" / "demo"), "other/dev", "air.flights", "COMPACT", "queue")


def test_a_port_in_use_is_named() -> None:
    with bound(0) as (_, port), pytest.raises(InvalidInput, match=f"port {port} cannot be used"), bound(port):
        pass


def test_the_command_names_a_port_in_use(project: Path, deployer: Deployer) -> None:
    with bound(0) as (_, port):
        ended = deployer("ui", "--port", str(port))
    assert ended.code == 1
    assert f"port {port} cannot be used" in ended.err


def test_browsers_send_forms_with_their_origin(browser: Browser) -> None:
    """With the policy `no-referrer` they send the origin `null`, which no form of this server has."""
    assert browser.ask("/").headers["referrer-policy"] == "same-origin"
