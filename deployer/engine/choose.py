"""The choice of the engine that runs a project's program."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Literal

from deployer.engine.interfaces.engine import PROGRAM_PROCESS, Engine
from deployer.engine.project.project import Project, StackRef
from deployer.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from deployer.engine.interfaces.provider import Source


def choose_engine(project: Project, prefer: str = "auto", providers: Mapping[str, Source] | None = None) -> Engine:
    """Returns the official CLI when it is on PATH, else the embedded engine; `prefer` is `auto`, `embedded` or `cli`.

    `providers` maps package names to providers that the embedded engine calls in this process, or to functions without
    arguments that make one. The CLI starts their plugin executables instead, which have to be installed.
    """
    if chosen_engine(project, prefer) == "cli":
        from deployer.engine.cli.engine import CliEngine

        return CliEngine(frozenset(providers or ()))
    from deployer.engine.embedded import EmbeddedEngine

    return EmbeddedEngine(dict(providers or {}))


def prepare_program(project: Project, prefer: str = "auto", *modules: str) -> None:
    """Begins to load the modules that a run of the program needs, in the background.

    Does nothing for the CLI, which has processes of its own.
    """
    if chosen_engine(project, prefer) == "embedded":
        from deployer.platform.isolation.process import prepare

        prepare(PROGRAM_PROCESS, *modules)


def hold_stack(stack: StackRef, prefer: str = "auto") -> AbstractContextManager[None]:
    """Locks the stack against other runs for the duration of a block.

    The caller's own runs continue, so what the block reads is still valid when it is applied. Raises `Conflict`, naming
    the holder, while another run holds the lock. The embedded engine holds Pulumi's own lock. The CLI takes Pulumi's
    lock for each of its runs; around them, another lock excludes deployer's other runs, but not a bare `pulumi up`.
    Where state is neither in a folder nor on S3, nothing is locked.
    """
    from deployer.engine.persistence.backend import stack_files
    from deployer.engine.persistence.locks import locked
    from deployer.engine.project.backend_url import is_known

    if chosen_engine(stack.project, prefer) == "embedded":
        return locked(stack_files(stack))
    if not is_known(stack.project.backend_url):
        return nullcontext()
    return locked(stack_files(stack), shared_with_pulumi=False)


def chosen_engine(project: Project, prefer: str = "auto") -> Literal["cli", "embedded"]:
    """Returns which engine `choose_engine` makes. Raises NotFound and InvalidInput."""
    found = shutil.which("pulumi")
    match prefer:
        case "embedded":
            return "embedded"
        case "cli":
            if found is None:
                raise NotFound(
                    "the Pulumi CLI is not on PATH",
                    where=project.dir / "Pulumi.yaml",
                    remedy="install `pulumi`, or use the embedded engine (`engine: embedded`)",
                )
            return "cli"
        case "auto":
            return "cli" if found is not None else "embedded"
        case _:
            raise InvalidInput(f"no engine is called {prefer!r}", remedy="use auto, embedded or cli")
