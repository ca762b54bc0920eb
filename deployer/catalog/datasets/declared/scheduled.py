"""Starts the services of declared datasets by their schedules, for an agent. Each service runs in its own process."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import IO

from deployer.catalog.datasets.declared.live import RAN, live_of
from deployer.catalog.datasets.model.record import DatasetRecord, records_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.platform.system.clock import Clock
from deployer.specs.types.dataset import DatasetService, ServiceName
from deployer.specs.validation.plain_values import mapping, whole
from deployer.specs.values.schedules import last_firing
from deployer.state.model.entities import InstanceState
from deployer.state.store import StateStore

_LAST_BYTES = 1024  #: bytes at the end of a process's output that are reported as the reason of a failure


@dataclass(slots=True)
class _Working:
    process: subprocess.Popen[bytes]
    output: IO[bytes]
    began: float


class ScheduledDatasets:
    """Implements `deployer.services.agent.beside.Beside`. `ended` counts ended processes by their outcome.

    Only one of several agents starts a due service: it first records the start in the dataset's record. A service that
    fails is due again at the schedule's next time.
    """

    def __init__(self, store: StateStore, root: str, on_event: Callable[..., None], clock: Clock | None = None) -> None:
        self._datasets, self._report = Datasets(store, root), on_event
        self._clock = clock or Clock()
        self._instance: InstanceState | None = None
        self._served: tuple[DatasetRecord, ...] = ()
        self._working: dict[tuple[str, ServiceName], _Working] = {}
        self.ended: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._working)

    def look(self, now: int) -> None:
        instance = self._datasets.store.instance()
        if instance is not self._instance:
            self._served = tuple(each for each in records_of(instance) if each.declared and live_of(each).spec.services)
            self._instance = instance
        for record in self._served:
            for service in _due(record, now):
                name = record.name
                if (name, service.name) not in self._working and self._is_claimed(record, service, now):
                    self._start(name, service)

    def reap(self) -> None:
        for (name, service), each in list(self._working.items()):
            code = each.process.poll()
            if code is None:
                continue
            del self._working[name, service]
            status = "SUCCEEDED" if code == 0 else "FAILED"
            self.ended[status] = self.ended.get(status, 0) + 1
            seconds = round(self._clock.monotonic() - each.began, 1)
            why = _printed(each.output) if code else ""
            each.output.close()
            about = {"table": f"dataset/{name}", "service": service, "status": status, "seconds": seconds}
            self._report("ended", **about, why=why, before={}, after={})

    def stop(self) -> None:
        for each in self._working.values():
            each.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        for each in self._working.values():
            each.process.kill()
            each.process.wait()
        self.reap()

    def _is_claimed(self, record: DatasetRecord, service: DatasetService, now: int) -> bool:
        """Records that the service ran; returns False where another process changed the dataset's record meanwhile."""
        declared = dict(record.declared or {})
        declared[RAN] = {**mapping(declared, RAN, {}), service.name: now}
        return self._datasets.is_replaced(record, replace(record, declared=declared))

    def _start(self, name: str, service: DatasetService) -> None:
        output = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the process
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "deployer", "catalog", service.name, name, "--root", self._datasets.root],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a signal to the agent's terminal does not end the process
        )
        self._working[name, service.name] = _Working(process, output, self._clock.monotonic())
        about = {"table": f"dataset/{name}", "service": service.name, "run": process.pid, "pid": process.pid}
        self._report("started", **about, why=f"its schedule {service.schedule}")


def _due(record: DatasetRecord, now: int) -> Iterator[DatasetService]:
    """Yields the services whose schedule fired after their last run, or after their declaration."""
    ran = mapping(record.declared or {}, RAN, {})
    moment = dt.datetime.fromtimestamp(now / 1000, dt.UTC)
    for service in live_of(record).spec.services:
        fired = last_firing(service.schedule, service.timezone, moment)
        if fired is not None and round(fired.timestamp() * 1000) > whole(ran, service.name, 0):
            yield service


def _printed(output: IO[bytes]) -> str:
    """Returns the end of a process's output, as one line."""
    size = output.seek(0, 2)
    output.seek(max(0, size - _LAST_BYTES))
    return " ".join(output.read().decode("utf-8", "replace").split())
