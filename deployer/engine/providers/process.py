"""A provider plugin's process: the executable `pulumi-resource-NAME`, started as Pulumi does it.

The plugin receives the engine's address, and prints the port that it listens on as its first line. Its later output
goes to the diagnostics. A supervisor process (`isolation.supervisor`) is between the two, so that the plugin and its
child processes end with the engine, even when the engine is killed.
"""

from __future__ import annotations

import queue
import secrets
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from deployer.errors import EngineFailed
from deployer.platform.isolation.process import command_of
from deployer.platform.isolation.surroundings import environment_for_project_code
from deployer.provider.callers import TOKEN_VARIABLE

_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_END_SECONDS = 1.0

Report = Callable[[str, str], None]  #: severity and one line


class PluginProcess:
    """A running plugin. `port` is its port on the loopback interface."""

    def __init__(self, executable: Path, engine_address: str, directory: Path, report: Report) -> None:
        self.name = executable.name
        self.token = secrets.token_urlsafe(32)  #: the token that a plugin of deployer's requires with each call
        self._report = report
        self._process = subprocess.Popen(
            command_of("deployer.platform.isolation.supervisor", str(executable), engine_address, alone=True),
            cwd=directory,
            # the project may contain the plugin
            env={**environment_for_project_code(), TOKEN_VARIABLE: self.token},
            stdin=subprocess.PIPE,  # only this process has the other end
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # only the engine handles Ctrl-C; it then lets running steps finish
        )
        self._tail: list[str] = []
        self._readers = [threading.Thread(target=self._pump_errors, daemon=True)]
        self._readers[0].start()
        try:
            self.port = self._read_port()
        except EngineFailed:
            self.stop()
            raise

    def how_it_ended(self) -> str:
        """Returns a description of how a plugin ended whose connection broke; an empty string when it still runs."""
        try:
            self._process.wait(_END_SECONDS)  # the connection breaks a moment before the process ends
        except subprocess.TimeoutExpired:
            return ""
        self._readers[0].join(_END_SECONDS)
        last_line = f": {self._tail[-1]}" if self._tail else ""
        return f"{self.name} ended with exit code {self._process.returncode}{last_line}"

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._close_input()
            self._process.wait()
        self._close_input()
        for reader in self._readers:
            reader.join(_STOP_SECONDS)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _close_input(self) -> None:
        """Asks the supervisor to kill the plugin, if it still runs."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _read_port(self) -> int:
        lines: queue.Queue[str] = queue.Queue()

        def pump() -> None:
            for number, line in enumerate(self._process.stdout or ()):
                text = line.decode(errors="replace").rstrip()
                if number == 0:
                    lines.put(text)
                elif text:
                    self._report("info", text)
            lines.put("")

        self._readers.append(threading.Thread(target=pump, daemon=True))
        self._readers[-1].start()
        try:
            first = lines.get(timeout=_START_SECONDS)
        except queue.Empty:
            first = ""
        if not first.isdigit():
            self._readers[0].join(1.0)
            last_line = f": {self._tail[-1]}" if self._tail else ""
            raise EngineFailed(
                f"the plugin did not start{last_line}", where=self.name, remedy="run it by hand to see why it ends"
            )
        return int(first)

    def _pump_errors(self) -> None:
        for line in self._process.stderr or ():
            text = line.decode(errors="replace").rstrip()
            if text:
                self._tail = [*self._tail[-19:], text]
                self._report("info", text)
