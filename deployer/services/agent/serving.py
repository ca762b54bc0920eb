"""`/healthz` and `/metrics` of an agent over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST

from deployer.errors import InvalidInput
from deployer.services.agent.agent import Agent
from deployer.services.agent.http_server import Answer, Limits, answering, plain
from deployer.services.agent.metrics import AgentMetrics

LIMITS = Limits()
LISTEN = "127.0.0.1:9178"  #: the default: reachable from this machine only


def address_of(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:9178`, `:9178` (every interface) or `[::1]:9178`. Raises InvalidInput."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        remedy = f"write HOST:PORT, such as {LISTEN}, or `off`"
        raise InvalidInput(f"--listen: {text!r} is not a valid address", remedy=remedy)
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)  # noqa: S104 -- it was asked for


@contextmanager
def served(agent: Agent, listen: str, limits: Limits = LIMITS) -> Iterator[str]:
    """Answers at `listen` (see `address_of`) from a thread; yields the address; port 0 is replaced by a free one.

    Raises InvalidInput when the address cannot be had.
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
                remedy="give another address; port 0 takes a free one, and `off` none",
            ) from None
        yield f"{f'[{host}]' if ':' in host else host}:{found}"


def _health(agent: Agent) -> Answer:
    status = "ending" if agent.is_ending else "ok" if agent.is_well else "late"
    about = {"status": status, "seconds_since_last_look": round(agent.silent_for, 1), "runs": len(agent.workers)}
    code = HTTPStatus.OK if agent.is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(code, "application/json", json.dumps(about).encode() + b"\n")
