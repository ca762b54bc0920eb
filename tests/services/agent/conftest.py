"""A lake with one table of four loads, and agents that watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deployer.platform.files.json_values import JSON
from deployer.platform.system.clock import Clock
from deployer.services.agent.agent import Agent, Settings
from deployer.services.api.attachments import create_service
from deployer.state import open_store
from deployer.state.model.entities import TableState
from deployer.state.model.services import Service, ServiceKind
from deployer.tables.append import open_appender
from tests.tables.lakes import Lake, flights


@dataclass
class Watched:
    """The lake, and what its agents told."""

    lake: Lake
    reported: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    agents: list[Agent] = field(default_factory=list)

    @property
    def table_id(self) -> str:
        entry = self.lake.store.instance().by_name("air.flights")
        assert entry is not None
        return entry.table_id

    @property
    def state(self) -> TableState:
        return self.lake.store.table(self.table_id)

    def attach(self, kind: ServiceKind, trigger: dict[str, JSON], cluster: str | None = None) -> None:
        create_service(self.lake.store, self.table_id, Service(kind, "AUTOMATIC", trigger, cluster=cluster))

    def append(self, times: int) -> None:
        appender = open_appender(self.lake.root, "flights")
        start = self.lake.open().count()
        for number in range(times):
            appender.append(flights(10, start + 10 * number))
        appender.close()

    def agent(self, later: float = 0.0, settings: Settings | None = None) -> Agent:
        """A new one, whose clock is so many seconds later than that of the state."""
        clock = Clock(now=lambda: round((time.time() + later) * 1000))

        def tell(event: str, **about: Any) -> None:
            self.reported.append((event, about))

        found = Agent(open_store(self.lake.root), self.lake.root, tell, settings or Settings(every=0.2), clock)
        self.agents.append(found)
        return found

    def events(self, event: str) -> list[dict[str, Any]]:
        return [about for name, about in self.reported if name == event]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    lake = Lake(tmp_path)
    lake.table(splits=())
    found = Watched(lake)
    found.append(4)
    yield found
    for agent in found.agents:
        agent.workers.kill()


def until(holds: Callable[[], bool]) -> None:
    """Waits for what another process or thread does."""
    give_up = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.02)
