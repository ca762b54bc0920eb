"""`deployer plugin`: what is installed from a server or a file, what is refused, and what a cut-off run leaves."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from deployer.engine.plugins.folder import partial_of
from deployer.engine.providers.plugin_search import find_plugin
from deployer.errors import NotFound
from tests.cli.conftest import Deployer
from tests.engine.plugins.releases import (
    SCRIPT,
    Member,
    Releases,
    archive,
    archive_name,
    aws,
    checksums_name,
    checksums_of,
    file_member,
    make_certificate,
    other_member,
    program,
    release_server,
)

DEPLOYER = [sys.executable, "-m", "deployer", "plugin", "install", "aws"]
X86, ARM = (b"\x7fELF\x02\x01" + bytes(12) + bytes([number, 0]) for number in (62, 183))
FOREIGN = ARM if os.uname().machine == "x86_64" else X86


def install(deployer: Deployer, releases: Releases, *more: str) -> tuple[int, str]:
    ran = deployer("plugin", "install", "aws", "--server", releases.url, *more)
    return ran.code, ran.out + ran.err


def left(home: Path) -> set[str]:
    """What is in the plug-in folder besides locks and digests."""
    return {each.name for each in home.iterdir() if each.suffix not in (".lock", ".sha256")}


def test_the_version_of_the_package_is_installed_where_the_engine_finds_it(
    home: Path, releases: Releases, deployer: Deployer, tmp_path: Path
) -> None:
    plugin = aws()
    with pytest.raises(NotFound, match=f"run `deployer plugin install aws {plugin.version}`"):
        find_plugin("aws", {}, tmp_path / "project", plugin.version)
    releases.publish(archive(file_member("LICENSE", b"free"), program()))
    code, said = install(deployer, releases)
    folder = home / f"resource-aws-v{plugin.version}"
    assert (code, said) == (0, f"installed pulumi-resource-aws {plugin.version} in {folder}\n")
    assert find_plugin("aws", {}, tmp_path / "project", plugin.version) == folder / "pulumi-resource-aws"
    assert subprocess.run([folder / "pulumi-resource-aws"], check=False).returncode == 7
    assert {each.name: each.stat().st_mode & 0o777 for each in folder.iterdir()} == {
        "LICENSE": 0o600,
        "pulumi-resource-aws": 0o700,
    }
    assert left(home) == {folder.name}
    again = deployer("plugin", "install", "aws", "--server", releases.url, "--json").json
    sha256 = hashlib.sha256(releases.files[f"/{archive_name()}"]).hexdigest()
    assert (again["installed"], again["sha256"], len(releases.archive_requests)) == (False, sha256, 1)
    assert [each["version"] for each in deployer("plugin", "list", "--json").json["plugins"]] == [plugin.version]
    assert deployer("plugin", "remove", "aws", plugin.version).code == 0
    assert left(home) == set()
    assert deployer("plugin", "remove", "aws", plugin.version).code == 1
    releases.publish(archive(program(b"#!/bin/sh\nexit 8\n")))
    code, said = install(deployer, releases)
    assert code == 1 and "of its first installation here says " + sha256 in said


def _member(*members: Member) -> Callable[[Releases], None]:
    return lambda releases: releases.publish(archive(*members))


def _huge() -> bytes:
    """A header of 5 TB, and nothing behind it."""
    info = tarfile.TarInfo("pulumi-resource-aws")
    info.size, info.mode = 5 * 10**12, 0o755
    return archive_of_header(info)


def archive_of_header(info: tarfile.TarInfo) -> bytes:
    import gzip

    return gzip.compress(info.tobuf(tarfile.GNU_FORMAT))


def _without_archive(releases: Releases) -> None:
    releases.publish(archive(program()))
    del releases.files[f"/{archive_name()}"]


def _without_checksums(releases: Releases) -> None:
    releases.publish(archive(program()))
    del releases.files[f"/{checksums_name()}"]


def _breaks_off(releases: Releases) -> None:
    releases.publish(archive(program(os.urandom(10_000))))
    releases.breaks_off_at = 0


def _half_published(releases: Releases) -> None:
    whole = archive(program(os.urandom(10_000)))
    releases.publish(whole[:5000], checksums_of(whole[:5000]))


BAD: dict[str, tuple[Callable[[Releases], None], str]] = {
    "another checksum": (
        lambda releases: releases.publish(archive(program()), checksums_of(b"another")),
        "the archive is not the one that was published: its SHA1 is",
    ),
    "another checksum, of SHA-256": (
        lambda releases: releases.publish(archive(program()), checksums_of(b"another", algorithm="sha256")),
        "the archive is not the one that was published: its SHA256 is",
    ),
    "no digest": (
        lambda releases: releases.publish(archive(program()), f"none  {archive_name()}\n".encode()),
        "it has neither SHA-256 nor SHA-1",
    ),
    "broken off": (_breaks_off, "the answer broke off before its end"),
    "half an archive": (_half_published, "it is not a whole .tar.gz archive"),
    "no such version": (lambda releases: None, "is not published there"),
    "not for this machine": (
        lambda releases: releases.publish(archive(program()), checksums_of(b"", "pulumi-resource-aws-v1-plan9.tar.gz")),
        f"the release has no {archive_name()}",
    ),
    "no archive": (_without_archive, "the server answered 404"),
    "no checksums": (_without_checksums, "give the archive's digest by --sha256"),
    "a name that leads out": (_member(file_member("../out", b"x"), program()), "'../out' leads out of the folder"),
    "an absolute name": (_member(file_member("/etc/out"), program()), "'/etc/out' leads out of the folder"),
    "a link": (_member(other_member("l", tarfile.SYMTYPE, "/etc"), program()), "its member 'l' is a link"),
    "a hard link": (_member(program(), other_member("l", tarfile.LNKTYPE, "x")), "its member 'l' is a link"),
    "a pipe": (_member(other_member("p", tarfile.FIFOTYPE), program()), "its member 'p' is a pipe"),
    "a device": (_member(other_member("d", tarfile.CHRTYPE), program()), "'d' is neither a file nor a folder"),
    "a name twice": (_member(program(), program()), "'pulumi-resource-aws' twice"),
    "a huge size": (lambda releases: releases.publish(_huge()), "more than 16 MiB unpacked"),
    "a bomb": (_member(file_member("zeros", bytes(40 * 2**20)), program()), "more than 16 MiB unpacked"),
    "another machine's": (_member(program(FOREIGN)), "and this machine is linux-"),
    "no program": (_member(file_member("README.md")), "it has no pulumi-resource-aws"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_trusted_is_refused_and_leaves_nothing(
    name: str, home: Path, releases: Releases, deployer: Deployer, tmp_path: Path
) -> None:
    publish, words = BAD[name]
    publish(releases)
    code, said = install(deployer, releases)
    assert code == 1 and words in said, said
    assert left(home) <= {f".{archive_name()}.part"}
    assert not any(home.glob("*.sha256")) and [each.name for each in tmp_path.iterdir()] == ["pulumi"]
    releases.breaks_off_at = None
    releases.publish(archive(program()))
    assert install(deployer, releases)[0] == 0
    assert left(home) == {aws().folder}


def test_redirects_are_followed_to_other_hosts_and_never_to_plain_ones(
    home: Path, releases: Releases, deployer: Deployer
) -> None:
    releases.publish(archive(program()))
    releases.files["/elsewhere"] = releases.files[f"/{archive_name()}"]
    releases.redirects[f"/{archive_name()}"] = "http://192.0.2.1/elsewhere"
    code, said = install(deployer, releases)
    assert code == 3 and "it leads to http://192.0.2.1; nothing is downloaded from there" in said
    releases.redirects[f"/{archive_name()}"] = f"/{archive_name()}"
    code, said = install(deployer, releases)
    assert code == 3 and "more than 5 redirects" in said
    releases.redirects[f"/{archive_name()}"] = releases.url.replace("127.0.0.1", "localhost") + "/elsewhere"
    assert install(deployer, releases)[0] == 0


ADDRESSES = {
    "http://192.0.2.1/plugins": (3, "its address is not encrypted"),
    "https://me:hush@192.0.2.1": (3, "no credential is sent"),
    "ftp://192.0.2.1": (1, "is not the address of a server"),
    "https://": (1, "names no server"),
    "gitlab://gitlab.com/7": (3, "by --file"),
}


@pytest.mark.parametrize("server", ADDRESSES)
def test_addresses_that_are_not_used(server: str, home: Path, deployer: Deployer) -> None:
    ran = deployer("plugin", "install", "aws", "--server", server)
    assert ran.code == ADDRESSES[server][0] and ADDRESSES[server][1] in ran.err, ran.err
    assert "hush" not in ran.err and not home.exists()


def test_certificates_are_those_that_the_environment_names(
    home: Path, deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path / "server.pem")
    with release_server(certificate) as releases:
        releases.publish(archive(program()))
        code, said = install(deployer, releases)
        assert code == 1 and "its certificate is not trusted: self-signed certificate" in said
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert install(deployer, releases)[0] == 0
        releases.redirects["/pulumi-aws_9.9.9_checksums.txt"] = "http://127.0.0.1:1/x"
        ran = deployer("plugin", "install", "aws", "9.9.9", "--server", releases.url)
        assert ran.code == 3 and "it leads to http://127.0.0.1:1; nothing is downloaded" in ran.err


def test_a_plain_server_by_a_proxy_needs_the_digest(
    home: Path, releases: Releases, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = archive(program())
    mirror = "http://plugins.invalid"
    releases.files[f"{mirror}/{archive_name()}"] = data
    monkeypatch.setenv("http_proxy", releases.url)
    sha256 = hashlib.sha256(data).hexdigest()
    refused = deployer("plugin", "install", "aws", "--server", mirror, "--sha256", "0" * 64)
    assert refused.code == 1 and "--sha256 says 000" in refused.err
    assert deployer("plugin", "install", "aws", "--server", mirror, "--sha256", "abc").code == 1
    assert deployer("plugin", "install", "aws", "--server", mirror, "--sha256", sha256).code == 0
    assert {path for path, _ in releases.requests} == {f"{mirror}/{archive_name()}"}


def test_without_a_network_the_message_leads_to_an_installation(home: Path, deployer: Deployer, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        ran = deployer("plugin", "install", "aws", "--server", url)
    file, checksums = home / archive_name(), home / checksums_name()
    assert ran.code == 1 and "Connection refused" in ran.err
    assert f"{url}/{file.name} and {url}/{checksums.name}, copy both files into {home}" in ran.err
    command = f"deployer plugin install aws {aws().version} --file {file}"
    assert f"`{command}`" in ran.err
    file.write_bytes(archive(program()))
    ran = deployer(*command.split()[1:])
    assert ran.code == 1 and "the digest of this archive is unknown" in ran.err
    checksums.write_bytes(checksums_of(b"another"))
    ran = deployer(*command.split()[1:])
    assert ran.code == 1 and f"and {checksums} says" in ran.err
    checksums.write_bytes(checksums_of(file.read_bytes()))
    assert deployer(*command.split()[1:]).code == 0
    assert (home / aws().folder / "pulumi-resource-aws").read_bytes() == SCRIPT


def test_a_file_of_another_release_is_refused(home: Path, deployer: Deployer, tmp_path: Path) -> None:
    file = tmp_path / "pulumi-resource-aws-v7.0.0-linux-amd64.tar.gz"
    file.write_bytes(archive(program()))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    ran = deployer("plugin", "install", "aws", "--file", str(file), "--sha256", digest)
    assert ran.code == 1 and "it is not the archive of pulumi-resource-aws" in ran.err
    missing = deployer("plugin", "install", "aws", "--file", str(tmp_path / "none.tar.gz"), "--sha256", digest)
    assert missing.code == 1 and "No such file" in missing.err
    renamed = file.rename(tmp_path / "aws.tgz")
    assert deployer("plugin", "install", "aws", "--file", str(renamed), "--sha256", digest).code == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_an_installation_that_is_cut_off_is_resumed(
    number: signal.Signals, home: Path, releases: Releases, deployer: Deployer
) -> None:
    data = archive(program(os.urandom(900_000)))
    releases.publish(data)
    releases.waits_at = 600_000
    process = subprocess.Popen([*DEPLOYER, "--server", releases.url], stderr=subprocess.PIPE, text=True)
    with process:
        assert releases.waiting.wait(300)
        part = home / f".{archive_name()}.part"
        while not part.exists() or part.stat().st_size < 500_000:
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(300) == (-number if number == signal.SIGKILL else 130)
        assert process.stderr is not None and "Traceback" not in process.stderr.read()
    have = part.stat().st_size
    releases.resume.set()
    releases.waits_at = None
    assert install(deployer, releases)[0] == 0
    assert releases.archive_requests == ["", f"bytes={have}-"]
    assert left(home) == {aws().folder}


def test_what_an_older_download_left_is_replaced(home: Path, releases: Releases, deployer: Deployer) -> None:
    home.mkdir(parents=True)
    part = home / f".{archive_name()}.part"
    releases.publish(archive(program()))
    for leftover in (b"of another server", bytes(10_000)):
        part.write_bytes(leftover)
        assert install(deployer, releases)[0] == 0
        assert deployer("plugin", "remove", "aws", aws().version).code == 0


def test_an_incomplete_plugin_is_not_used_and_is_replaced(
    home: Path, releases: Releases, deployer: Deployer, tmp_path: Path
) -> None:
    releases.publish(archive(program()))
    assert install(deployer, releases)[0] == 0
    folder = home / aws().folder
    partial_of(folder).touch()  # as a killed `pulumi` leaves it
    with pytest.raises(NotFound):
        find_plugin("aws", {}, tmp_path / "project", aws().version)
    assert deployer("plugin", "list", "--json").json == {"plugins": []}
    assert install(deployer, releases)[0] == 0
    assert left(home) == {folder.name}


def test_two_installations_at_once_download_once(home: Path, releases: Releases) -> None:
    releases.publish(archive(program(os.urandom(10_000))))
    releases.waits_at = 100
    command = [*DEPLOYER, "--server", releases.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert releases.waiting.wait(300)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as second:
            assert second.stderr is not None
            assert "waiting for it" in second.stderr.readline()
            releases.resume.set()
            said = [each.communicate(timeout=300)[0] for each in (first, second)]
    assert (first.returncode, second.returncode, len(releases.archive_requests)) == (0, 0, 1)
    assert said[0].startswith("installed ") and "is installed already" in said[1]
    assert left(home) == {aws().folder}
