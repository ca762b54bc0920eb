"""Runs commands as users do, each in its own process, and measures seconds, CPU seconds and peak memory.

A script that measures memory must not import large modules, because a child's peak memory in the kernel's counts begins
with the memory of its parent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DEPLOYER = str(Path(sys.executable).with_name("deployer"))
_MIB_A_UNIT = 1 / 2**20 if sys.platform == "darwin" else 1 / 2**10


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one process: its wall-clock and CPU seconds, its peak MiB (the largest of the process and its
    children), and its output."""

    seconds: float
    cpu: float
    peak: float
    load: float  #: the machine's one-minute load average when it was started
    output: str


def run(*command: str, cwd: Path) -> Ran:
    """Runs the command to its end. A command that fails ends the benchmark with its last output."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryFile() as output:
        begun = time.perf_counter()
        child = subprocess.Popen(command, cwd=cwd, env=_environment(), stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}:\n{text[-2000:]}")
    return Ran(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _MIB_A_UNIT, load, text)


def deployer(*arguments: str, cwd: Path) -> Ran:
    """Runs the `deployer` of this environment."""
    return run(DEPLOYER, *arguments, cwd=cwd)


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of all of its descendants, including ended ones (on Linux)."""
    parents, seconds = dict[int, int](), dict[int, float]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        number = int(path.parent.name)
        parents[number], seconds[number] = int(fields[1]), sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def is_below(number: int) -> bool:
        return number == os.getpid() or (number in parents and is_below(parents[number]))

    return sum(each for number, each in seconds.items() if is_below(number))


def seconds_of(work: Callable[[], object]) -> tuple[float, float]:
    """Returns the seconds of `work`, and the CPU seconds of this process and its descendants."""
    begun, before = time.perf_counter(), cpu_seconds()
    work()
    return time.perf_counter() - begun, cpu_seconds() - before


def _environment() -> dict[str, str]:
    """Returns this environment without variables that change a run: settings of the tools, and the one that keeps
    Python from storing bytecode."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TF_", "PULUMI_", "DEPLOYER_")) and name != "PYTHONDONTWRITEBYTECODE"
    }
    return {**kept, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
