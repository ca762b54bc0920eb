"""The question of `up` and `destroy` whether to install a provider's plug-in that is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.app.stack.missing_plugin import InstallMissing
    from deployer.engine.plugins.package import Plugin


def plugin_offer(*, may_ask: bool) -> InstallMissing | None:
    """The function that asks; None if stdin is not a terminal."""
    return _offer if may_ask and sys.stdin.isatty() else None


def _offer(plugin: Plugin) -> None:
    from deployer.cli.deploy.plugin import install_with_progress
    from deployer.console.output import ask_yes_or_no
    from deployer.engine.plugins.folder import plugins_folder

    if ask_yes_or_no(f"{plugin} is not installed. Download it into {plugins_folder()}?"):
        install_with_progress(plugin)
