"""A Pulumi home of the test's own, and a server of releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import deployer  # noqa: F401 (fixture)
from tests.engine.plugins.releases import Releases, release_server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pulumi's plug-in folder; it does not exist yet."""
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "pulumi" / "plugins"


@pytest.fixture
def releases(home: Path) -> Iterator[Releases]:
    with release_server() as server:
        yield server
