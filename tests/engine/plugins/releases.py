"""A server of releases on this machine, and archives as providers publish them."""

from __future__ import annotations

import datetime
import hashlib
import io
import ipaddress
import ssl
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from deployer.engine.plugins.machine import this_machine
from deployer.engine.plugins.package import Plugin, packaged_plugin

SCRIPT = b"#!/bin/sh\nexit 7\n"


def aws() -> Plugin:
    """The plug-in that the installed package `pulumi-aws` names."""
    found = packaged_plugin("aws")
    assert found is not None
    return found


def archive_name() -> str:
    return aws().archive(this_machine())


def checksums_name() -> str:
    return f"pulumi-aws_{aws().version}_checksums.txt"


Member = tuple[tarfile.TarInfo, bytes]


def file_member(name: str, content: bytes = b"", mode: int = 0o644) -> Member:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    return info, content


def other_member(name: str, kind: bytes, link: str = "") -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info, b""


def program(content: bytes = SCRIPT) -> Member:
    return file_member("pulumi-resource-aws", content, 0o755)


def archive(*members: Member) -> bytes:
    """A .tar.gz with these members."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return data.getvalue()


def checksums_of(data: bytes, name: str = "", algorithm: str = "sha1") -> bytes:
    """As `shasum ./*.tar.gz` of Pulumi's release workflow prints it."""
    return f"{hashlib.new(algorithm, data).hexdigest()}  ./{name or archive_name()}\n".encode()


@dataclass
class Releases:
    """What the server has by path, and the requests that it got: paths and `Range` headers."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    breaks_off_at: int | None = None  #: bytes of an archive after which the connection is closed, each time
    waits_at: int | None = None  #: bytes of an archive after which nothing comes until `resume` is set
    waiting: threading.Event = field(default_factory=threading.Event)
    resume: threading.Event = field(default_factory=threading.Event)

    def publish(self, data: bytes, checksums: bytes | None = None) -> None:
        """A release of `pulumi-resource-aws` for this machine."""
        self.files[f"/{archive_name()}"] = data
        self.files[f"/{checksums_name()}"] = checksums_of(data) if checksums is None else checksums

    @property
    def archive_requests(self) -> list[str]:
        """The `Range` headers of requests for archives, empty where there was none."""
        return [asked for path, asked in self.requests if path.endswith(".tar.gz")]


def make_certificate(file: Path) -> Path:
    """A key and a certificate for 127.0.0.1 that it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "releases")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return file


@contextmanager
def release_server(certificate: Path | None = None) -> Iterator[Releases]:
    """The server, by TLS where there is a certificate."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            path = self.path.removeprefix(releases.url)  # a proxy is asked for the whole address
            releases.requests.append((path, asked))
            if path in releases.redirects:
                self.send_response(302)
                self.send_header("Location", releases.redirects[path])
                self.end_headers()
                return
            data = releases.files.get(path)
            if data is None:
                self.send_error(404)
                return
            begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if asked and begin >= len(data):
                self.send_error(416)
                return
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(data) - begin))
            self.end_headers()
            self._send(data[begin:], releases if path.endswith(".tar.gz") else Releases(""))

        def _send(self, data: bytes, how: Releases) -> None:
            stop = min(len(data) if at is None else at for at in (how.breaks_off_at, how.waits_at))
            self.wfile.write(data[:stop])
            self.wfile.flush()
            if how.waits_at is not None:
                how.waiting.set()
                how.resume.wait(300)
                self.wfile.write(data[stop:])

        def log_message(self, format: str, *args: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):  # the client was killed
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if certificate is None else "https"
    releases = Releases(f"{scheme}://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield releases
    finally:
        releases.resume.set()
        server.shutdown()
        thread.join()
        server.server_close()
