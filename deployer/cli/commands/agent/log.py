"""The agent's log on stderr: a line for each event, as text or as a JSON document."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from deployer.cli.console.output import print_json_line, print_line
from deployer.state.model.times import iso_utc

_WARNINGS = frozenset({"trouble", "overdue", "late", "dead", "not started", "left"})


class AgentLog:
    """A log whose lines have the level `info`, `warning` or `error`. Safe for threads: a line is one write."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def report(self, event: str, **about: Any) -> None:
        """Logs an event. Values of None are left out."""
        now = dt.datetime.now(dt.UTC)
        known = {name: value for name, value in about.items() if value is not None}
        failed = event == "ended" and known.get("status") == "FAILED"
        level = "error" if failed else "warning" if event in _WARNINGS else "info"
        if self._as_json:
            document = {"at": iso_utc(now), "level": level, "event": event}
            print_json_line(document | known)
        else:
            print_line(f"{now:%Y-%m-%d %H:%M:%S}  {_describe(event, known)}")


def _describe(event: str, about: Mapping[str, Any]) -> str:
    where = " ".join(str(about[name]) for name in ("table", "service") if name in about)
    why = about.get("why") or ""
    match event:
        case "watching":
            at = f", /healthz and /metrics at http://{about['listen']}" if "listen" in about else ""
            how = "once" if about["once"] else f"every {about['every']:g} s{at}"
            return f"watching {about['root']} {how}"
        case "started":
            return f"{where}: started run {about['run']}: {why}"
        case "progress":
            from deployer.platform.system.progress import describe_progress

            progress = describe_progress(about["doing"], about["done"], about.get("total"), about.get("unit", ""))
            return f"{where}: {progress}"
        case "ended":
            changes = [
                f"{name} {before} → {about['after'][name]}"
                for name, before in about["before"].items()
                if name in about["after"] and about["after"][name] != before
            ]
            outcome = ": ".join(filter(None, (why, ", ".join(changes))))
            return f"{where}: {about['status']} after {about['seconds']} s" + (f": {outcome}" if outcome else "")
        case "stopped":
            runs = ", ".join(f"{number} {status}" for status, number in sorted(about["runs"].items()))
            return f"stopped; runs that ended: {runs or 'none'}"
        case "dead":
            return f"{where}: run {about['run']} is FAILED: {why}"
        case "draining":
            return f"asked to end: waiting for {about['runs']} to end, no new run starts"
        case "stopping":
            return f"stopping {about['runs']}: what they have committed is kept"
        case "left":
            return f"{where}: not run: {why}"
        case "not started":
            return f"{where}: run {about['run']} was not started: {why}"
        case _:
            return f"{where + ': ' if where else ''}{event}{': ' + why if why else ''}"
