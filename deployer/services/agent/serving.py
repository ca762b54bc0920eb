"""`/healthz` and `/metrics` of an agent over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from deployer.errors import InvalidInput
from deployer.runs.records import runs_of
from deployer.services.agent.agent import Agent
from deployer.services.agent.http_server import Answer, Limits, answering, plain

LIMITS = Limits()
LISTEN = "127.0.0.1:9178"  #: the default: reachable from this machine only
_SERVICE = ["table", "service"]  #: labels


def address_of(text: str) -> tuple[str, int]:
    """Parses host and port of `127.0.0.1:9178`, `:9178` (every interface) or `[::1]:9178`. Raises InvalidInput."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        remedy = f"write HOST:PORT, such as {LISTEN}, or `off`"
        raise InvalidInput(f"--listen: {text!r} is not a valid address", remedy=remedy)
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)  # noqa: S104 -- it was asked for


@contextmanager
def served(agent: Agent, listen: str, limits: Limits = LIMITS) -> Iterator[str]:
    """Serves at `listen` (see `address_of`) from a thread, and yields the address; port 0 is replaced by a free one.

    Raises InvalidInput when the address is not available.
    """
    host, port = address_of(listen)
    metrics = AgentMetrics(agent)

    def answer(path: str) -> Answer:
        if path == "/metrics":
            return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, metrics.text())
        if path == "/healthz":
            return _health(agent)
        return plain(HTTPStatus.NOT_FOUND, "there are /healthz and /metrics")

    with ExitStack() as stack:
        try:
            found = stack.enter_context(answering(host, port, answer, limits))
        except OSError as error:
            raise InvalidInput(
                f"--listen {listen}: {error.strerror or error}",
                remedy="give another address; port 0 takes any free one, and `off` disables the server",
            ) from None
        yield f"{f'[{host}]' if ':' in host else host}:{found}"


def _health(agent: Agent) -> Answer:
    status = "ending" if agent.is_ending else "ok" if agent.is_well else "late"
    about = {"status": status, "seconds_since_last_look": round(agent.silent_for, 1), "runs": len(agent.workers)}
    code = HTTPStatus.OK if agent.is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(code, "application/json", json.dumps(about).encode() + b"\n")


