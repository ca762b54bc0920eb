"""The fixtures of commands: operations are compared with them."""

from __future__ import annotations

from tests.cli.conftest import deployer, project

__all__ = ["deployer", "project"]
