"""Clients that are slow lose their connections, so that they do not keep others from being answered."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

from deployer.ui import server
from tests.ui.conftest import Browser, served

SENT = {
    "nothing": b"",
    "half a request": b"GET / HTTP/1.1\r\nHost: ",
    "half a form": b"POST /cost HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 100\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken=",
}


@pytest.mark.parametrize("case", SENT)
def test_a_client_that_sends_no_whole_request_loses_its_connection(
    case: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.3)
    with served(project) as browser, socket.create_connection(("127.0.0.1", browser.port), timeout=60) as slow:
        slow.sendall(SENT[case].replace(b"%d", str(browser.port).encode()))
        assert is_closed(slow)
        assert browser.ask("/").status == 200


def test_a_client_that_trickles_loses_its_connection(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE", 0.3)
    with served(project) as browser, socket.create_connection(("127.0.0.1", browser.port), timeout=60) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                slow.sendall(b"A: b\r\n")
            except ConnectionError:
                return
            time.sleep(0.02)
    raise AssertionError("it is still served")


def test_connections_of_other_users_take_none_of_the_places(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(server, "connection_user", lambda *_: os.geteuid() + 1)
        for _ in range(80):
            with socket.create_connection(("127.0.0.1", browser.port), timeout=60) as other:
                assert is_closed(other)
    assert browser.ask("/").status == 200


def is_closed(other: socket.socket) -> bool:
    try:
        return other.recv(1) == b""
    except ConnectionError:
        return True
