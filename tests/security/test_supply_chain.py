"""F3, F21: what is installed is deployer's own, and every package is a file whose hash is known."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deployer import DISTRIBUTION, __version__
from deployer.app.diagnostics.checks import Status
from deployer.app.diagnostics.machine import package
from deployer.compute.packaging import package as job_package
from deployer.compute.packaging.archive import build_archive
from deployer.compute.packaging.lock_file import AWS, BUILD, PACKAGES, hashes_of, known_hashes, lock_text, parse_hashes
from deployer.compute.packaging.package import build_package
from deployer.compute.packaging.wheel import NAME, build_wheel
from deployer.errors import DeployerError, InvalidInput, NotFound
from tests.cli.conftest import Deployer
from tests.projects import REPOSITORY
from tests.wheelhouse import make_wheel, sha256, use_wheelhouse

LOCKED = {name: parse_hashes(lock_text(name)) for name in (PACKAGES, AWS, BUILD)}


def test_no_text_installs_the_project_that_has_the_name_on_the_index() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    foreign = re.compile(
        r"(?<![\w/.-])deployer(==|\[\w)|pip3? install[^\n;]*(?<![\w/.-])['\"]?deployer['\"]?(?![\w/*-])"
    )
    found = []
    for name in listed.stdout.split("\0"):
        path = REPOSITORY / name
        if (
            path.is_file()
            and path.suffix in (".py", ".md", ".txt", ".yaml", ".yml", ".toml", "")
            and "tests" not in name
        ):
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{name}: {match[0]}" for match in foreign.finditer(text)]
    assert found == []


def test_another_project_of_the_name_is_found_by_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert package().status is Status.OK
    info = tmp_path / "deployer-0.3.10.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deployer\nVersion: 0.3.10\n", encoding="utf-8")
    (info / "RECORD").write_text("deployer/__init__.py,,\n", encoding="utf-8")
    (tmp_path / "deployer").mkdir()
    (tmp_path / "deployer" / "__init__.py").touch()  # a file that is not there counts for nothing since Python 3.12
    monkeypatch.syspath_prepend(str(tmp_path))
    found = package()
    assert found.status is Status.WRONG and found.what.startswith("deployer 0.3.10 has the package `deployer` too")
    assert found.remedy.startswith("pip uninstall deployer, then install deployer-lake again")


def test_the_lock_has_what_the_constraints_have() -> None:
    text = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")
    pinned = {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in text.splitlines()[2:])}
    for part in LOCKED.values():
        for pin in part:
            name, _, locked = pin.partition("==")
            assert pinned[canonicalize_name(name)] == locked, "run `make lock`"


@pytest.mark.parametrize("extra", ["", "aws"])
def test_everything_that_deployer_needs_is_locked(extra: str) -> None:
    """Transitively, by the metadata of what is installed here."""
    names = {pin.partition("==")[0] for part in (PACKAGES, *([AWS] if extra else [])) for pin in LOCKED[part]}
    todo, seen = [(DISTRIBUTION, extra)], set[tuple[str, str]]()
    while todo:
        name, of = todo.pop()
        if (name, of) in seen:
            continue
        seen.add((name, of))
        try:
            needed = distribution(name).requires or ()
        except PackageNotFoundError:
            assert name == "pulumi-aws"  # `make test` has it, other environments may not
            continue
        for requirement in map(Requirement, needed):
            if requirement.marker is None or requirement.marker.evaluate({"extra": of}):
                assert canonicalize_name(requirement.name) in names, f"{name} needs {requirement}: run `make lock`"
                todo += [(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)]


def test_the_lock_has_hashes_and_no_addresses() -> None:
    for part in (PACKAGES, AWS, BUILD):
        text = lock_text(part)
        assert re.fullmatch(r"(?:[a-z0-9-]+==[\w.]+(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n)+", text), part
    assert all(len(LOCKED[part]) == lock_text(part).count("==") for part in LOCKED)


def lock_script() -> Any:
    spec = importlib.util.spec_from_file_location("lock", REPOSITORY / ".ci" / "lock.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wheels_of_machines_that_deployer_runs_on_are_locked() -> None:
    runs_here = lock_script().runs_here
    wheels = {
        "x-1-py3-none-any.whl": True,
        "x-1-py2.py3-none-any.whl": True,
        "x-1-cp311-cp311-manylinux_2_28_x86_64.whl": True,
        "x-1-cp313-cp313-macosx_11_0_arm64.whl": True,
        "x-1-cp38-abi3-musllinux_1_2_aarch64.whl": True,
        "x-1-py3-none-macosx_10_9_universal2.whl": True,
        "x-1-cp310-cp310-manylinux_2_28_x86_64.whl": False,
        "x-1-cp314-cp314-manylinux_2_28_x86_64.whl": False,
        "x-1-cp313-cp313t-manylinux_2_28_x86_64.whl": False,
        "x-1-pp311-pypy311_pp73-manylinux_2_28_x86_64.whl": False,
        "x-1-cp311-cp311-win_amd64.whl": False,
        "x-1-cp311-cp311-manylinux_2_28_s390x.whl": False,
        "x-1-py2-none-any.whl": False,
    }
    assert {name: runs_here(name) for name in wheels} == wheels


@pytest.fixture
def project(tmp_path: Path, deployer: Deployer) -> Path:
    assert deployer("init", str(tmp_path / "lake")).code == 0
    return tmp_path / "lake"


def test_a_new_project_pins_this_deployer_and_all_packages_by_hash(project: Path) -> None:
    wheel = project / "vendor" / NAME
    assert f"deployer_lake-{__version__}-py3-none-any.whl" == NAME and wheel.read_bytes() == build_wheel()
    text = (project / "requirements.txt").read_text(encoding="utf-8")
    assert f"./vendor/{NAME} \\\n    --hash=sha256:{sha256(wheel)}\n" in text
    assert parse_hashes(text) == LOCKED[PACKAGES]
    for name in ("requirements.txt", "requirements-aws.txt", "requirements-build.txt"):
        lines = (project / name).read_text(encoding="utf-8").splitlines()
        assert "--require-hashes" in lines  # whatever the command that installs it says
        assert not any("://" in line for line in lines)
    assert "--requirement requirements.txt" in (project / "requirements-aws.txt").read_text(encoding="utf-8")
    assert known_hashes(project).keys() == known_hashes().keys()


@pytest.mark.full
def test_pip_takes_the_vendored_wheel_and_no_other(project: Path) -> None:
    lines = (project / "requirements.txt").read_text(encoding="utf-8").split(LOCKED_BEGINS)[0]
    (project / "own.txt").write_text(lines, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", "there", "-r", "own.txt"]
    assert subprocess.run(command, cwd=project, capture_output=True, check=False).returncode == 0
    (project / "vendor" / NAME).write_bytes(build_wheel() + b"\0")
    ended = subprocess.run([*command, "--upgrade"], cwd=project, capture_output=True, text=True, check=False)
    assert ended.returncode != 0 and "DO NOT MATCH THE HASHES" in ended.stderr


LOCKED_BEGINS = lock_text(PACKAGES).partition("\n")[0]


def test_requirements_are_written_again_for_another_release(project: Path, deployer: Deployer) -> None:
    (project / "vendor" / NAME).rename(project / "vendor" / "deployer_lake-0.0.9-py3-none-any.whl")
    (project / "vendor" / "other-1.0-py3-none-any.whl").write_bytes(b"mine")
    (project / "requirements.txt").write_text("old\n", encoding="utf-8")
    before = (project / "specs" / "trips.yaml").read_bytes()
    assert deployer("init", "--requirements", str(project)).code == 0
    assert {path.name for path in (project / "vendor").iterdir()} == {NAME, "other-1.0-py3-none-any.whl"}
    assert parse_hashes((project / "requirements.txt").read_text(encoding="utf-8")) == LOCKED[PACKAGES]
    assert (project / "specs" / "trips.yaml").read_bytes() == before
    ran = deployer("init", "--requirements", str(project / "specs"))
    assert ran.code == NotFound.exit_code and "no Pulumi.yaml here" in ran.err
    assert "--name and --requirements do not go together" in deployer("init", "x", "--requirements", "--name", "y").err


def test_requirements_are_not_written_through_a_link(project: Path, tmp_path: Path, deployer: Deployer) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (project / "requirements.txt").unlink()
    (project / "requirements.txt").symlink_to(victim)
    assert deployer("init", "--requirements", str(project)).code == 0
    assert victim.read_text(encoding="utf-8") == "mine" and not (project / "requirements.txt").is_symlink()


def archive(folder: Path, packages: dict[str, str]) -> dict[str, str]:
    (folder / "jobs").mkdir(exist_ok=True)
    trusted = {pin: frozenset([digest]) for pin, digest in packages.items()}
    return build_archive("arm64", "3.11", trusted, folder / "jobs" / "a.tar.gz")


def test_a_wheel_of_another_hash_gets_into_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F21: jobs' packages came to production by name and version alone."""
    (tmp_path / "wheels").mkdir()
    good = sha256(make_wheel(tmp_path / "wheels", "tiny", "1.0"))
    use_wheelhouse(tmp_path / "wheels", monkeypatch)
    assert archive(tmp_path, {"tiny==1.0": good}) == {"tiny-1.0-py3-none-any.whl": good}
    (tmp_path / "jobs" / "a.tar.gz").unlink()
    make_wheel(tmp_path / "wheels", "tiny", "1.0", evil="print()")
    with pytest.raises(DeployerError, match=r"a different file of tiny==1\.0 than the trusted ones: "):
        archive(tmp_path, {"tiny==1.0": good})
    assert list((tmp_path / "jobs").iterdir()) == []


