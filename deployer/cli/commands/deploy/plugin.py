"""`deployer plugin`: manages provider plug-ins in Pulumi's plug-in folder, for the embedded engine and the Pulumi
CLI."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import AsJson

if TYPE_CHECKING:
    from deployer.app.stack.missing_plugin import InstallMissing
    from deployer.engine.plugins.install import Installation
    from deployer.engine.plugins.package import Plugin

app = typer.Typer(
    name="plugin",
    help="Install provider plug-ins, such as AWS's, for the embedded engine.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="The provider, such as aws.", metavar="NAME")]


@app.command("install")
def install(
    name: Name,
    version: Annotated[
        str,
        typer.Argument(
            help="The version; by default, the one that the installed Python package names.",
            metavar="[VERSION]",
            show_default=False,
        ),
    ] = "",
    server: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Download from this server or mirror: the folder of the archives. `${NAME}`, `${VERSION}`, `${OS}` "
            "and `${ARCH}` are filled in. Default: the server that the Python package names, or Pulumi's "
            "releases on GitHub, then get.pulumi.com.",
            show_default=False,
        ),
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Install this archive. Its digest is in the file of checksums beside it, or given by --sha256.",
            show_default=False,
        ),
    ] = None,
    sha256: Annotated[
        str,
        typer.Option(
            "--sha256",
            metavar="HEX",
            help="The SHA-256 that the archive must have, in place of the published checksum.",
            show_default=False,
        ),
    ] = "",
    as_json: AsJson = False,
) -> int:
    """Download a provider plug-in, check its digest, and unpack it into Pulumi's plug-in folder.

    The folder is `$PULUMI_HOME/plugins`, else `~/.pulumi/plugins`. A download that was interrupted is resumed. A
    plug-in that is installed already is left as it is.
    """
    from deployer.cli.console.output import print_json, stdout
    from deployer.engine.plugins.package import wanted_plugin
    from deployer.errors import InvalidInput

    if server and file is not None:
        raise InvalidInput("--server and --file are both given", remedy="give one of them")
    done = install_with_progress(wanted_plugin(name, version), server, file, sha256, as_json=as_json)
    plugin, folder = done.installed.plugin, done.installed.folder
    if as_json:
        about = {"name": plugin.name, "version": plugin.version, "folder": str(folder)}
        print_json({**about, "sha256": done.sha256 or None, "installed": done.is_new})
        return 0
    outcome = f"installed {plugin} in {folder}" if done.is_new else f"{plugin} is installed already in {folder}"
    stdout().print(outcome, soft_wrap=True)
    return 0


@app.command("list")
def list_(as_json: AsJson = False) -> int:
    """List the installed plug-ins, the newest version of each provider first."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.engine.plugins.folder import installed_plugins, plugins_folder

    found = installed_plugins()
    if as_json:
        about = [
            {"name": each.plugin.name, "version": each.plugin.version, "folder": str(each.folder)} for each in found
        ]
        print_json({"plugins": about})
        return 0
    if not found:
        note(f"there are no plug-ins in {plugins_folder()}: `deployer plugin install NAME` installs one")
        return 0
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("provider", "version", "folder"):
        table.add_column(column, overflow="fold")
    for each in found:
        table.add_row(each.plugin.name, each.plugin.version, str(each.folder))
    stdout().print(table)
    return 0


@app.command("remove")
def remove(
    name: Name,
    version: Annotated[str, typer.Argument(help="The version.", metavar="VERSION")],
    as_json: AsJson = False,
) -> int:
    """Remove an installed plug-in. Its digest is kept: another archive of the same version is refused later."""
    from deployer.cli.console.output import print_json, stdout
    from deployer.engine.plugins.folder import remove_plugin
    from deployer.engine.plugins.package import wanted_plugin

    plugin = wanted_plugin(name, version)
    folder = remove_plugin(plugin, _note_waiting)
    if as_json:
        print_json({"name": plugin.name, "version": plugin.version, "folder": str(folder)})
        return 0
    stdout().print(f"removed {plugin} from {folder}", soft_wrap=True)
    return 0


def install_with_progress(
    plugin: Plugin, server: str = "", file: Path | None = None, sha256: str = "", *, as_json: bool = False
) -> Installation:
    """Installs a plug-in and shows the progress. Raises Refused if the current project could not use the plug-in,
    because Pulumi's plug-in folder is inside of the project."""
    from deployer.cli.console.progress_display import Meter
    from deployer.engine.plugins.folder import plugins_folder
    from deployer.engine.plugins.install import install_plugin
    from deployer.engine.providers.plugin_search import is_in_checkout
    from deployer.errors import Refused

    if is_in_checkout(plugins_folder(), Path.cwd()):
        raise Refused(
            "Pulumi's plug-in folder is inside of the project, so its plug-ins are not run",
            where=plugins_folder(),
            remedy="set PULUMI_HOME to a folder outside of the project",
        )
    with Meter(as_json=as_json) as meter:
        on_progress = meter.begin(plugin.name, f"installing {plugin}")
        try:
            return install_plugin(
                plugin,
                server=server,
                file=file,
                sha256=sha256,
                on_progress=on_progress,
                on_wait=_note_waiting,
            )
        finally:
            meter.end(plugin.name)


def _note_waiting() -> None:
    from deployer.cli.console.output import note

    note("another process installs or removes this plug-in; waiting for it")


def may_install(*, may_ask: bool) -> InstallMissing | None:
    """Returns a function that asks whether to install a missing plug-in; None without `may_ask`, or if stdin is not a
    terminal."""
    return _install_if_wanted if may_ask and sys.stdin.isatty() else None


def _install_if_wanted(plugin: Plugin) -> None:
    from deployer.cli.console.output import ask_yes_or_no
    from deployer.engine.plugins.folder import plugins_folder

    if ask_yes_or_no(f"{plugin} is not installed. Download it into {plugins_folder()}?"):
        install_with_progress(plugin)
