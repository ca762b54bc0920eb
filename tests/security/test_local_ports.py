"""Ports on loopback: they answer processes of the same user, and nobody else on the machine."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

from deployer.engine.program.service import EngineService, GrpcServices
from deployer.engine.providers.process import PluginProcess
from deployer.engine.providers.remote import RemoteProvider
from deployer.platform.system import connections
from deployer.provider.callers import TOKEN_KEY, TOKEN_VARIABLE, Callers, user_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLUGIN = Path(sys.executable).parent / "pulumi-resource-lake"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the system does not say whose a connection is")

#: A call as another user: prints the status and its words.
STRANGER = """
import os, sys, grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc
from google.protobuf import struct_pb2
os.setgroups([]), os.setgid(65534), os.setuid(65534)  # this Python's files may be root's alone
kind, port, root = sys.argv[1:]
channel = grpc.insecure_channel(f"127.0.0.1:{port}")
provider, engine = provider_pb2_grpc.ResourceProviderStub(channel), engine_pb2_grpc.EngineStub(channel)
properties = struct_pb2.Struct()
properties.update({"name": "mine", "root": root})
calls = {
    "create": lambda: provider.Create(provider_pb2.CreateRequest(
        urn="urn:pulumi:dev::p::lake:index:Instance::mine", properties=properties), timeout=30),
    "info": lambda: provider.GetPluginInfo(provider_pb2.google_dot_protobuf_dot_empty__pb2.Empty(), timeout=30),
    "log": lambda: engine.Log(engine_pb2.LogRequest(severity=engine_pb2.ERROR, message="forged"), timeout=30),
}
try:
    calls[kind]()
    print("done")
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""


def as_nobody(kind: str, port: int, root: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", STRANGER, kind, str(port), str(root)],
        cwd="/",
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


@contextmanager
def started(monkeypatch: pytest.MonkeyPatch, folder: Path, *, token: bool) -> Iterator[PluginProcess]:
    """The plugin as this engine starts it, or as Pulumi's CLI does: without a secret."""
    if not token:
        popen: Any = subprocess.Popen

        def without_token(*arguments: Any, env: dict[str, str], **more: Any) -> Any:
            return popen(*arguments, env={key: env[key] for key in env if key != TOKEN_VARIABLE}, **more)

        monkeypatch.setattr("deployer.engine.providers.process.subprocess.Popen", without_token)
    process = PluginProcess(PLUGIN, "127.0.0.1:1", folder, lambda severity, line: None)
    monkeypatch.undo()
    try:
        yield process
    finally:
        process.stop()


@as_root
@on_linux
def test_the_provider_answers_no_other_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F16: any user of the machine read specs, and had lakes made as the user who ran deployer."""
    with started(monkeypatch, tmp_path, token=False) as process:
        for kind in ("create", "info"):
            said = as_nobody(kind, process.port, tmp_path / "forged")
            assert said.startswith("PERMISSION_DENIED the connection belongs to the user with the number 65534")
        assert not (tmp_path / "forged").exists()
        with grpc.insecure_channel(f"127.0.0.1:{process.port}") as channel:
            assert provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(Empty(), timeout=30).version


def test_a_plugin_that_got_a_secret_wants_it_with_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F16: where both ends are deployer's, a port alone is worth nothing, on any system."""
    with started(monkeypatch, tmp_path, token=True) as process:
        assert process.token not in " ".join(process._process.args)  # type: ignore[arg-type]
        with grpc.insecure_channel(f"127.0.0.1:{process.port}") as channel:
            stub = provider_pb2_grpc.ResourceProviderStub(channel)
            for metadata in ((), ((TOKEN_KEY, ""),), ((TOKEN_KEY, "x" * 43),)):
                with pytest.raises(grpc.RpcError) as refused:
                    stub.GetPluginInfo(Empty(), timeout=30, metadata=metadata)
                assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
            with pytest.raises(grpc.RpcError) as refused:
                stub.Check(provider_pb2.CheckRequest(urn="x"), timeout=30)
            assert "the call has no secret" in refused.value.details()
        provider = RemoteProvider(process, tmp_path)
        assert provider.configure("urn:pulumi:dev::p::pulumi:providers:lake::p", "1", "lake", {}).supports_preview


@as_root
@on_linux
def test_the_engine_answers_no_other_user(tmp_path: Path) -> None:
    """F16: any user wrote into the log of a run, and registered resources with its monitor."""
    events: list[Any] = []
    with GrpcServices(EngineService(events.append)) as served:
        address = served.address()
        said = as_nobody("log", int(address.rpartition(":")[2]), tmp_path)
        assert said.startswith("PERMISSION_DENIED")
        assert not events
        with grpc.insecure_channel(address) as channel:
            request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message="mine")
            engine_pb2_grpc.EngineStub(channel).Log(request, timeout=30)
    assert [event.message for event in events] == ["mine"]


