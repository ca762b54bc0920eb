"""Puts the provider into a project as a plugin's executable, as somebody installs the official one."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from tests.aws_provider.forking import SOCKET
from tests.projects import REPOSITORY


def install_aws_provider(project: Path) -> None:
    """Writes `bin/pulumi-resource-aws` and names it in Pulumi.yaml. It is forked where there is somebody to ask."""
    script = project / "bin" / "pulumi-resource-aws"
    script.parent.mkdir(exist_ok=True)
    forked = Path(__file__).with_name("forked.py")
    script.write_text(
        f"#!/bin/sh\nexport PYTHONPATH='{REPOSITORY}'\n"
        f"[ -n \"${SOCKET}\" ] && exec '{sys.executable}' -I -S '{forked}' \"$@\"\n"
        f"exec '{sys.executable}' -m tests.aws_provider.provider \"$@\"\n",
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    settings = project / "Pulumi.yaml"
    text = settings.read_text(encoding="utf-8")
    named = text.replace("  providers:\n", "  providers:\n    - name: aws\n      path: bin\n")
    assert named != text
    settings.write_text(named, encoding="utf-8")
