"""The question of `up` and `destroy` whether to install the AWS provider, where it is missing."""

from __future__ import annotations

import sys

from deployer.app.workspace import Workspace
from deployer.specs.model import Lake


def offer_aws_provider(workspace: Workspace, lake: Lake, *, may_ask: bool) -> None:
    """Installs the AWS provider if the person says yes. It is asked for once, and only where the lake needs it.

    Where nobody can be asked, or the answer is no, the engine names the command if the program does use the provider.
    """
    if not (may_ask and sys.stdin.isatty()) or not needs_aws_provider(workspace, lake):
        return
    from deployer.cli.deploy.plugin import install_with_progress
    from deployer.console.output import ask_yes_or_no
    from deployer.engine.plugins.folder import plugins_folder
    from deployer.engine.plugins.package import packaged_plugin
    from deployer.engine.providers.plugin_search import find_plugin
    from deployer.errors import NotFound

    plugin = packaged_plugin("aws")
    if plugin is None:
        return  # the program says that its package is missing
    try:
        find_plugin("aws", workspace.project.plugins, workspace.dir, plugin.version)
    except NotFound:
        if ask_yes_or_no(f"{plugin} is not installed. Download it into {plugins_folder()}?"):
            install_with_progress(plugin)


def needs_aws_provider(workspace: Workspace, lake: Lake) -> bool:
    """Whether the embedded engine starts the AWS provider, and Pulumi.yaml does not name its folder."""
    from deployer.engine.choose import chosen_engine

    return (
        workspace.root(lake).startswith("s3://")
        and workspace.values.get("aws", "all") != "none"
        and "aws" not in workspace.project.plugins
        and chosen_engine(workspace.project, lake.instance.engine) == "embedded"
    )
