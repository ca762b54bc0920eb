"""Commands on a pseudo terminal, and what a person sees of them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass

from tests import forks

#: `deployer` that draws progress as soon as there is any, and with `also` before.
AT_ONCE = """
from deployer.cli.console import progress_display
from deployer.__main__ import main
progress_display.DELAY = 0.0
{also}
main()
"""
_PART = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]+")


@dataclass(frozen=True)
class Seen:
    """What a command sent to its terminal, what stays on that, what it printed elsewhere, and its exit code."""

    sent: str
    stays: list[str]
    printed: str
    code: int


def on_terminal(*command: str, also: str = "", both: bool = False, forked: bool = True) -> Seen:
    """Runs `deployer` with stderr, and with `both` stdout too, on a terminal of its own; not `forked` where it matters
    what it imports."""
    own, other = pty.openpty()
    process = (forks.Popen if forked else subprocess.Popen)(
        [sys.executable, "-c", AT_ONCE.format(also=also), *command],
        stdin=subprocess.DEVNULL,
        stdout=other if both else subprocess.PIPE,
        stderr=other,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "160"},
    )
    os.close(other)
    sent = b""
    with suppress(OSError):  # of Linux, where the other side is closed
        while part := os.read(own, 65536):
            sent += part
    os.close(own)
    with process:
        printed, _ = process.communicate()
    text = sent.decode()
    return Seen(text, screen(text), (printed or b"").decode(), process.returncode)


def screen(sent: str) -> list[str]:
    """Returns the lines that stay, of a terminal that knows the commands of Rich; the cursor has to be shown again."""
    lines, row, column, hidden = [""], 0, 0, False
    for part in _PART.finditer(sent):
        text, code = part[0], part[2]
        if code == "A":
            row -= int(part[1] or 1)
        elif code == "K":
            lines[row] = ""
        elif code in ("h", "l"):
            hidden = code == "l"
        elif code == "m":
            pass
        elif code:
            raise AssertionError(f"a command that no progress needs: {text!r}")
        elif text == "\r":
            column = 0
        elif text == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        else:
            before = lines[row].ljust(column)
            lines[row] = before[:column] + text + before[column + len(text) :]
            column += len(text)
    assert not hidden
    return [line.rstrip() for line in lines if line.strip()]