def test_a_package_without_a_known_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_package, "pins", lambda *_: ["tiny==1.0", f"rich=={version('rich')}"])
    with pytest.raises(InvalidInput, match=r"no SHA-256 is known of tiny==1\.0, which jobs on clusters need; install"):
        build_package(tmp_path, ["arm64"])
    assert not list(tmp_path.glob("*.tar.gz"))


@pytest.mark.full
def test_a_kept_archive_is_taken_only_as_it_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive in a cache that somebody else could write is built again, and so is one whose wheel lost its trust."""
    (tmp_path / "wheels").mkdir()
    wheel = make_wheel(tmp_path / "wheels", "tiny", "1.0")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"tiny==1.0 --hash=sha256:{sha256(wheel)}\n", encoding="utf-8")
    use_wheelhouse(tmp_path / "wheels", monkeypatch)
    monkeypatch.setattr(job_package, "pins", lambda *_: ["tiny==1.0"])

    def built() -> tuple[bool, str]:
        found = build_package(tmp_path / "jobs", ["arm64"], project_dir=tmp_path).archives["arm64"]
        return found.is_new, found.sha256

    first = built()
    assert built() == (False, first[1])
    path = tmp_path / "jobs" / "environment-arm64.tar.gz"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert built() == (True, first[1])
    changed = make_wheel(tmp_path / "wheels", "tiny", "1.0", more="x")
    requirements.write_text(f"tiny==1.0 --hash=sha256:{sha256(changed)}\n", encoding="utf-8")
    assert built()[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xfe", "not UTF-8 text"), (b"#" * (16 * 2**20 + 1), "more than 16 MiB is not read")],
    ids=["bytes", "large"],
)
def test_a_requirements_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "requirements-x.txt").write_bytes(content)
    with pytest.raises(InvalidInput, match=f"requirements-x.txt: .*{said}"):
        hashes_of([], tmp_path)


def test_requirements_are_read_as_pip_reads_them() -> None:
    one, two = "a" * 64, "B" * 64
    text = (
        f"Ruamel.YAML[x]==0.19.1 \\\n  --hash=sha256:{one} \\\n --hash sha256:{two} # why\nb>=1 --hash=sha256:{one}\n"
    )
    assert parse_hashes(text + "c==1\n-r other.txt\n") == {"ruamel-yaml==0.19.1": {one, two.lower()}}


@pytest.mark.slow
def test_a_new_project_installs_from_the_index(project: Path, tmp_path: Path) -> None:
    """Downloads 800 MB. In an environment of its own, with nothing of the one of the tests."""
    home = tmp_path / "home"
    home.mkdir()
    kept = ("PATH", "PIP_CERT", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT", "HTTPS_PROXY", "SSL_CERT_FILE")
    environment = {"HOME": str(home), **{name: os.environ[name] for name in kept if name in os.environ}}

    def ran(*command: str) -> str:
        ended = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    venv.create(project / ".venv", with_pip=True)
    python, command = (str(project / ".venv" / "bin" / name) for name in ("python", "deployer"))
    install = (python, "-m", "pip", "install", "--require-hashes")
    ran(*install, "--requirement", "requirements-build.txt")
    ran(*install, "--no-build-isolation", "--requirement", "requirements.txt")
    assert ran(command, "--version") == f"deployer {__version__}\n"
    ran(command, "validate")
    assert "create table" in ran(command, "preview")
    assert "Done: 2 created" in ran(command, "up", "--yes")
    digest = "import hashlib; from deployer.compute.packaging.wheel import build_wheel as build; "
    digest += "print(hashlib.sha256(build()).hexdigest())"
    assert ran(python, "-P", "-c", digest).strip() == hashlib.sha256(build_wheel()).hexdigest()
    shutil.rmtree(project / ".venv")
