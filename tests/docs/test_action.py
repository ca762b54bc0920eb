"""The composite action: its script previews, keeps a plan and applies it, and its inputs are those of the script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import forks
from tests.projects import INSTANCE, REPOSITORY, make_project, table

ACTION = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
SCRIPT = REPOSITORY / "action" / "run"
[STEP] = ACTION["runs"]["steps"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")})


def run(project: Path, **inputs: str) -> tuple[int, str, dict[str, str], str]:
    """Runs the script as GitHub does; its exit code, what it printed, its outputs, and its summary."""
    runner = project.parent / "runner"
    runner.mkdir(exist_ok=True)
    given = {name: each["default"] for name, each in ACTION["inputs"].items()} | {
        "project": str(project),
        "stack": "dev",
    }
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    variables = {name: given[value.split("inputs.")[1].split()[0]] for name, value in STEP["env"].items()}
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(runner),
        "LANG": "C.UTF-8",
        "RUNNER_TEMP": str(runner),
        "GITHUB_OUTPUT": str(runner / "output"),
        "GITHUB_STEP_SUMMARY": str(runner / "summary"),
    }
    for name in ("output", "summary"):
        (runner / name).write_text("")
    ended = subprocess.run(
        [SCRIPT], env=environment | variables, cwd=runner, capture_output=True, text=True, check=False
    )
    outputs = dict(line.split("=", 1) for line in (runner / "output").read_text().splitlines())
    return ended.returncode, ended.stdout + ended.stderr, outputs, (runner / "summary").read_text()


def test_each_input_and_each_output_is_used() -> None:
    used = {re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1] for value in STEP["env"].values()}  # type: ignore[index]
    assert used == {*ACTION["inputs"]}
    script = SCRIPT.read_text(encoding="utf-8")
    assert all(f'"${name}"' in script or f"${name}" in script or f"{{{name}" in script for name in STEP["env"])
    assert all(f'echo "{name}=' in script for name in ACTION["outputs"])
    assert STEP["run"] == '"$GITHUB_ACTION_PATH/action/run"' and os.access(SCRIPT, os.X_OK)


@pytest.mark.full
def test_a_plan_is_previewed_and_then_applied_exactly(project: Path) -> None:
    plan = str(project.parent / "dev.plan")
    code, printed, outputs, summary = run(project, plan=plan)
    assert code == 0, printed
    assert outputs["changes"] == "true" and "table/air.flights" in summary and outputs["digest"] in summary
    code, printed, *_ = run(project, command="up", plan=plan, expect="sha256:" + "0" * 64)
    assert code != 0 and not (project / "lakes").exists()
    code, printed, *_ = run(project, command="up", plan=plan, expect=outputs["digest"])
    assert code == 0 and "2 created" in printed, printed
    code, printed, outputs, summary = run(project)
    assert (code, outputs) == (0, {"changes": "false"}), printed


@pytest.mark.full
def test_data_is_destroyed_only_where_an_address_allows_it(project: Path) -> None:
    (project / "specs" / "planes.yaml").write_text(table("planes"), encoding="utf-8")
    assert run(project, command="up")[0] == 0
    (project / "rows.csv").write_text("id\n1\n", encoding="utf-8")
    for name in ("flights", "planes"):
        command = [sys.executable, "-m", "deployer", "ingest", f"air.{name}", "rows.csv"]
        assert forks.run(command, cwd=project).returncode == 0
        (project / "specs" / f"{name}.yaml").unlink()
    code, _, outputs, summary = run(project, allow_destroy="table/air.flights")
    assert code == 0 and outputs == {"changes": "true"}
    assert "`table/air.planes`" in summary and "refused" in summary
    assert run(project, command="up", allow_destroy="table/air.flights")[0] == 3
    code, printed, *_ = run(project, command="up", allow_destroy="table/air.flights\ntable/air.planes\n")
    assert code == 0 and "2 deleted" in printed, printed


@pytest.mark.full
def test_what_is_wrong_fails_the_step(project: Path) -> None:
    code, printed, *_ = run(project, command="destroy")
    assert code == 1 and "'destroy'; use preview or up" in printed
    (project / "specs" / "flights.yaml").write_text("kind: Tabel\n", encoding="utf-8")
    code, printed, outputs, _ = run(project)
    assert code == 1 and "did you mean" in printed and outputs == {}


def test_the_image_has_what_it_copies() -> None:
    text = (REPOSITORY / "Containerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE) for name in line.split()]
    assert len(copied) > 5 and all((REPOSITORY / name).exists() for name in copied)
    assert "USER deployer" in text and 'ENTRYPOINT ["deployer"]' in text
