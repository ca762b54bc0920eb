"""Reads the driver's output of an EMR step from S3, where EMR puts it every few minutes and when the step ends.

The step's own output names the YARN application. The output of the application's first container is that of the driver.
"""

from __future__ import annotations

import gzip
import re
import zlib

from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError
from deployer.platform.storage.objects import Missing
from deployer.platform.system.clock import Clock

INTERVAL = 30.0  #: seconds between two reads
_APPLICATION = re.compile(r"application_\d+_\d+")
_DRIVER = re.compile(r"container_(?:e\d+_)?\d+_\d+_\d+_000001/(stdout|stderr)\.gz$")


class StepLogs:
    """The logs of one step below `log_uri` (s3://…)."""

    def __init__(self, log_uri: str, cluster: str, step: str, clock: Clock) -> None:
        self._objects = objects_at(f"{log_uri.rstrip('/')}/{cluster}")
        self._step, self._clock = step, clock
        self._application: str | None = None
        self._shown: dict[str, int] = {}
        self._next = 0.0

    def new_lines(self) -> list[str]:
        """Returns the lines since the last call; no lines where the logs cannot be read, because a job does not depend
        on its logs."""
        if self._clock.monotonic() < self._next:
            return []
        self._next = self._clock.monotonic() + INTERVAL
        try:
            return self._look()
        except (DeployerError, Missing):
            return []

    def _look(self) -> list[str]:
        if self._application is None:
            named = _APPLICATION.search("\n".join(self._lines(f"steps/{self._step}/stderr.gz") or ()))
            if named is None:
                return []
            self._application = named.group()
        found: list[str] = []
        for path in sorted(self._objects.list(f"containers/{self._application}")):
            if _DRIVER.search(path) and (lines := self._lines(path)) is not None:
                found += lines[self._shown.get(path, 0) :]
                self._shown[path] = len(lines)
        return found

    def _lines(self, path: str) -> list[str] | None:
        """Returns all lines of a log; None while the log is incomplete."""
        try:
            return gzip.decompress(self._objects.get(path)).decode(errors="replace").splitlines()
        except (OSError, EOFError, zlib.error):
            return None
