"""How far a step is, from a provider in a process of its own to whoever follows the engine's events."""

from __future__ import annotations

import pytest

from deployer.engine import Event, StepProgress
from deployer.engine.program.service import EngineService, GrpcServices
from deployer.provider import plugin
from deployer.provider.plugin import _Status

URN = "urn:pulumi:dev::demo::lake:index:Table::air.t"


def test_the_engine_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "STATUS_SECONDS", 0.0)
    events: list[Event] = []
    with GrpcServices(EngineService(events.append)) as served:
        tell = _Status(served.address())
        tell(URN, "reading", 0, 40, "rows")
        tell(URN, "writing", 30, 40, "rows")
    assert events == [
        StepProgress(URN, "reading: 0 of 40 rows (0%)"),
        StepProgress(URN, "writing: 30 of 40 rows (75%)"),
    ]


def test_an_engine_that_does_not_listen_any_more_stops_nothing() -> None:
    with GrpcServices(EngineService(lambda _: None)) as served:
        address = served.address()
    _Status(address)(URN, "writing", 30, 40, "rows")
