"""Ctrl-C in the middle of a change of rows, and in a call of Lance."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import pyarrow as pa
import pytest

from deployer.datasets.errors import is_interruption, lance_errors, storage_errors
from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

DELETE = ("rows", "delete", "flights", "--where", "carrier = 'AA'", "--yes")


@pytest.mark.full
@pytest.mark.parametrize("point", ["before-intent", "before-lance", "after-lance"])
def test_the_message_says_how_to_resume_and_nothing_is_changed_twice(point: str, loaded: Run) -> None:  # noqa: F811
    _, out, _ = loaded(*DELETE, "--dry-run")
    [rows] = re.findall(r"would delete (\d+ rows?)", out)
    with subprocess.Popen(
        [sys.executable, "-m", "deployer", *DELETE],
        env={**os.environ, "DEPLOYER_FAILPOINT": f"tables.rows.{point}=stop"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 130
    [job] = re.findall(r"--job-id (\w+)", said)
    assert "interrupted; all rows are changed, or none" in said and "Traceback" not in said
    code, out, _ = loaded(*DELETE, "--job-id", job)
    assert code == 0 and ("done before" in out or f"delete {rows}" in out)
    assert "there is nothing to change" in loaded(*DELETE)[1]


INTERRUPTIONS = {
    "External error: KeyboardInterrupt: ": True,
    "KeyboardInterrupt:": True,
    "External error: KeyboardInterrupt:\nat line 3": True,
    "Schema error: No field named KeyboardInterrupt": False,
    "External error: KeyboardInterrupted is not a column": False,
}


@pytest.mark.parametrize("message", INTERRUPTIONS)
def test_calls_of_lance_that_ctrl_c_ended_are_interruptions(message: str) -> None:
    failure = pa.ArrowInvalid(message)
    assert is_interruption(failure) is INTERRUPTIONS[message]
    if INTERRUPTIONS[message]:
        for wrapped in (lance_errors, storage_errors):
            with pytest.raises(KeyboardInterrupt), wrapped("lake"):
                raise failure
