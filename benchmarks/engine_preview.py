"""Measures the embedded engine with 1,000 resources of 20 fields: an up, then a preview that finds no changes.

    python benchmarks/engine_preview.py [--resources 1000] [--fields 20] [--runs 3] [--profile]

Each figure is the time of its own process, including the interpreter and imports; the best run counts. The provider
runs in the process and keeps its resources in memory, so that the figures are those of the engine and the SDK.
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
from collections.abc import Collection
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
    """Runs `step` in the child process, and prints the seconds of the engine's part."""
    from deployer.engine import StackRef, choose_engine, read_project
    from deployer.engine.providers.inprocess import InProcess
    from deployer.provider.provider import LakeProvider
    from deployer.provider.resources.kind import CheckFailure, Difference, Properties, Resource
    from deployer.provider.resources.run_context import Stores

    class Things(LakeProvider):
        def check(
            self, urn: str, news: Properties, secret: Collection[str] = ()
        ) -> tuple[Properties, tuple[CheckFailure, ...]]:
            return news, ()

        def diff(self, urn: str, olds: Properties, news: Properties) -> Difference:
            return Difference({name: "update" for name, value in news.items() if olds.get(name) != value})

        def create(self, urn: str, news: Properties, *, preview: bool = False) -> Resource:
            return Resource("" if preview else urn.rpartition("::")[2], news, news)

        def read(self, urn: str, id: str, inputs: Properties) -> Resource:
            return Resource(id, inputs, inputs)

    project = read_project(folder)
    engine = choose_engine(project, "embedded", {"bench": InProcess(Things(Stores(folder)))})
    started = time.perf_counter()
    if step == "up":
        count = sum(engine.up(StackRef(project, "dev")).summary.values())
    else:
        count = len(engine.preview(StackRef(project, "dev")).operations)
    print(json.dumps({"seconds": time.perf_counter() - started, "resources": count}))


def measure(step: str, folder: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """Returns the seconds of the process and the seconds of the engine, of one run."""
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
