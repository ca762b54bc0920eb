"""The text about a saved plan that every rendering shows, so that what is reviewed is what is applied."""

from __future__ import annotations

import shlex

from deployer.plan.saved.seal import SavedAs


def describe_saved_plan(saved: SavedAs) -> str:
    """`saved as sha256:…, signed by 4fb6…`."""
    return f"saved as {saved.digest}" + (f", signed by {saved.signed_by}" if saved.signed_by else "")


def apply_command(saved: SavedAs) -> str:
    """What applies that file and no other."""
    return f"deployer up {shlex.quote(saved.file)} --expect {saved.digest}"
