"""The code of jobs: the same for the same inputs, for the machine that it is for, and built only when it has to be."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distributions, requires, version
from pathlib import Path

import pytest

from deployer import DISTRIBUTION
from deployer.compute.packaging import package as job_package
from deployer.compute.packaging import wheel as job_wheel
from deployer.compute.packaging.archive import EPOCH, build_archive, pack, platforms_of
from deployer.compute.packaging.lock_file import hashes_of
from deployer.compute.packaging.package import MANIFEST, architectures, build_package, read_package, requirements_of
from deployer.compute.packaging.wheel import NAME, build_wheel, job_programs
from deployer.errors import DeployerError, Interrupted, InvalidInput, NotFound
from deployer.platform.system.progress import Progress
from deployer.specs.model import Cluster
from tests.archives import unpack
from tests.tables.lakes import Lake, flights
from tests.wheelhouse import make_wheel, make_wheelhouse, sha256, use_wheelhouse

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheelhouse(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def wheelhouse(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_wheelhouse(wheels, monkeypatch)
    return wheels


def test_the_same_inputs_give_the_same_bytes(wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_package(tmp_path / "first", ["arm64", "x86_64"], project_dir=wheelhouse)
    use_wheelhouse(make_wheelhouse(tmp_path / "later"), monkeypatch)
    job_wheel._zipped.cache_clear()
    second = build_package(tmp_path / "second", ["arm64", "x86_64"], project_dir=tmp_path / "later")
    assert [each.sha256 for each in (first.wheel, *first.archives.values(), *first.scripts.values())] == [
        each.sha256 for each in (second.wheel, *second.archives.values(), *second.scripts.values())
    ]
    for one, two in zip(first.archives.values(), second.archives.values(), strict=True):
        assert one.path.read_bytes() == two.path.read_bytes() and one.size == one.path.stat().st_size


def test_an_unchanged_package_is_left_as_it_is(
    wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = build_package(tmp_path, ["arm64"], project_dir=wheelhouse)
    assert all(each.is_new for each in (first.wheel, *first.scripts.values(), *first.archives.values()))
    use_wheelhouse(tmp_path / "nowhere", monkeypatch)  # whoever downloads now, fails
    again = build_package(tmp_path, ["arm64"], project_dir=wheelhouse)
    assert not any(each.is_new for each in (again.wheel, *again.scripts.values(), *again.archives.values()))
    assert (again.archives["arm64"].sha256, read_package(tmp_path, ["arm64"])) == (
        first.archives["arm64"].sha256,
        again,
    )


def test_only_what_changed_is_built_again(wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_package(tmp_path, ["arm64"], project_dir=wheelhouse)
    with_another = build_package(tmp_path, ["arm64", "x86_64"], project_dir=wheelhouse)
    assert [each.is_new for each in with_another.archives.values()] == [False, True]
    assert build_package(tmp_path, ["arm64"], "3.12", project_dir=wheelhouse).archives["arm64"].is_new
    back = build_package(tmp_path, ["arm64"], project_dir=wheelhouse).archives["arm64"]
    assert back.is_new and back.sha256 == first.archives["arm64"].sha256
    newer = make_wheel(tmp_path, "newer", "2.0")
    (tmp_path / "requirements.txt").write_text(f"newer==2.0 --hash=sha256:{sha256(newer)}\n", encoding="utf-8")
    use_wheelhouse(tmp_path, monkeypatch)
    monkeypatch.setattr(job_package, "pins", lambda *_: ["newer==2.0"])
    changed = build_package(tmp_path, ["arm64"], project_dir=tmp_path)
    assert changed.archives["arm64"].is_new and not changed.wheel.is_new
    (tmp_path / "environment-arm64.tar.gz").unlink()
    assert build_package(tmp_path, ["arm64"], project_dir=tmp_path).archives["arm64"].is_new


def test_packages_that_clusters_declare_go_along_in_the_installed_version(
    wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"pluggy=={version('pluggy')}"
    wheel = make_wheel(tmp_path, "pluggy", version("pluggy"))
    known = (wheelhouse / "requirements.txt").read_text(encoding="utf-8")
    (tmp_path / "requirements.txt").write_text(f"{known}{own} --hash=sha256:{sha256(wheel)}\n", encoding="utf-8")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheelhouse} {tmp_path}")
    clusters = [
        Cluster("small", "emr-serverless", {"requirements": ["Pluggy"]}),
        Cluster("other", "emr", {"instance_type": "r7g.xlarge"}),
        Cluster("here", "local", {"requirements": ["of-no-job"]}),
    ]
    assert requirements_of(clusters) == ("pluggy",)
    plain = build_package(tmp_path / "jobs", ["arm64"], project_dir=tmp_path)
    built = build_package(tmp_path / "jobs", ["arm64"], project_dir=tmp_path, requirements=requirements_of(clusters))
    assert built.archives["arm64"].is_new and built.archives["arm64"].sha256 != plain.archives["arm64"].sha256
    assert own in json.loads((tmp_path / "jobs" / MANIFEST).read_text())["packages"]
    with tarfile.open(built.archives["arm64"].path) as archive:
        assert any(name.endswith("packaged_pluggy.py") for name in archive.getnames())
    with pytest.raises(NotFound, match="jobs need the package of-no-job, which is not installed"):
        build_package(tmp_path / "jobs", ["arm64"], project_dir=tmp_path, requirements=("of-no-job",))


def test_a_package_that_is_cut_short_is_not_taken(wheelhouse: Path, tmp_path: Path) -> None:
    whole = build_package(tmp_path, ["arm64"], project_dir=wheelhouse).archives["arm64"]
    whole.path.write_bytes(whole.path.read_bytes()[:100])
    assert build_package(tmp_path, ["arm64"], project_dir=wheelhouse).archives["arm64"].sha256 == whole.sha256


@pytest.mark.parametrize("moment", ["downloading", "packing"])
def test_an_interrupted_build_leaves_nothing(
    wheelhouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    (tmp_path / "wheels").mkdir()
    large = make_wheel(tmp_path / "wheels", "large", "1.0", **{"large.bin": "0" * 3 * 2**20})
    packages = {"large==1.0": frozenset([sha256(large)]), **hashes_of([f"six=={version('six')}"], wheelhouse)}
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheelhouse} {tmp_path / 'wheels'}")
    folder = tmp_path / "jobs"
    folder.mkdir()

    def stop(now: Progress) -> None:
        if now.doing.startswith(moment) and now.done:
            raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        build_archive("arm64", "3.11", packages, folder / "a.tar.gz", stop)
    assert list(folder.iterdir()) == []


TAGS: dict[str, tuple[str, str, bool]] = {
    "pure": ("py3-none-any", "arm64", True),
    "its machine": ("cp311-cp311-manylinux_2_28_aarch64", "arm64", True),
    "the stable interface": ("cp39-abi3-manylinux_2_17_x86_64", "x86_64", True),
    "the older name": ("cp311-cp311-manylinux2014_x86_64", "x86_64", True),
    "another machine": ("cp311-cp311-manylinux_2_28_x86_64", "arm64", False),
    "another Python": ("cp312-cp312-manylinux_2_28_aarch64", "arm64", False),
    "a C library that is too new": ("cp311-cp311-manylinux_2_39_aarch64", "arm64", False),
    "another C library": ("cp311-cp311-musllinux_1_2_aarch64", "arm64", False),
}


@pytest.mark.parametrize("case", TAGS)
def test_only_wheels_that_run_there_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    tag, architecture, fits = TAGS[case]
    (tmp_path / "wheels").mkdir()
    packages = {"tiny==1.0": frozenset([sha256(make_wheel(tmp_path / "wheels", "tiny", "1.0", tag))])}
    use_wheelhouse(tmp_path / "wheels", monkeypatch)
    archive = tmp_path / "a.tar.gz"
    if fits:
        build_archive(architecture, "3.11", packages, archive)
        assert "packaged_tiny.py" in _names(archive)
        return
    with pytest.raises(DeployerError, match=r"no wheel of tiny==1\.0 for Python 3\.11 on manylinux2014_aarch64"):
        build_archive(architecture, "3.11", packages, archive)
    assert not archive.exists()


def test_what_of_a_wheel_is_packed(tmp_path: Path) -> None:
    data = {"one-1.0.data__platlib__one__b": "", "one-1.0.data__scripts__run": ""}
    one = make_wheel(tmp_path, "one", "1.0", one__core__a="", one__tests__test_a="", **data)
    two = make_wheel(tmp_path, "two", "1.0", two__z="")
    pack([one, two], tmp_path / "a.tar.gz")
    names = _names(tmp_path / "a.tar.gz")
    assert names == sorted(names)
    assert [each for each in names if "dist-info" not in each] == [
        "one/b", "one/core/a", "packaged_one.py", "packaged_two.py", "two/z",
    ]  # fmt: skip
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        assert {(each.mtime, each.uid, each.uname, each.mode) for each in tar} == {(EPOCH, 0, "", 0o644)}


def test_a_wheel_with_files_outside_of_it_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "bad", "1.0", **{"..__..__etc": ""})
    with pytest.raises(DeployerError, match=r"bad-1\.0-py3-none-any\.whl has a file outside of it: \.\./\.\./etc"):
        pack([wheel], tmp_path / "a.tar.gz")


def test_bad_words_are_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="'sparc' is not an architecture of clusters; use arm64 or x86_64"):
        platforms_of("sparc")
    with pytest.raises(InvalidInput, match=r"'eleven' is not a valid version of Python; write it as 3\.11"):
        build_archive("arm64", "eleven", {}, tmp_path / "a.tar.gz")
    with pytest.raises(InvalidInput, match="there is no code of jobs here; deployer package --out"):
        read_package(tmp_path, ["arm64"])


def test_parts_that_are_gone_are_named(wheelhouse: Path, tmp_path: Path) -> None:
    build_package(tmp_path, ["arm64"], project_dir=wheelhouse)
    with pytest.raises(InvalidInput, match=r"no packages for x86_64 here; deployer package .* --architecture x86_64"):
        read_package(tmp_path, ["x86_64"])
    (tmp_path / "ingest.py").unlink()
    with pytest.raises(InvalidInput, match=r"ingest\.py: a file of the jobs' code is gone"):
        read_package(tmp_path, ["arm64"])
    (tmp_path / MANIFEST).write_text("no JSON", encoding="utf-8")
    with pytest.raises(InvalidInput, match="there is no code of jobs here"):
        read_package(tmp_path, ["arm64"])


def test_architectures_of_clusters() -> None:
    clusters = (
        Cluster("a", "local"),
        Cluster("b", "emr-serverless", {"architecture": "x86_64"}),
        Cluster("c", "emr", {"instance_type": "r7g.xlarge"}),
    )
    assert (architectures(clusters), architectures(clusters[:1])) == (["arm64", "x86_64"], [])


def test_the_wheel_is_one_that_pip_installs(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(build_wheel())
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", "there", NAME]
    subprocess.run(command, cwd=tmp_path, check=True)
    there = tmp_path / "there"
    assert (there / "deployer" / "py.typed").is_file() and (there / "spark_jobs" / "ingest.py").is_file()
    assert all((there / "bin" / name).is_file() for name in ("deployer", "pulumi-resource-lake"))
    (installed,) = distributions(path=[str(there)])
    assert installed.name == DISTRIBUTION and set(installed.requires or ()) == set(requires(DISTRIBUTION) or ())
    assert any(file.name == "LICENSE" for file in installed.files or ())
    # What is installed from the wheel builds the same wheel, so a project's requirements pin one file.
    (there / "bin").rename(tmp_path / "bin")
    code = (
        "import sys; from deployer.compute.packaging.wheel import build_wheel; sys.stdout.buffer.write(build_wheel())"
    )
    environment = {**os.environ, "PYTHONPATH": str(there), "PYTHONDONTWRITEBYTECODE": "1"}
    again = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert again.stdout == build_wheel()


def test_a_job_runs_from_the_wheel_as_a_zip_file(tmp_path: Path) -> None:
    (tmp_path / "deployer.zip").write_bytes(build_wheel())
    programs = job_programs()
    assert programs.keys() == {"backfill", "columns", "index", "ingest", "rewrite", "service"}
    for job, contents in programs.items():
        (tmp_path / f"{job}.py").write_bytes(contents)
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "deployer.zip")}
        command = [sys.executable, "-P", f"{job}.py", "--help"]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert f"usage: {job}" in ran.stdout


@pytest.mark.slow
def test_the_real_packages_are_all_that_a_job_needs(tmp_path: Path) -> None:
    """Downloads 200 MB, and loads a file on this machine with nothing else than what a cluster gets."""
    lake = Lake(tmp_path)
    lake.table()
    rows = lake.file(flights(100))
    architecture = {"aarch64": "arm64", "arm64": "arm64", "x86_64": "x86_64"}[platform.machine()]
    package = build_package(tmp_path / "jobs", [architecture], f"{sys.version_info.major}.{sys.version_info.minor}")
    unpack(package.archives[architecture].path, tmp_path / "environment")
    wheel = package.wheel.path.rename(tmp_path / "deployer.zip")
    environment = {"PYTHONPATH": f"./environment:./{wheel.name}", "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    program = [sys.executable, "-S", str(package.scripts["ingest"].path)]
    arguments = ["--root", lake.root, "--table", "flights", "--engine", "driver", str(rows)]
    ran = subprocess.run(
        [*program, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["rows"] == 100


def _names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


def test_the_wheel_has_no_caches(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(build_wheel())
    with zipfile.ZipFile(tmp_path / NAME) as wheel:
        names = wheel.namelist()
        assert wheel.testzip() is None
    assert names == sorted(names) and not any("__pycache__" in name for name in names)
