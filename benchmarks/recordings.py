"""Datasets of recordings by Rerun's own client: this project's server beside Rerun's own, in one run.

    make rerun-client
    python -m benchmarks.recordings [--segments 10000] [--repeat 3]

Ratios are to the time of `rerun.server.Server` of the same wheel, which holds everything in memory. Each call is made
in turns, and the best of the repeats counts. Recordings are read from files of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import print_heading, print_table
from deployer.catalog import local
from deployer.state import create_store

PYTHON = Path(__file__).parents[1] / "build" / "rerun" / "bin" / "python"
PROGRAM = Path(__file__).with_name("recordings_client.py")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="deployer-bench-"))
    try:
        root = str(folder / "lake")
        create_store(root).close()
        with local(root) as url:
            command = [str(PYTHON), str(PROGRAM), url, str(folder), str(given.segments), str(given.repeat)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
    finally:
        shutil.rmtree(folder)
    found: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    print_heading(f"{given.segments:,} segments, best of {given.repeat}, load {os.getloadavg()[0]:.1f}")
    rows = [[each["name"], f"{each['ours']:.1f}", f"{each['theirs']:.1f}", f"{each['ratio']:.2f}"] for each in found]
    print_table(["call", "ours (ms)", "Rerun's (ms)", "×"], rows)


if __name__ == "__main__":
    main()