@on_linux
@pytest.mark.parametrize("way", ["netlink", "tables"])
@pytest.mark.parametrize("family", ["IPv4", "IPv4 by another loopback address", "IPv4 in IPv6"])
def test_whose_a_connection_is(way: str, family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F16: both ways of asking the kernel say the same, also of a socket of IPv6 that reaches a port of IPv4."""
    if way == "tables":
        monkeypatch.setattr(connections, "_asked_of_kernel", lambda *_: None)
    else:
        monkeypatch.setattr(connections, "_found_in_tables", lambda *_: None)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        client = socket.socket(socket.AF_INET6 if family.endswith("6") else socket.AF_INET)
        if "another" in family:
            client.bind(("127.0.0.9", 0))
        client.connect(("::ffff:127.0.0.1" if family.endswith("6") else "127.0.0.1", port))
        accepted, (host, number) = server.accept()
        with accepted:
            peer = f"ipv4:{host}:{number}"
            assert user_of(peer, port) == os.geteuid()
            assert user_of(peer, port + 1) is None
            client.close()  # its socket is the kernel's now, which says user 0
            assert user_of(peer, port) is None


@on_linux
@pytest.mark.parametrize(
    "peer", ["ipv6:[::1]:40000", "unix:/tmp/x", "ipv4:127.0.0.1:x", "ipv4:somewhere:1", "", "ipv4:127.0.0.1:1"]
)
def test_a_connection_of_which_nothing_is_known_is_refused(peer: str) -> None:
    """F16: who is unknown is not let in."""

    class Context:
        def peer(self) -> str:
            return peer

    found = Callers()
    found.port = 1
    assert found.refusal(Context()) == (
        "the connection belongs to an unknown user, and only the user who started this server may call it"
    )


def listening(process: int) -> list[int]:
    """The ports that a process listens on."""
    links = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # the process closed it meanwhile
            links.append(str(link.readlink()))
    sockets = {link[8:-1] for link in links if link.startswith("socket:")}
    rows = [row for table in connections._TABLES for row in connections._rows(table)]
    return [int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in sockets]


@pytest.mark.spark
@on_linux
def test_the_ports_of_spark_want_a_secret(spark: SparkSession) -> None:
    """F34: other users reached Spark's ports for calls and for blocks. The gateway's port has wanted one before."""
    gateway = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    started_at = spark.sparkContext._gateway.gateway_parameters.port  # type: ignore[union-attr]
    body = b"anything"
    request = struct.pack(">QBQI", 8 + 1 + 8 + 4 + len(body), 3, 1, len(body)) + body  # Spark's RpcRequest
    with socket.create_connection(("127.0.0.1", started_at), timeout=30) as connection:
        connection.sendall(b"r\nu\njava.lang.Runtime\ne\n")
        assert b"Authentication error" in connection.recv(4096)
    said = {}
    for port in set(listening(gateway)) - {started_at}:
        # PySpark opens ports for single results too, which close on whoever does not know their secrets
        with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            if answer := connection.recv(4096):
                said[port] = answer
    assert len(said) == 2 and int(spark.conf.get("spark.driver.port") or 0) in said
    assert all(b"crypto.AuthRpcHandler" in answer for answer in said.values()), said
    options = Path(f"/proc/{gateway}/cmdline").read_bytes() + Path(f"/proc/{gateway}/environ").read_bytes()
    assert b"spark.authenticate=true" in options
    assert b"spark.authenticate.secret" not in options and b"_SPARK_AUTH_SECRET" not in options
