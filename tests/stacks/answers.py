"""A server between a client and moto that answers like AWS what moto does not know, and lets clocks go wrong."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from tests.stacks.policies import Call, is_allowed
from tests.state.faults import Proxy, _Handler

_PAGE = 10  # results of a simulation in one answer
_IAM = "https://iam.amazonaws.com/doc/2010-05-08/"


@dataclass
class Answers:
    """`policy` is what the simulation judges by; None: nobody may simulate. `simulated` are principals and calls.

    `vcpus`: EMR Serverless's quota; None: nobody may read it. `skew`: by how much AWS's clock is before ours.
    `identity`: the ARN that STS tells; None: moto's own. `refused`: a status and code that STS answers instead.
    """

    target: str
    policy: Mapping[str, Any] | None = None
    vcpus: float | None = None
    skew: dt.timedelta = dt.timedelta()
    identity: str | None = None
    refused: str | None = None
    read_only: bool = False  # S3 begins no upload
    role: str | None = None  # the ARN that IAM tells of any role
    url: str = ""
    simulated: list[tuple[str, Call]] = field(default_factory=list)


@contextmanager
def answering(target: str, **settings: Any) -> Iterator[Answers]:
    """A server on a free port that answers for what is set, and passes everything else on to `target`."""
    state = Answers(target, **settings)

    class Handler(_Answering):
        answers = state
        proxy = Proxy(target, {}, 0, 1)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Answering(_Handler):
    answers: Answers

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        target = self.headers.get("X-Amz-Target", "")
        form = {key: values[0] for key, values in parse_qs(body.decode("utf-8", "replace")).items()}
        match form.get("Action") or target.rpartition(".")[2]:
            case "SimulatePrincipalPolicy":
                return self._simulated(form)
            case "ListServiceQuotas":
                return self._quotas()
            case "GetCallerIdentity" if self.answers.refused:
                return _xml_error(403, self.answers.refused, "The token is not valid.")
            case "GetCallerIdentity" if self.answers.identity:
                account = self.answers.identity.split(":")[4]
                told = f"<Arn>{self.answers.identity}</Arn><UserId>AIDA</UserId><Account>{account}</Account>"
                return _xml("GetCallerIdentity", told, "https://sts.amazonaws.com/doc/2011-06-15/")
            case "" if self.answers.read_only and self.path.endswith("?uploads"):
                return 403, [], b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            case "GetRole" if self.answers.role:
                return _xml("GetRole", _role(self.answers.role), _IAM)
            case _:
                return super()._forwarded(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _Handler.handle_any  # noqa: N815

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        now = format_datetime(dt.datetime.now(dt.UTC) + self.answers.skew, usegmt=True)
        kept = [(name, value) for name, value in headers if name.lower() != "date"]
        super()._answer(status, [*kept, ("Date", now)], body)

    def _simulated(self, form: Mapping[str, str]) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.answers.policy is None:
            return _xml_error(403, "AccessDenied", "User is not authorized to perform: iam:SimulatePrincipalPolicy")
        context = {
            form[f"ContextEntries.member.{number}.ContextKeyName"]: value
            for number in range(1, 10)
            if (value := form.get(f"ContextEntries.member.{number}.ContextKeyValues.member.1"))
        }
        actions = [value for key, value in form.items() if key.startswith("ActionNames.")]
        resources = [value for key, value in form.items() if key.startswith("ResourceArns.")]
        calls = [Call(action, resource, context) for action in actions for resource in resources]
        first = int(form.get("Marker", "0"))
        results = ""
        for call in calls[first : first + _PAGE]:
            self.answers.simulated.append((form["PolicySourceArn"], call))
            decision = "allowed" if is_allowed(call, [self.answers.policy]) else "implicitDeny"
            results += f"<member><EvalActionName>{call.action}</EvalActionName><EvalDecision>{decision}</EvalDecision>"
            results += f"<EvalResourceName>{escape(call.resource)}</EvalResourceName></member>"
        more = first + _PAGE < len(calls)
        told = f"<EvaluationResults>{results}</EvaluationResults><IsTruncated>{str(more).lower()}</IsTruncated>"
        told += f"<Marker>{first + _PAGE}</Marker>" if more else ""
        return _xml("SimulatePrincipalPolicy", told, _IAM)

    def _quotas(self) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.answers.vcpus is None:
            refused = {"__type": "AccessDeniedException", "Message": "not authorized"}
            return 400, [("Content-Type", "application/x-amz-json-1.1")], json.dumps(refused).encode()
        quota = {"QuotaName": "Max concurrent vCPUs per account", "Value": self.answers.vcpus}
        body = json.dumps({"Quotas": [{"QuotaName": "Applications", "Value": 1.0}, quota]}).encode()
        return 200, [("Content-Type", "application/x-amz-json-1.1")], body


def _role(arn: str) -> str:
    path, name = arn.partition(":role")[2].rpartition("/")[::2]
    return (
        f"<Role><Path>{path}/</Path><RoleName>{name}</RoleName><RoleId>AROA</RoleId><Arn>{arn}</Arn>"
        "<CreateDate>2026-01-01T00:00:00Z</CreateDate></Role>"
    )


def _xml(action: str, inside: str, namespace: str) -> tuple[int, list[tuple[str, str]], bytes]:
    text = f'<{action}Response xmlns="{namespace}"><{action}Result>{inside}</{action}Result></{action}Response>'
    return 200, [("Content-Type", "text/xml")], text.encode()


def _xml_error(status: int, code: str, message: str) -> tuple[int, list[tuple[str, str]], bytes]:
    text = f"<ErrorResponse><Error><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
    return status, [("Content-Type", "text/xml")], text.encode()
