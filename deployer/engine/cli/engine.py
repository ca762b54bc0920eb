"""The official CLI as an engine: a thin layer over `pulumi.automation`, which drives the executable `pulumi`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pulumi import automation

from deployer.engine.cli.events import EventCollector
from deployer.engine.interfaces.engine import (
    OnEvent,
    Operation,
    OutputsChanged,
    PlanResult,
    UpResult,
)
from deployer.engine.interfaces.provider import Refreshed
from deployer.engine.persistence.backend import Checkpoint, encode_checkpoint, stack_files, write_checkpoint
from deployer.engine.persistence.locks import break_locks, locked
from deployer.engine.persistence.store import StackStore
from deployer.engine.project.backend_url import is_known
from deployer.engine.project.config import read_keys
from deployer.engine.project.project import StackRef, full_key, load_yaml
from deployer.engine.providers.plugin_search import find_plugin
from deployer.engine.values.values import BLINDED
from deployer.errors import Conflict, EngineFailed
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.isolation.surroundings import close_memory, is_withheld

T = TypeVar("T")


@dataclass(frozen=True)
class CliEngine:
    """Implements `Engine` through the CLI, which starts the provider plugins that Pulumi.yaml names, that are installed
    beside this Python, or that are on PATH. `packages` are the providers that it has to find there.

    The CLI cannot lift `protect` for single resources: `allow_destroy` is not passed on, and a protected resource stays
    refused until the program takes `protect` off it.
    """

    packages: frozenset[str] = frozenset()

    def preview(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        targets: frozenset[str] = frozenset(),
        allow_destroy: frozenset[str] = frozenset(),
        config: Mapping[str, str] | None = None,
        leave: frozenset[str] = frozenset(),
    ) -> PlanResult:
        seen = EventCollector(on_event)
        if targets and targets <= leave:
            return PlanResult(())
        with _config_file(stack, config) as config_file, _to_read(stack, self.packages) as opened:
            _call(
                lambda: opened.preview(
                    refresh=refresh,
                    **_limits(targets, leave),
                    config_file=config_file,
                    on_event=seen.take,
                    on_output=_ignore,
                )
            )
        return PlanResult(tuple(seen.operations.values()), tuple(seen.diagnostics))

    def up(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        targets: frozenset[str] = frozenset(),
        allow_destroy: frozenset[str] = frozenset(),
        config: Mapping[str, str] | None = None,
        leave: frozenset[str] = frozenset(),
        refreshed: Refreshed | None = None,
    ) -> UpResult:
        seen = EventCollector(on_event)
        if targets and targets <= leave:
            return seen.result({})
        with _config_file(stack, config) as config_file:
            done = _call(
                lambda: _open(stack, self.packages).up(
                    refresh=refresh,
                    parallel=parallel,
                    **_limits(targets, leave),
                    config_file=config_file,
                    continue_on_error=True,
                    on_event=seen.take,
                    on_output=_ignore,
                )
            )
        outputs = {name: BLINDED if value.secret else value.value for name, value in done.outputs.items()}
        if on_event is not None:
            on_event(OutputsChanged(outputs))
        return seen.result(outputs)

    def destroy(
        self,
        stack: StackRef,
        *,
        refresh: bool = True,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        allow_destroy: frozenset[str] = frozenset(),
    ) -> UpResult:
        seen = EventCollector(on_event)
        opened = _open(stack, self.packages)
        _call(lambda: opened.destroy(refresh=refresh, parallel=parallel, on_event=seen.take, on_output=_ignore))
        return seen.result({})

    def refresh(
        self,
        stack: StackRef,
        *,
        dry_run: bool = False,
        on_event: OnEvent | None = None,
        parallel: int | None = None,
        targets: frozenset[str] = frozenset(),
    ) -> tuple[Operation, ...]:
        seen = EventCollector(on_event)
        how = {"parallel": parallel, "on_event": seen.take, "on_output": _ignore, **_limits(targets, frozenset())}
        if dry_run:
            with _to_read(stack, self.packages) as opened:
                _call(lambda: opened.preview_refresh(**how))
        else:
            _call(lambda: _open(stack, self.packages).refresh(**how))
        return tuple(operation for operation in seen.operations.values() if operation.op not in {"same", "read"})

    def export(self, stack: StackRef) -> dict[str, Any]:
        """Returns what Pulumi exports, also for a stack that does not exist: an empty deployment. Writes nothing."""
        if is_known(stack.project.backend_url):
            return _store(stack).export()
        selected = _selected(stack)
        if selected is None:
            return {"version": 3, "deployment": None}
        deployment = _call(selected.export_stack)
        return {"version": deployment.version, "deployment": deployment.deployment}

    def restore(self, stack: StackRef, exported: Mapping[str, Any]) -> None:
        deployment = automation.Deployment(version=exported["version"], deployment=exported["deployment"])
        _call(lambda: _open(stack, self.packages).import_stack(deployment))

    def cancel(self, stack: StackRef) -> tuple[str, ...]:
        if is_known(stack.project.backend_url):
            return break_locks(stack_files(stack))
        _call(lambda: _open(stack, self.packages).cancel())
        return ()


def _limits(targets: frozenset[str], leave: frozenset[str]) -> dict[str, Any]:
    """Returns the CLI's targets or exceptions; the CLI does not accept both.

    The CLI refuses a URN that its state does not have, such as that of a table to be created. It accepts a pattern, so
    each URN becomes a pattern that matches only this URN.
    """
    urns = sorted(urn.replace("urn:", "urn*:", 1) for urn in (targets - leave or leave))
    return {"target" if targets else "exclude": urns or None}


def _open(stack: StackRef, packages: frozenset[str]) -> automation.Stack:
    """Returns the stack for a command that changes it; makes the stack if it does not exist."""
    _check_plugins(stack, packages)
    _take_over_journal(stack)
    return _call(
        lambda: automation.create_or_select_stack(
            stack.name,
            work_dir=str(stack.project.dir),
            opts=_options(stack.project.backend_url),
        )
    )


@contextmanager
def _to_read(stack: StackRef, packages: frozenset[str]) -> Iterator[automation.Stack]:
    """Yields the stack for a command that changes nothing.

    The CLI previews only an existing stack, and cannot read the journal that a killed run of the embedded engine left.
    So in these cases it works on a copy of the state in a folder of its own.
    """
    _check_plugins(stack, packages)
    known = is_known(stack.project.backend_url)
    if not (known and stack_files(stack).journal.exists()) and (selected := _selected(stack)) is not None:
        yield selected
        return
    with temporary_folder("state") as folder:
        url = folder.resolve().as_uri()
        if known and (deployment := _store(stack).export()["deployment"]) is not None:
            copy = stack_files(StackRef(replace(stack.project, backend_url=url), stack.name))
            write_checkpoint(copy, encode_checkpoint(copy, deployment), Checkpoint(None))
        yield _call(
            lambda: automation.create_or_select_stack(stack.name, work_dir=str(stack.project.dir), opts=_options(url))
        )


def _selected(stack: StackRef) -> automation.Stack | None:
    """Returns the stack in its backend; None where it was never made."""

    def select() -> automation.Stack | None:
        try:
            return automation.select_stack(
                stack.name, work_dir=str(stack.project.dir), opts=_options(stack.project.backend_url)
            )
        except automation.StackNotFoundError:
            return None

    return _call(select)


def _check_plugins(stack: StackRef, packages: frozenset[str]) -> None:
    """Raises NotFound or Refused for plugins that the CLI cannot use. The CLI itself does not name the entry of
    Pulumi.yaml to correct, and searches the internet for a missing provider."""
    for name in sorted({*stack.project.plugins, *packages}):
        find_plugin(name, stack.project.plugins, stack.project.dir)


def _options(backend_url: str) -> automation.LocalWorkspaceOptions:
    """Returns the variables that the CLI gets beside this process's environment. The CLI passes all of them to the
    program, but needs its own credentials. It runs the programs and providers beside this Python, whether or not that
    environment is active.
    """
    kept_back = {name: "" for name in os.environ if is_withheld(name) and not name.startswith("PULUMI_")}
    path = os.pathsep.join((str(Path(sys.executable).parent), *filter(None, [os.environ.get("PATH")])))
    return automation.LocalWorkspaceOptions(env_vars={**kept_back, "PATH": path, "PULUMI_BACKEND_URL": backend_url})


def _store(stack: StackRef) -> StackStore:
    return StackStore(stack_files(stack), read_keys(stack))


def _take_over_journal(stack: StackRef) -> None:
    """Merges the journal of a killed run of the embedded engine into the checkpoint, because the CLI reads only the
    checkpoint."""
    if not is_known(stack.project.backend_url):
        return
    files = stack_files(stack)
    if files.journal.exists():
        with locked(files):
            _store(stack).open(fold=True)


def _call(do: Callable[[], T]) -> T:
    close_memory()
    try:
        return do()
    except automation.ConcurrentUpdateError as error:
        raise Conflict(
            f"the stack is locked: {_last_line(error)}", remedy="wait for the other run, or `pulumi cancel`"
        ) from None
    except automation.CommandError as error:
        raise EngineFailed(f"pulumi failed: {_last_line(error)}", where="pulumi") from None


@contextmanager
def _config_file(stack: StackRef, overrides: Mapping[str, str] | None) -> Iterator[str | None]:
    """Yields a copy of the stack's configuration with the overrides of one run in it; None without any."""
    if not overrides:
        yield None
        return
    doc, _ = load_yaml(stack.config_file) if stack.config_file.is_file() else ({}, {})
    named = {full_key(key, stack.project.name): value for key, value in overrides.items()}
    doc["config"] = {**(doc.get("config") or {}), **named}
    with temporary_folder("config") as folder:
        file = folder / stack.config_file.name
        file.write_text(yaml.safe_dump(doc), encoding="utf-8")
        yield str(file)


def _ignore(_: str) -> None:
    """Ignores the CLI's own progress text; the events have the same content."""


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error:")]
    return errors[-1] if errors else lines[-1] if lines else "no message"
