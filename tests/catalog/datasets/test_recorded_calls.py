"""Calls that Rerun's own client made (rerun-sdk 0.28.2), made again: the answers are those that the client had.

Ids of entries and of tasks, and places of files, are others in each run: those of the recorded calls are replaced.
"""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from deployer.catalog.protocol.dataframes import rows_in
from deployer.catalog.protocol.messages import SERVICE, cloud
from deployer.catalog.serving.server import served
from deployer.state import create_store
from tests.catalog.datasets.record_calls import CALLS, FILES, summary

RECORDED: list[dict[str, Any]] = json.loads(gzip.decompress(CALLS.read_bytes()))


class Replay:
    """Makes recorded calls at a server."""

    def __init__(self, channel: grpc.Channel, bad: Path) -> None:
        self._channel = channel
        self._files = {"closed.rrd": (FILES / "closed.rrd").as_uri(), "bad.rrd": bad.as_uri()}
        self._replaced = dict[bytes, bytes]()

    def __call__(self, call: dict[str, Any]) -> tuple[list[bytes], str | None]:
        method = call["method"]
        request = self._with_files(method, self._now(base64.b64decode(call["request"])))
        headers = [
            (name, self._now(value.encode()) if name.endswith("-bin") else self._now(value.encode()).decode())
            for name, value in call["headers"].items()
        ]
        try:
            made = self._channel.unary_stream(f"/{SERVICE}/{method}", None, None)
            answers = list(made(request, metadata=headers, timeout=60))
        except grpc.RpcError as failure:
            return [], failure.code().name
        self._learn(method, [base64.b64decode(each) for each in call["answers"]], answers)
        return answers, None

    def _now(self, data: bytes) -> bytes:
        for then, now in self._replaced.items():
            data = data.replace(then, now)
        return data

    def _with_files(self, method: str, request: bytes) -> bytes:
        if method != "RegisterWithDataset":
            return request
        found = cloud.RegisterWithDatasetRequest.FromString(request)
        for each in found.data_sources:
            each.storage_url = self._files[each.storage_url.rpartition("/")[2]]
        return bytes(found.SerializeToString())

    def _learn(self, method: str, then: list[bytes], now: list[bytes]) -> None:
        """Notes the ids that an answer has in place of the recorded ones."""
        if method == "CreateDatasetEntry":
            before, after = (cloud.CreateDatasetEntryResponse.FromString(each[0]).dataset for each in (then, now))
            for old, new in (
                (before.details.id.id, after.details.id.id),
                (before.dataset_details.blueprint_dataset.id, after.dataset_details.blueprint_dataset.id),
            ):
                for one, other in ((old.time_ns, new.time_ns), (old.inc, new.inc)):
                    self._replaced[one.to_bytes(8, "little")] = other.to_bytes(8, "little")
                ids = [each.time_ns.to_bytes(8, "big") + each.inc.to_bytes(8, "big") for each in (old, new)]
                self._replaced[ids[0]] = ids[1]
                self._replaced[ids[0].hex().encode()] = ids[1].hex().encode()
                printed = [each[:8].hex().upper() + each[8:].hex() for each in ids]  # as the client prints ids
                self._replaced[printed[0].encode()] = printed[1].encode()
        elif method == "RegisterWithDataset":
            tasks = []
            for answer in (then[0], now[0]):
                data = cloud.RegisterWithDatasetResponse.FromString(answer).data
                tasks.append([task for batch in rows_in(data) for task in batch["rerun_task_id"].to_pylist()])
            for old, new in zip(*tasks, strict=True):
                self._replaced[self._now(old.encode())] = new.encode()


def test_recorded_calls_are_answered_as_the_client_had_them(tmp_path: Path) -> None:
    bad = tmp_path / "bad.rrd"
    bad.write_bytes(b"PAR1" + bytes(100))
    root = str(tmp_path / "lake")
    codes = {"NotFound": "NOT_FOUND", "AlreadyThere": "ALREADY_EXISTS"}
    with (
        closing(create_store(root)) as store,
        served(store, root) as url,
        grpc.insecure_channel(url.removeprefix("rerun+http://")) as channel,
    ):
        replay = Replay(channel, bad)
        for number, call in enumerate(RECORDED):
            answers, error = replay(call)
            where = f"call {number}: {call['method']}"
            assert error == codes.get(call.get("error", "")), where
            then = summary(call["method"], [base64.b64decode(each) for each in call["answers"]])
            assert summary(call["method"], answers) == then, where


@pytest.mark.parametrize(
    "method",
    [
        "CreateDatasetEntry",
        "DeleteEntry",
        "FetchChunks",
        "FindEntries",
        "GetDatasetManifestSchema",
        "GetDatasetSchema",
        "GetSegmentTableSchema",
        "QueryDataset",
        "QueryTasksOnCompletion",
        "ReadDatasetEntry",
        "RegisterWithDataset",
        "ScanDatasetManifest",
        "ScanSegmentTable",
        "UpdateEntry",
    ],
)
def test_the_client_made_each_call(method: str) -> None:
    assert method in {each["method"] for each in RECORDED}