class AgentMetrics:
    """Collects metrics of an agent's last check, without reading the state or storage. Safe for threads."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """Returns the metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from self._own()
        yield from self._services()
        yield from self._tables()

    def _own(self) -> Iterator[Metric]:
        agent, look = self._agent, self._agent.last
        yield _counter("deployer_agent_looks", "Checks of the instance.", agent.looks)
        yield _counter("deployer_agent_failed_looks", "Checks that failed.", agent.failed_looks)
        yield _counter("deployer_agent_dead_runs", "Runs of dead holders that it ended.", agent.dead)
        ended = CounterMetricFamily("deployer_agent_runs", "Runs that it started and that ended.", labels=["status"])
        for status, number in sorted(agent.workers.ended.items()):
            ended.add_metric([status], number)
        yield ended
        yield _gauge("deployer_agent_runs_in_progress", "Runs that its processes execute now.", len(agent.workers))
        yield _gauge("deployer_agent_draining", "1 once it was asked to end.", int(agent.is_ending))
        yield _gauge("deployer_agent_last_look_seconds", "Duration of its last check.", look.seconds)
        yield _gauge("deployer_agent_last_look_timestamp_seconds", "Time of its last check.", look.at / 1000)

    def _services(self) -> Iterator[Metric]:
        overdue = GaugeMetricFamily("deployer_service_overdue", "1: should have run and did not.", labels=_SERVICE)
        failed = GaugeMetricFamily("deployer_service_failed", "1: the newest run failed.", labels=_SERVICE)
        due = GaugeMetricFamily("deployer_service_due", "1: it is due.", labels=_SERVICE)
        paused = GaugeMetricFamily("deployer_service_paused", "1: the service is paused.", labels=_SERVICE)
        success = GaugeMetricFamily(
            "deployer_service_last_success_timestamp_seconds",
            "When a run last succeeded or was skipped.",
            labels=_SERVICE,
        )
        seconds = GaugeMetricFamily("deployer_service_last_run_seconds", "How long it took.", labels=_SERVICE)
        following = GaugeMetricFamily(
            "deployer_service_next_timestamp_seconds", "Next time of its schedule.", labels=_SERVICE
        )
        runs = GaugeMetricFamily("deployer_service_runs", "Runs that are kept.", labels=[*_SERVICE, "status"])
        for seen in self._agent.last.tables.values():
            for each in seen.service_statuses:
                labels = [seen.entry.full_name, each.service]
                overdue.add_metric(labels, int(bool(each.overdue)))
                failed.add_metric(labels, int(bool(each.failed)))
                due.add_metric(labels, int(bool(each.due)))
                paused.add_metric(labels, int(each.paused))
                if each.next_at is not None:
                    following.add_metric(labels, each.next_at / 1000)
                kept = runs_of(seen.state, each.service)
                done = next((run for run in kept if run.status in ("SUCCEEDED", "SKIPPED")), None)
                if done is not None and done.ended_at is not None:
                    success.add_metric(labels, done.ended_at / 1000)
                ended = next((run for run in kept if run.started_at is not None and run.ended_at is not None), None)
                if ended is not None and ended.started_at is not None and ended.ended_at is not None:
                    seconds.add_metric(labels, (ended.ended_at - ended.started_at) / 1000)
                for status in sorted({run.status for run in kept}):
                    runs.add_metric([*labels, status], sum(run.status == status for run in kept))
        yield from (overdue, failed, due, paused, success, seconds, following, runs)

    def _views(self, label: list[str]) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "deployer_view_staleness_seconds", "Age of the oldest change that the view does not reflect.", labels=label
        )
        late = GaugeMetricFamily(
            "deployer_view_late_seconds", "By how much the view is later than its max_staleness.", labels=label
        )
        look = self._agent.last
        for seen in look.tables.values():
            if seen.freshness is not None and not seen.freshness.unknown:
                age.add_metric([seen.entry.full_name], seen.freshness.age(look.at) / 1000)
                late.add_metric([seen.entry.full_name], seen.freshness.late_by(look.at) / 1000)
        yield from (age, late)

    def _tables(self) -> Iterator[Metric]:
        label = ["table"]
        yield from self._views(label)
        trouble = GaugeMetricFamily("deployer_table_unreadable", "1: it cannot be checked.", labels=label)
        rows = GaugeMetricFamily("deployer_table_rows", "Rows.", labels=label)
        size = GaugeMetricFamily("deployer_table_bytes", "Bytes of the newest version's files.", labels=label)
        files = GaugeMetricFamily("deployer_table_files", "Files of the newest version.", labels=label)
        small = GaugeMetricFamily("deployer_table_small_files", "Small files, as COMPACT defines them.", labels=label)
        version = GaugeMetricFamily("deployer_table_lance_version", "The newest version.", labels=label)
        for seen in self._agent.last.tables.values():
            name = [seen.entry.full_name]
            trouble.add_metric(name, int(bool(seen.trouble)))
            if not seen.state.version:
                continue
            rows.add_metric(name, seen.state.files.rows)
            size.add_metric(name, seen.state.files.bytes)
            files.add_metric(name, seen.state.files.count)
            if seen.state.services:
                small.add_metric(name, seen.small_files)
            version.add_metric(name, seen.state.lance_version)
        yield from (trouble, rows, size, files, small, version)


def _gauge(name: str, about: str, value: float) -> Metric:
    found = GaugeMetricFamily(name, about)
    found.add_metric([], value)
    return found


def _counter(name: str, about: str, value: float) -> Metric:
    found = CounterMetricFamily(name, about)
    found.add_metric([], value)
    return found
