"""Reads the lines of a job from CloudWatch Logs while the job runs."""

from __future__ import annotations

from collections.abc import Sequence

from deployer.platform.aws.calls import CallFailed, Calls, Cause

MOST_PAGES = 20  #: most pages of one stream that are read at a time; endless output is shown in parts


class LogStreams:
    """The streams of a log group whose names are one of `prefixes` followed by one of `names`. A stream may appear
    later."""

    def __init__(self, group: str, prefixes: Sequence[str], names: Sequence[str]) -> None:
        self._group, self._prefixes, self._names = group, prefixes, names
        self._calls = Calls("logs", f"log group {group}")
        self._tokens: dict[str, str | None] = {}

    def new_lines(self) -> list[str]:
        """Returns the lines since the last call; no lines for a group that does not exist."""
        try:
            if len(self._tokens) < len(self._names):
                self._find()
            return [line for stream in sorted(self._tokens) for line in self._read(stream)]
        except CallFailed as failure:
            if failure.cause is Cause.MISSING:
                return []
            raise

    def _find(self) -> None:
        for prefix in self._prefixes:
            answer = self._calls("describe_log_streams", logGroupName=self._group, logStreamNamePrefix=prefix)
            for stream in answer["logStreams"]:
                if stream["logStreamName"].removeprefix(prefix) in self._names:
                    self._tokens.setdefault(stream["logStreamName"], None)

    def _read(self, stream: str) -> list[str]:
        lines: list[str] = []
        for _ in range(MOST_PAGES):
            token = self._tokens[stream]
            page = {} if token is None else {"nextToken": token}
            answer = self._calls(
                "get_log_events", logGroupName=self._group, logStreamName=stream, startFromHead=True, **page
            )
            lines += [line for event in answer["events"] for line in str(event["message"]).splitlines()]
            self._tokens[stream] = answer["nextForwardToken"]
            if answer["nextForwardToken"] == token:  # CloudWatch repeats the token at the end of a stream
                break
        return lines
