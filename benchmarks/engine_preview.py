"""How long the embedded engine takes for 1,000 resources of 20 fields: up, then a preview that finds nothing to do.

    python benchmarks/engine_preview.py [--resources 1000] [--fields 20] [--runs 3] [--profile]

Each figure is a process of its own, interpreter and imports included; the best of the runs counts. The provider is
called in the process and keeps its resources in memory, so that the figures are the engine's and the SDK's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

PROGRAM = """
import os
import pulumi

class Thing(pulumi.CustomResource):
    pass

fields = [f"field{index}" for index in range(int(os.environ["BENCH_FIELDS"]))]
for number in range(int(os.environ["BENCH_RESOURCES"])):
    Thing("bench:index:Thing", f"thing{number}", {name: f"{name} of {number}" for name in fields})
"""


def work(step: str, folder: Path) -> None:
    """One process: runs `step` and prints how long the engine's part took."""
    from pulumi.provider.experimental import provider as sdk

    from deployer.engine import StackRef, choose_engine, read_project

    class Things(sdk.Provider):
        async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
            old, new = request.old_state, request.new_inputs
            names = [name for name, value in new.items() if name not in old or old[name].value != value.value]
            return sdk.DiffResponse(changes=bool(names), diffs=names)

        async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
            return sdk.CreateResponse(request.name, request.properties)

    project = read_project(folder)
    engine = choose_engine(project, "embedded", {"bench": Things()})
    started = time.perf_counter()
    if step == "up":
        count = sum(engine.up(StackRef(project, "dev")).summary.values())
    else:
        count = len(engine.preview(StackRef(project, "dev")).operations)
    print(json.dumps({"seconds": time.perf_counter() - started, "resources": count}))


def measure(step: str, folder: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """`(seconds of the process, seconds of the engine)` of one run."""
    environment = {
        **os.environ,
        "BENCH_RESOURCES": str(arguments.resources),
        "BENCH_FIELDS": str(arguments.fields),
    }
    profile = ["-m", "cProfile", "-s", "tottime"] if arguments.profile else []
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *profile, __file__, "--step", step, "--folder", str(folder)],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - started
    if arguments.profile:
        print("\n".join(done.stdout.splitlines()[:60]))
    answer = json.loads(done.stdout.splitlines()[0])
    assert answer["resources"] == arguments.resources + 1, answer
    return seconds, answer["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--resources", type=int, default=1000)
    parser.add_argument("--fields", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--step", choices=["up", "preview"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        work(arguments.step, arguments.folder)
        return
    best: dict[str, tuple[float, float]] = {}
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "Pulumi.yaml").write_text("name: bench\nruntime: python\nbackend: {url: 'file://.'}\n")
            (folder / "__main__.py").write_text(textwrap.dedent(PROGRAM))
            for step, label in (
                ("up", "up, all created"),
                ("preview", "preview, nothing to do"),
                ("up", "up, no change"),
            ):
                found = measure(step, folder, arguments)
                best[label] = min(found, best.get(label, found))
    print(f"{arguments.resources} resources of {arguments.fields} fields, best of {arguments.runs}:")
    for label, (process, engine) in best.items():
        print(f"  {label:<24} {process:6.2f} s the process, {engine:6.2f} s the engine")


if __name__ == "__main__":
    main()
