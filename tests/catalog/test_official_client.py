"""The official client of rerun-sdk against the server: `make rerun-client` makes its environment, `make rerun-clients`
those of other releases.

The client needs a release of datafusion that is older than this project's, so it has an environment of its own, and
runs as a program. The tests are skipped where that is missing; the gate makes the calls that the client made when they
were recorded (`UPDATE_GOLDEN=1` records them again).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from deployer.catalog.serving.server import served
from deployer.state import open_store
from tests.catalog.clients import Client
from tests.catalog.official_program import PROGRAM
from tests.catalog.recorded_calls import Names, RecordedCall, recorded, repeat
from tests.tables.lakes import Lake

BUILD = Path(__file__).parents[2] / "build"
PYTHON = BUILD / "rerun" / "bin" / "python"
LATER = {version: BUILD / f"rerun-{version}" / "bin" / "python" for version in ("0.29", "0.30", "0.31")}
REFUSED = BUILD / "rerun-0.32" / "bin" / "python"
FILES = Path(__file__).parent / "files"
CALLS, OUTCOMES = FILES / "table_calls.json", FILES / "table_outcomes.json"


@contextmanager
def called(lake: Lake, python: Path, program: str = PROGRAM) -> Iterator[dict[str, Any]]:
    """What the program of a client prints, with a server of the lake."""
    with closing(open_store(lake.root)) as store, served(store, lake.root) as url:
        done = subprocess.run(
            [python, "-c", program, url, str(lake.folder)], capture_output=True, check=False, text=True
        )
    assert done.returncode == 0, done.stderr
    yield json.loads(done.stdout.replace(str(lake.folder), "/FOLDER"))


@pytest.mark.full
@pytest.mark.skipif(not PYTHON.exists(), reason="make rerun-client makes the environment of the client")
def test_each_documented_call_and_deprecated_name(lake: Lake, update_golden: bool) -> None:
    with recorded(str(lake.folder)) as calls, called(lake, PYTHON) as outcomes:
        pass
    if update_golden:
        CALLS.write_text(json.dumps([each.as_json() for each in calls], indent=1) + "\n")
        OUTCOMES.write_text(json.dumps(outcomes, indent=1) + "\n")
    assert outcomes == json.loads(OUTCOMES.read_text())
    expected = [RecordedCall(**each) for each in json.loads(CALLS.read_text())]
    assert sorted(each.method for each in calls) == sorted(each.method for each in expected)


@pytest.mark.full
@pytest.mark.parametrize("version", LATER)
def test_clients_of_later_releases_do_the_same_but_for_what_is_listed(
    version: str, lake: Lake, update_golden: bool
) -> None:
    if not LATER[version].exists():
        pytest.skip("make rerun-clients makes the environments of later clients")
    with called(lake, LATER[version]) as outcomes:
        pass
    file, known = FILES / f"table_outcomes-{version}.json", json.loads(OUTCOMES.read_text())
    differences = {name: each for name, each in outcomes.items() if each != known[name]}
    if update_golden:
        file.write_text(json.dumps(differences, indent=1) + "\n")
    assert differences == json.loads(file.read_text())


@pytest.mark.full
@pytest.mark.skipif(not REFUSED.exists(), reason="make rerun-clients makes the environment of a client that is refused")
def test_a_client_of_another_release_is_told_which_are_served(lake: Lake) -> None:
    program = """
import json, sys
from rerun.catalog import CatalogClient
try:
    print(json.dumps({"names": CatalogClient(sys.argv[1]).table_names()}))
except Exception as failure:
    print(json.dumps({"error": str(failure)}))
"""
    with called(lake, REFUSED, program) as outcome:
        assert "this server answers clients of rerun-sdk 0.28 to 0.31" in outcome["error"]


def test_recorded_calls_of_the_client_have_the_outcomes_that_it_saw(client: Client, lake: Lake) -> None:
    names = Names(str(lake.folder))
    codes = {"NotFound": "NOT_FOUND", "NameTaken": "ALREADY_EXISTS", "Refused": "PERMISSION_DENIED"}
    codes |= {"InvalidInput": "INVALID_ARGUMENT", "Unsupported": "UNIMPLEMENTED"}
    for place, call in enumerate(json.loads(CALLS.read_text())):
        expected = call["outcome"]
        found = repeat(call, client, names)
        assert found == (codes[expected] if isinstance(expected, str) else expected), (place, call["method"])
