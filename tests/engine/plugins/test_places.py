"""Where plug-ins are published and found: as Pulumi's engine has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.engine.plugins.folder import usable_plugin
from deployer.engine.plugins.machine import Machine
from deployer.engine.plugins.package import Plugin, wanted_plugin
from deployer.engine.plugins.sources import sources_of
from deployer.engine.providers.plugin_search import find_plugin
from deployer.errors import InvalidInput, NotFound

_LINUX = Machine("linux", "amd64")
_FILE = "pulumi-resource-x-v1.2.3-linux-amd64.tar.gz"
_ON_GITHUB = "https://github.com/{}/releases/download/v1.2.3/" + _FILE

SOURCES = {
    "": [_ON_GITHUB.format("pulumi/pulumi-x"), f"https://get.pulumi.com/releases/plugins/{_FILE}"],
    "github://api.github.com/acme": [_ON_GITHUB.format("acme/pulumi-x")],
    "github://api.github.com/acme/things": [_ON_GITHUB.format("acme/things")],
    "https://acme.example/${NAME}/v${VERSION}/${OS}_${ARCH}/": [f"https://acme.example/x/v1.2.3/linux_amd64/{_FILE}"],
}


@pytest.mark.parametrize("server", SOURCES)
def test_sources_are_those_of_pulumis_engine(server: str) -> None:
    plugin = Plugin("x", "1.2.3", server)
    assert [each.archive for each in sources_of(plugin, _LINUX)] == SOURCES[server]


def test_checksums_are_beside_the_archive() -> None:
    first, second = sources_of(Plugin("x", "1.2.3"), _LINUX)
    assert first.checksums == _ON_GITHUB.format("pulumi/pulumi-x").replace(_FILE, "pulumi-x_1.2.3_checksums.txt")
    assert second.checksums == "https://get.pulumi.com/releases/plugins/pulumi-x_1.2.3_checksums.txt"
    [named] = sources_of(Plugin("x", "1.2.3", "github://api.github.com/acme/things"), _LINUX)
    assert named.checksums.endswith("/things_1.2.3_checksums.txt")


def test_the_program_gets_its_version_or_the_newest_of_the_same_major_version(home: Path) -> None:
    for version in ("6.9.0", "7.9.0", "7.10.0", "7.11.0-rc.1", "8.0.0"):
        folder = home / f"resource-x-v{version}"
        folder.mkdir(parents=True)
        (folder / "pulumi-resource-x").write_text("#!/bin/sh\n")
        (folder / "pulumi-resource-x").chmod(0o700)
    (home / "resource-x-v7.99.0.tmp12").mkdir()
    found = {
        wanted: plugin.plugin.version
        for wanted in ("7.9.0", "7.1.0", "v7.10.0", "", "6.0.0")
        if (plugin := usable_plugin("x", wanted)) is not None
    }
    assert found == {"7.9.0": "7.9.0", "7.1.0": "7.11.0-rc.1", "v7.10.0": "7.10.0", "": "8.0.0", "6.0.0": "6.9.0"}
    assert usable_plugin("x", "5.0.0") is None and usable_plugin("y", "") is None


def test_a_plugin_folder_inside_of_the_checkout_is_not_searched(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "resource-x-v1.0.0"
    folder.mkdir(parents=True)
    (folder / "pulumi-resource-x").write_text("#!/bin/sh\n")
    (folder / "pulumi-resource-x").chmod(0o700)
    assert find_plugin("x", {}, tmp_path / "project") == folder / "pulumi-resource-x"
    (tmp_path / ".git").mkdir()
    with pytest.raises(NotFound, match="is inside of the project, so it is not searched"):
        find_plugin("x", {}, tmp_path / "project")


def test_a_version_of_the_state_is_in_no_command_unless_it_is_one(home: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="run `deployer plugin install x`,"):
        find_plugin("x", {}, tmp_path, "1.0.0; rm -rf ~")


@pytest.mark.parametrize(("name", "version"), [("../x", ""), ("aws", "7"), ("aws", "../7.0.0"), ("nobodys", "")])
def test_names_and_versions_are_checked(name: str, version: str) -> None:
    with pytest.raises(InvalidInput):
        wanted_plugin(name, version)
