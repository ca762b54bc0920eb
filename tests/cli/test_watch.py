"""`--watch` of lists: in a terminal they are shown again until Ctrl-C, and anywhere else they are refused."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer

LISTS = (("service", "list"), ("job", "list"))


def read_until(terminal: int, text: str) -> str:
    """Returns what the terminal shows, up to `text`; the test's own timeout ends a wait forever."""
    shown = ""
    while text not in shown:
        shown += os.read(terminal, 65536).decode("utf-8", "replace")
    return shown


def test_a_service_that_is_created_meanwhile_is_shown(applied: Path, deployer: Deployer) -> None:
    own, other = pty.openpty()
    command = [sys.executable, "-m", "deployer", "service", "list", "--watch"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        command, stdin=other, stdout=other, stderr=other, env=environment, start_new_session=True
    )
    os.close(other)
    try:
        read_until(own, "there are no services")
        assert deployer("service", "create", "planes", "CLEAN").code == 0
        assert "planes" in read_until(own, "CLEAN")
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait()
        os.close(own)


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_it_needs_a_terminal_and_no_json(command: tuple[str, str], deployer: Deployer) -> None:
    alone, with_json = deployer(*command, "--watch"), deployer(*command, "--watch", "--json")
    assert (alone.code, with_json.code) == (1, 1)
    assert "--watch needs a terminal; leave --watch out" in alone.err
    assert with_json.json["error"]["what"] == "--watch and --json do not go together"
