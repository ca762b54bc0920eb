"""The plan, drift and cost are made when they are asked for, and the command serves until it is interrupted."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.ui.conftest import Browser


def result(browser: Browser, kind: str) -> str:
    """Asks for a result and returns the text of its page once it is there."""
    [token] = browser.page(f"/{kind}").tokens
    answer = browser.post(f"/{kind}", token=token)
    assert (answer.status, answer.headers["location"]) == (303, f"/{kind}")
    for _ in range(3000):
        if "is being made" not in browser.page(f"/{kind}/part").text:
            break
        time.sleep(0.1)
    text = browser.page(f"/{kind}").text
    assert "As of" in text
    return text


def test_the_cost_is_estimated(browser: Browser) -> None:
    assert "A lake on a disk costs nothing on AWS" in result(browser, "cost")


def test_drift_is_found(browser: Browser) -> None:
    assert "0 differences" in result(browser, "drift")


def test_the_pending_plan_is_shown(browser: Browser, project: Path) -> None:
    spec = project / "specs" / "planes.yaml"
    spec.write_text(spec.read_text().replace("row_keys", "  - {name: seats, type: int32}\nrow_keys"), encoding="utf-8")
    text = result(browser, "plan")
    assert "table/air.planes" in text and "seats" in text


def test_problems_of_the_specs_are_shown(browser: Browser, project: Path) -> None:
    (project / "specs" / "planes.yaml").write_text("kind: Nothing\n", encoding="utf-8")
    assert "planes.yaml:1:" in result(browser, "plan")
    assert browser.ask("/").status == 200


@pytest.mark.full
def test_the_command_serves_until_it_is_interrupted(project: Path) -> None:
    command = [sys.executable, "-m", "deployer", "ui", "--port", "0"]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = urlsplit(process.stdout.readline().strip())
        assert url.hostname == "127.0.0.1"
        with closing(http.client.HTTPConnection(url.hostname, url.port or 0, timeout=60)) as connection:
            connection.request("GET", "/")
            assert b"air.flights" in connection.getresponse().read()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in err
