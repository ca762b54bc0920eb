"""Which engine runs a project's program."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from deployer.engine.model import Engine
from deployer.engine.project import Project
from deployer.errors import InvalidInput, NotFound


def choose_engine(project: Project, prefer: str = "auto", providers: Mapping[str, Any] | None = None) -> Engine:
    """The official CLI when it is on PATH, else the embedded engine; `prefer` is `auto`, `embedded` or `cli`.

    `providers` maps package names to providers that the embedded engine calls in this process: objects of the SDK's
    class `pulumi.provider.experimental.Provider`, or what makes one without arguments (the class). The CLI starts
    their plugin executables instead.
    """
    found = shutil.which("pulumi")
    match prefer:
        case "embedded":
            chosen = "embedded"
        case "cli":
            if found is None:
                raise NotFound(
                    "the Pulumi CLI is not on PATH",
                    where=project.dir / "Pulumi.yaml",
                    remedy="install `pulumi`, or use the embedded engine (`engine: embedded`)",
                )
            chosen = "cli"
        case "auto":
            chosen = "cli" if found is not None else "embedded"
        case _:
            raise InvalidInput(f"no engine is called {prefer!r}", remedy="use auto, embedded or cli")
    if chosen == "cli":
        from deployer.engine.cli_engine import CliEngine

        return CliEngine()
    from deployer.engine.embedded import EmbeddedEngine

    return EmbeddedEngine(dict(providers or {}))
