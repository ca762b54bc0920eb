"""Checks of `doctor` on this machine: Python, packages, Java, the Pulumi CLI and the AWS provider."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from deployer import DISTRIBUTION
from deployer.app.diagnostics.checks import Finding, not_applicable, ok, warning, wrong
from deployer.engine.project.project import Project
from deployer.errors import DeployerError, NotFound

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_STARTS_WITHIN = 15.0  #: timeout in seconds of a command that prints its version


def python() -> Finding:
    from packaging.specifiers import SpecifierSet

    version = platform.python_version()
    try:
        wanted = metadata.metadata(DISTRIBUTION)["Requires-Python"]
    except metadata.PackageNotFoundError:
        return not_applicable(f"{version}; deployer is not installed as a package, so its range is unknown")
    if wanted and not SpecifierSet(wanted).contains(version, prereleases=True):
        return wrong(f"{version}, and deployer needs {wanted}", f"install it with a Python {wanted}", version=version)
    return ok(version, version=version)


def package() -> Finding:
    """Checks whether another project's distribution has installed files into the package `deployer`; Python would run
    those files."""
    found = {name: metadata.version(name) for name in metadata.packages_distributions().get("deployer", ())}
    own = found.pop(DISTRIBUTION, None)
    if found:
        names = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
        return wrong(
            f"{names} has the package `deployer` too: another project, whose files may have replaced deployer's own",
            f"pip uninstall {' '.join(sorted(found))}, then install {DISTRIBUTION} again with --force-reinstall",
            packages=sorted(found),
        )
    if own is None:
        return not_applicable("deployer is not installed as a package")
    return ok(f"{DISTRIBUTION} {own}", version=own)


def packages() -> Finding:
    """Compares the installed packages that deployer needs with the ranges that it declares."""
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return not_applicable("deployer is not installed as a package, so its ranges are unknown")
    return judged_packages(required)


def judged_packages(required: Sequence[str]) -> Finding:
    """Compares installed packages with `required`, requirements in the form of package metadata. Requirements of extras
    are skipped."""
    from packaging.requirements import Requirement

    wanted = [Requirement(text) for text in required]
    wanted = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    misfits = list(_misfits(wanted))
    if misfits:
        names = " ".join(f"'{name}{wants}'" for name, wants, _ in misfits)
        what_is_there = ", ".join(
            f"{name} is {has or 'missing'} (needs {wants or 'any'})" for name, wants, has in misfits
        )
        return wrong(what_is_there, f"pip install {names}", packages=[name for name, _, _ in misfits])
    return ok(f"{len(wanted)} of {len(wanted)} in their ranges")


def _misfits(wanted: Sequence[Requirement]) -> Iterator[tuple[str, str, str]]:
    """Yields name, range and installed version of each requirement that is not met. The version of a missing package is
    empty."""
    for each in wanted:
        try:
            version = metadata.version(each.name)
        except metadata.PackageNotFoundError:
            version = ""
        if not version or not each.specifier.contains(version, prereleases=True):
            yield each.name, str(each.specifier), version


def java() -> Finding:
    from deployer.compute.spark.java import find_java

    try:
        found = find_java()
    except NotFound as error:
        return warning(f"{error.what}; only Spark needs one: large loads and rewrites", error.remedy)
    return ok(f"{found.version} from {found.source}", version=found.version, home=str(found.home), source=found.source)


def pulumi_cli(engine: str) -> Finding:
    """Checks the Pulumi CLI. `engine` is what the instance declares: auto, embedded or cli."""
    found = shutil.which("pulumi")
    if found is None:
        if engine == "cli":
            return wrong(
                "not on PATH, and the instance says `engine: cli`", "install `pulumi`, or write `engine: auto`"
            )
        return ok("not on PATH; the embedded engine is used")
    try:
        what_is_there = subprocess.run(
            [found, "version"], capture_output=True, text=True, timeout=_STARTS_WITHIN, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        what = f"{found} does not report its version: {type(error).__name__}"
        return (warning if engine == "embedded" else wrong)(what, "install it again, or remove it from PATH")
    if engine == "embedded":
        return ok(f"{what_is_there}; not used, as the instance says `engine: embedded`", version=what_is_there)
    return ok(f"{what_is_there} at {found}", version=what_is_there)


def lake_provider(project: Project | None, engine: str) -> Finding:
    """Checks the plugin that the Pulumi CLI starts for lakes. The embedded engine runs the plugin in its own
    process."""
    from deployer.engine.providers.plugin_search import find_plugin

    if project is None:
        return not_applicable("no Pulumi.yaml was found")
    if engine == "embedded" or shutil.which("pulumi") is None:
        why = "the instance says `engine: embedded`" if engine == "embedded" else "the Pulumi CLI is not on PATH"
        return not_applicable(f"{why}; the embedded engine runs the plugin in its own process")
    try:
        found = find_plugin("lake", project.plugins, project.dir)
    except DeployerError as error:
        return wrong(f"{error.where}: {error.what}", error.remedy)
    if "lake" not in project.plugins and shutil.which(found.name) is None:
        what = f"{found}: the Pulumi CLI finds it when `deployer` starts it; a plain `pulumi up` does not"
        return warning(what, f"source {found.parent}/activate, or put {found.parent} on PATH")
    return ok(f"{found}")


def aws_package(needed: str) -> Finding:
    """Checks the package of the AWS provider. `needed` says why it is not needed; empty where it is needed."""
    if needed:
        return not_applicable(needed)
    try:
        extras = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        extras = []
    wanted = [each.partition(";")[0].strip() for each in extras if "pulumi-aws" in each]
    found = judged_packages(wanted or ["pulumi-aws"])
    if found.remedy:
        return wrong(found.what, f"pip install '{wanted[0] if wanted else 'pulumi-aws'}'")
    return ok(f"pulumi-aws {metadata.version('pulumi-aws')}", version=metadata.version("pulumi-aws"))


def aws_provider(project: Project | None, engine: str, needed: str) -> Finding:
    """Checks the plugin that the embedded engine starts; the Pulumi CLI downloads it by itself. `needed` says why it is
    not needed; empty where it is needed."""
    from deployer.engine.plugins.package import packaged_plugin
    from deployer.engine.providers.plugin_search import find_plugin

    if needed:
        return not_applicable(needed)
    if project is None:
        return not_applicable("no Pulumi.yaml was found")
    if engine != "embedded" and shutil.which("pulumi") is not None:
        return not_applicable("the Pulumi CLI downloads it")
    wanted = packaged_plugin("aws")
    plugin = find_plugin("aws", project.plugins, project.dir, wanted.version if wanted else "")
    version = _plugin_version(plugin, project)
    if not version:
        return warning(f"{plugin} does not report its version", "the program is written for version 7")
    if version.lstrip("v").partition(".")[0] != "7":
        return wrong(f"{version} at {plugin}", "deployer plugin install aws")
    return ok(f"{version} at {plugin}", version=version)


def _plugin_version(plugin: Path, project: Project) -> str:
    """Starts the plugin and returns the version that it reports; empty where it does not answer. Raises EngineFailed
    when the plugin does not start."""
    import grpc
    from google.protobuf.empty_pb2 import Empty
    from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub

    from deployer.engine.providers.process import PluginProcess

    no_engine = "127.0.0.1:1"  # nothing listens there; a plugin does not call the engine to report its version
    process = PluginProcess(plugin, no_engine, project.dir, lambda severity, line: None)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{process.port}") as channel:
            return str(ResourceProviderStub(channel).GetPluginInfo(Empty(), timeout=_STARTS_WITHIN).version)
    except grpc.RpcError:
        return ""
    finally:
        process.stop()
