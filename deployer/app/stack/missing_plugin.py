"""The plugin of the AWS provider, where the lake needs it and it is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from deployer.app.workspace import Workspace
from deployer.specs.model import Lake

if TYPE_CHECKING:
    from deployer.engine.plugins.package import Plugin

#: Receives a plugin that is not installed, and may install it.
InstallMissing = Callable[["Plugin"], None]


def handle_missing_plugin(workspace: Workspace, lake: Lake, install_missing: InstallMissing | None) -> None:
    """Calls `install_missing` with the plugin of the AWS provider, where the lake needs it and it is not installed.

    If the plugin stays missing and the program uses the provider, the engine reports the command that installs it.
    """
    if install_missing is None or not _needs_aws_provider(workspace, lake):
        return
    from deployer.engine.plugins.package import packaged_plugin
    from deployer.engine.providers.plugin_search import find_plugin
    from deployer.errors import NotFound

    plugin = packaged_plugin("aws")
    if plugin is None:
        return  # the program reports that its package is missing
    try:
        find_plugin("aws", workspace.project.plugins, workspace.dir, plugin.version)
    except NotFound:
        install_missing(plugin)


def _needs_aws_provider(workspace: Workspace, lake: Lake) -> bool:
    """Returns whether the embedded engine starts the AWS provider, and Pulumi.yaml does not name its folder."""
    from deployer.engine.choose import chosen_engine

    return (
        workspace.root(lake).startswith("s3://")
        and workspace.values.get("aws", "all") != "none"
        and "aws" not in workspace.project.plugins
        and chosen_engine(workspace.project, lake.instance.engine) == "embedded"
    )
